//! Where log lines go, resolved (configuration manual, section 4.2 "log").

use super::LinkTls;
use config::spec::{LogLevel, LogProtocol, LogStep, LogSteps, SyslogFormat};
use expression::log_format::LogFormat;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A target's address.
#[derive(Debug, Clone, PartialEq)]
pub enum LogAddress {
    /// UDP; port 514 where none was written.
    Inet(SocketAddr),
    /// A UNIX datagram socket.
    Unix(PathBuf),
    /// An abstract UNIX datagram socket: what stands behind the NUL, padded to 107 bytes for `abns@`.
    Abstract(Vec<u8>),
    /// `stdout`, `stderr`, `fd@n`.
    Descriptor(i32),
    /// Index of a ring in [`super::Program::rings`].
    Ring(usize),
    /// `tcp@…`: a connection, and the ring before it. Lines of equal ones go over the same connection.
    Stream(Arc<Ring>),
    /// Index of a backend in `mode log` in [`super::Program::proxies`].
    Backend(usize),
    /// The collector of the newest configuration.
    Telemetry,
}

/// How a server in `mode log` gets its lines.
#[derive(Debug, Clone)]
pub enum LogServer {
    /// As datagrams.
    Datagrams,
    /// Over a connection, through a ring of its own.
    Stream(Arc<Ring>),
}

impl PartialEq for LogServer {
    /// Where a server is written makes no difference.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Datagrams, Self::Datagrams) => true,
            (Self::Stream(own), Self::Stream(other)) => {
                let other = Ring { description: own.description.clone(), ..(**other).clone() };
                **own == other
            }
            _ => false,
        }
    }
}

impl LogServer {
    /// What stands before its connection.
    pub fn ring(&self) -> Option<&Arc<Ring>> {
        match self {
            Self::Datagrams => None,
            Self::Stream(ring) => Some(ring),
        }
    }
}

/// `sample <ranges>:<size>`: out of every `size` lines, those whose number (from 1) is in one of the ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// First and last number of each range, both included.
    pub ranges: Vec<(u32, u32)>,
    /// Lines of a round.
    pub size: u32,
}

/// The ring that is always there, for events that name no other.
pub const EVENTS: &str = "buf0";
/// The ring that is always there, for programs that set DNS records (configuration manual, section 12.8).
pub const PROVISIONING: &str = "dpapi";
/// Its index.
pub const PROVISIONING_RING: usize = 1;

/// A ring of lines (section 12.5), or what stands behind `log tcp@…`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    /// Its name; empty for `log tcp@…`.
    pub name: Box<str>,
    /// `description`; its name where none was written.
    pub description: Box<str>,
    /// `format`, which its lines take whatever the `log` line says; `None`: each line's own.
    pub format: Option<SyslogFormat>,
    /// `maxlen`: bytes of a line at most.
    pub maxlen: usize,
    /// `size` in bytes.
    pub size: usize,
    /// `backing-file`.
    pub backing_file: Option<Box<str>>,
    /// `timeout connect`.
    pub connect_timeout: Duration,
    /// `timeout server`: how long lines may wait to be taken by a connection.
    pub server_timeout: Duration,
    /// Who gets the lines.
    pub servers: Vec<RingServer>,
}

/// A syslog server behind a ring.
#[derive(Debug, Clone, PartialEq)]
pub struct RingServer {
    /// Its name.
    pub name: Box<str>,
    /// Where it listens.
    pub address: SocketAddr,
    /// `log-proto`.
    pub protocol: LogProtocol,
    /// `ssl`.
    pub tls: Option<LinkTls>,
}

/// What a proxy's lines look like, and which are written.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLines {
    /// The format.
    pub format: LogFormat,
    /// `error-log-format`: the format of connections that brought no valid request.
    pub error: Option<LogFormat>,
    /// `log-format-sd`.
    pub structured_data: Option<LogFormat>,
    /// `log-steps`; `None`: once, when the format can be filled in.
    pub steps: Option<LogSteps>,
    /// `option dontlog-normal`: only what went wrong is logged.
    pub dontlog_normal: bool,
    /// `option log-separate-errors`: what went wrong is logged at level err.
    pub separate_errors: bool,
    /// `option logasap`: lines are written once the answer's head is there.
    pub as_soon_as_possible: bool,
}

/// A `log-profile` (section 8.3.5).
#[derive(Debug, Clone, PartialEq)]
pub struct LogProfile {
    /// Its name.
    pub name: Box<str>,
    /// `log-tag`.
    pub tag: Option<Box<str>>,
    /// `on`, by the number of the step.
    pub steps: [Option<ProfileStep>; LogStep::COUNT],
}

/// What a profile says of a step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileStep {
    /// Nothing is logged.
    pub drop: bool,
    /// The format; `None`: the proxy's.
    pub format: Option<LogFormat>,
    /// The structured data; `None`: the proxy's.
    pub structured_data: Option<LogFormat>,
}

impl LogProfile {
    /// What it says of a step: of that one, else of any.
    pub fn on(&self, step: LogStep) -> Option<&ProfileStep> {
        self.steps[step as usize].as_ref().or(self.steps[LogStep::Any as usize].as_ref())
    }

    /// Its formats.
    pub fn formats(&self) -> impl Iterator<Item = &LogFormat> {
        self.steps.iter().flatten().flat_map(|step| step.format.iter().chain(&step.structured_data))
    }
}

/// `unique-id-format` and `unique-id-header` of a frontend.
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueId {
    /// The format.
    pub format: LogFormat,
    /// The name of the field that carries it to servers.
    pub header: Option<Box<[u8]>>,
}

impl LogLines {
    /// A format, and nothing said about it.
    pub const fn of(format: LogFormat) -> Self {
        Self {
            format,
            error: None,
            structured_data: None,
            steps: None,
            dontlog_normal: false,
            separate_errors: false,
            as_soon_as_possible: false,
        }
    }

    /// When a line is written.
    pub fn moment(&self) -> LogMoment {
        match &self.format {
            format if format.is_default() => LogMoment::Request,
            format if self.as_soon_as_possible || !format.waits_for_end() => LogMoment::Answer,
            _ => LogMoment::End,
        }
    }
}

/// When the line about a stream is written, unless the stream ends before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMoment {
    /// Once the connection is accepted (TCP) or the request's head is there (HTTP).
    Request,
    /// Once the connection to the server stands (TCP) or the answer's head is there (HTTP).
    Answer,
    /// At its end.
    End,
}

/// One `log` line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogTarget {
    /// Where lines go.
    pub address: LogAddress,
    /// `len`: bytes of a line at most.
    pub length: usize,
    /// `format`; `local`, or `rfc3164` with `log-send-hostname`, where none was written.
    pub format: SyslogFormat,
    /// `profile`: index of a profile in [`super::Program::profiles`].
    pub profile: Option<usize>,
    /// `sample`; `None`: every line.
    pub sample: Option<Sample>,
    /// Facility number, 0 to 23.
    pub facility: u8,
    /// Lines less severe than this are not sent.
    pub max_level: LogLevel,
    /// Lines more severe than this are sent with this severity.
    pub min_level: LogLevel,
}
