//! Compiled log targets (configuration manual, section 4.2 "log"). Must never send a line.

use super::LinkTls;
use config::spec::{LogLevel, LogProtocol, LogStep, LogSteps, SyslogFormat};
use expression::log_format::LogFormat;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The address of a log target.
#[derive(Debug, Clone, PartialEq)]
pub enum LogAddress {
    /// UDP; port 514 by default.
    Inet(SocketAddr),
    /// A UNIX datagram socket.
    Unix(PathBuf),
    /// An abstract UNIX datagram socket: the name after the NUL, padded to 107 bytes for `abns@`.
    Abstract(Vec<u8>),
    /// `stdout`, `stderr`, `fd@n`.
    Descriptor(i32),
    /// Index of a ring in [`super::Program::rings`].
    Ring(usize),
    /// `tcp@…`: the ring of a connection. Equal targets share the connection.
    Stream(Arc<Ring>),
    /// Index of a backend in `mode log` in [`super::Program::proxies`].
    Backend(usize),
    /// The OpenTelemetry collector of the current configuration.
    Telemetry,
}

/// The transport of lines to a server in `mode log`.
#[derive(Debug, Clone)]
pub enum LogServer {
    /// As datagrams.
    Datagrams,
    /// A connection with a ring of its own.
    Stream(Arc<Ring>),
}

impl PartialEq for LogServer {
    /// Compares everything except the location in the configuration.
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
    /// Returns the ring of the connection.
    pub fn ring(&self) -> Option<&Arc<Ring>> {
        match self {
            Self::Datagrams => None,
            Self::Stream(ring) => Some(ring),
        }
    }
}

/// `sample <ranges>:<size>`: of every `size` lines, those whose number (from 1) is in one of the ranges are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// First and last number of each range, inclusive.
    pub ranges: Vec<(u32, u32)>,
    /// Number of lines per round.
    pub size: u32,
}

/// The built-in ring for events without a sink.
pub const EVENTS: &str = "buf0";
/// The built-in ring for programs that set DNS records (configuration manual, section 12.8).
pub const PROVISIONING: &str = "dpapi";
/// Index of the ring [`PROVISIONING`].
pub const PROVISIONING_RING: usize = 1;

/// A ring (section 12.5), or the target of `log tcp@…`.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    /// Name; empty for `log tcp@…`.
    pub name: Box<str>,
    /// `description`; the name by default.
    pub description: Box<str>,
    /// `format`, which overrides that of the `log` line; `None` for the line's own.
    pub format: Option<SyslogFormat>,
    /// `maxlen`: maximum length of a line in bytes.
    pub maxlen: usize,
    /// `size` in bytes.
    pub size: usize,
    /// `backing-file`.
    pub backing_file: Option<Box<str>>,
    /// `timeout connect`.
    pub connect_timeout: Duration,
    /// `timeout server`: maximum time that lines wait for a connection.
    pub server_timeout: Duration,
    pub servers: Vec<RingServer>,
}

/// A syslog server of a ring.
#[derive(Debug, Clone, PartialEq)]
pub struct RingServer {
    pub name: Box<str>,
    pub address: SocketAddr,
    /// `log-proto`.
    pub protocol: LogProtocol,
    /// `ssl`.
    pub tls: Option<LinkTls>,
}

/// Log parameters of a proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLines {
    /// `log-format`.
    pub format: LogFormat,
    /// `error-log-format`: the format for connections without a valid request.
    pub error: Option<LogFormat>,
    /// `log-format-sd`.
    pub structured_data: Option<LogFormat>,
    /// `log-steps`; `None`: log once, when all values of the format are available.
    pub steps: Option<LogSteps>,
    /// `option dontlog-normal`: only errors are logged.
    pub dontlog_normal: bool,
    /// `option log-separate-errors`: errors are logged at level err.
    pub separate_errors: bool,
    /// `option logasap`: lines are written when the response's head is received.
    pub as_soon_as_possible: bool,
}

/// A `log-profile` (section 8.3.5).
#[derive(Debug, Clone, PartialEq)]
pub struct LogProfile {
    pub name: Box<str>,
    /// `log-tag`.
    pub tag: Option<Box<str>>,
    /// `on`, indexed by step.
    pub steps: [Option<ProfileStep>; LogStep::COUNT],
}

/// The parameters of a profile for one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileStep {
    /// Log nothing.
    pub drop: bool,
    /// The format; `None` for that of the proxy.
    pub format: Option<LogFormat>,
    /// The structured data; `None` for that of the proxy.
    pub structured_data: Option<LogFormat>,
}

impl LogProfile {
    /// Returns the parameters of a step: its own, else those of `any`.
    pub fn on(&self, step: LogStep) -> Option<&ProfileStep> {
        self.steps[step as usize].as_ref().or(self.steps[LogStep::Any as usize].as_ref())
    }

    /// Returns all formats of the profile.
    pub fn formats(&self) -> impl Iterator<Item = &LogFormat> {
        self.steps.iter().flatten().flat_map(|step| step.format.iter().chain(&step.structured_data))
    }
}

/// `unique-id-format` and `unique-id-header` of a frontend.
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueId {
    pub format: LogFormat,
    /// Name of the request field that contains the ID.
    pub header: Option<Box<[u8]>>,
}

impl LogLines {
    /// Creates parameters with a format and default values.
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

    /// Returns the time at which a line is written.
    pub fn moment(&self) -> LogMoment {
        match &self.format {
            format if format.is_default() => LogMoment::Request,
            format if self.as_soon_as_possible || !format.waits_for_end() => LogMoment::Answer,
            _ => LogMoment::End,
        }
    }
}

/// The time at which the line about a stream is written, at the latest its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMoment {
    /// When the connection is accepted (TCP) or the request's head is received (HTTP).
    Request,
    /// When the server connection is established (TCP) or the response's head is received (HTTP).
    Answer,
    /// At the end of the stream.
    End,
}

/// A `log` line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogTarget {
    pub address: LogAddress,
    /// `len`: maximum length of a line in bytes.
    pub length: usize,
    /// `format`; the default is `local`, or `rfc3164` with `log-send-hostname`.
    pub format: SyslogFormat,
    /// `profile`: index in [`super::Program::profiles`].
    pub profile: Option<usize>,
    /// `sample`; `None` for every line.
    pub sample: Option<Sample>,
    /// Facility, 0 to 23.
    pub facility: u8,
    /// Less severe lines are not sent.
    pub max_level: LogLevel,
    /// More severe lines are sent with this severity.
    pub min_level: LogLevel,
}
