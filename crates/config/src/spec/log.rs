//! `log` lines and formats (configuration manual, sections 3.1, 4.2 "log" and 8).

use super::AddressSpec;
use crate::span::{Span, Spanned};

/// Syslog severities, most severe first; the number is the syslog code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    Emerg = 0,
    Alert = 1,
    Crit = 2,
    Err = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
    Debug = 7,
}

impl LogLevel {
    /// All levels with their names.
    pub const NAMES: &[(&str, Self)] = &[
        ("emerg", Self::Emerg),
        ("alert", Self::Alert),
        ("crit", Self::Crit),
        ("err", Self::Err),
        ("warning", Self::Warning),
        ("notice", Self::Notice),
        ("info", Self::Info),
        ("debug", Self::Debug),
    ];

    /// Returns the level of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }
}

/// Steps of a connection or transaction at which a line can be logged (configuration manual, sections 4.2
/// "log-steps" and 8.3.5, 4.4 "do-log").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LogStep {
    Accept,
    Request,
    Connect,
    Response,
    Close,
    QuicInitial,
    HttpRequest,
    HttpResponse,
    HttpAfterResponse,
    TcpRequestConnection,
    TcpRequestSession,
    TcpRequestContent,
    TcpResponseContent,
    /// A connection that ended before a transaction began; in profiles only.
    Error,
    /// Every step that a profile does not list.
    Any,
}

impl LogStep {
    /// Number of steps.
    pub const COUNT: usize = 15;
    /// All steps with their names: first those that `log-steps` accepts, then those of profiles.
    pub const NAMES: &[(&str, Self)] = &[
        ("accept", Self::Accept),
        ("request", Self::Request),
        ("connect", Self::Connect),
        ("response", Self::Response),
        ("close", Self::Close),
        ("quic-init", Self::QuicInitial),
        ("http-req", Self::HttpRequest),
        ("http-res", Self::HttpResponse),
        ("http-after-res", Self::HttpAfterResponse),
        ("tcp-req-conn", Self::TcpRequestConnection),
        ("tcp-req-sess", Self::TcpRequestSession),
        ("tcp-req-cont", Self::TcpRequestContent),
        ("tcp-res-cont", Self::TcpResponseContent),
        ("error", Self::Error),
        ("any", Self::Any),
    ];

    /// Returns the step of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, step)| *step)
    }

    /// Whether `log-steps` accepts the step.
    pub const fn is_of_streams(self) -> bool {
        !matches!(self, Self::Error | Self::Any)
    }
}

/// A set of steps (`log-steps`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogSteps(u16);

impl LogSteps {
    /// `all`.
    pub const ALL: Self = Self(u16::MAX);

    /// Adds a step.
    pub fn add(&mut self, step: LogStep) {
        self.0 |= 1 << step as u8;
    }

    /// Whether the set contains a step.
    pub const fn has(self, step: LogStep) -> bool {
        self.0 & (1 << step as u8) != 0
    }
}

/// A `log-profile` section (section 8.3.5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogProfileSpec {
    pub span: Span,
    pub name: String,
    /// `log-tag`.
    pub tag: Option<String>,
    /// `on`: one entry per step.
    pub steps: Vec<LogProfileStepSpec>,
}

/// Settings of a profile for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogProfileStepSpec {
    pub step: LogStep,
    /// Nothing is logged.
    pub drop: bool,
    /// `format`.
    pub format: Option<Spanned<String>>,
    /// `sd`.
    pub structured_data: Option<Spanned<String>>,
}

/// `format` of a `log` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyslogFormat {
    Rfc3164,
    Rfc5424,
    Local,
    Priority,
    Short,
    Timed,
    Iso,
    Raw,
}

/// Destination of log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTargetSpec {
    /// A syslog server over UDP or a UNIX datagram socket.
    Address(AddressSpec),
    /// `stdout`, `stderr` or `fd@n`: descriptor number.
    Descriptor(i32),
    /// `ring@`: the name of a `ring` section.
    Ring(Spanned<String>),
    /// `tcp@`: a syslog server over TCP, through a ring of its own.
    Stream(AddressSpec),
    /// `backend@`: the name of a backend in `mode log`.
    Backend(Spanned<String>),
    /// `otel@`: the collector of `otel-exporter`, Weir only.
    Telemetry,
}

/// One `log` line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSpec {
    pub span: Span,
    pub target: LogTargetSpec,
    /// `len`: maximum length of a line in bytes; default 1024.
    pub length: u32,
    /// `format`; `None`: rfc3164 for addresses, raw text for descriptors, as in the manual.
    pub format: Option<SyslogFormat>,
    /// `sample`: ranges and size; `None` means every line.
    pub sample: Option<(Vec<(u32, u32)>, u32)>,
    /// `profile`: the name of a `log-profile` section.
    pub profile: Option<Spanned<String>>,
    /// Facility number, 0 to 23.
    pub facility: u8,
    /// Lines less severe than this are not sent.
    pub max_level: LogLevel,
    /// Lines more severe than this are sent with this severity.
    pub min_level: Option<LogLevel>,
}

/// Log format of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogFormatSpec {
    /// The default without options and `log-format`: "Connect from …".
    #[default]
    Default,
    /// `option tcplog`.
    Tcp,
    /// `option tcplog clf`.
    TcpClf,
    /// `option httplog`.
    Http,
    /// `option httplog clf`.
    HttpClf,
    /// `option httpslog`.
    Https,
    /// `log-format`: its text.
    Custom(Spanned<String>),
}

/// Other log settings of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogLinesSpec {
    /// `log-format-sd`: structured data in the headers of RFC 5424.
    pub structured_data: Option<Spanned<String>>,
    /// `error-log-format`: the format for connections without a valid request.
    pub error: Option<Spanned<String>>,
    /// `log-steps`; `None`: determined by the format.
    pub steps: Option<LogSteps>,
    /// `unique-id-format`.
    pub unique_id: Option<Spanned<String>>,
    /// `unique-id-header`: the name of the field.
    pub unique_id_header: Option<String>,
    /// `option dontlog-normal`.
    pub dontlog_normal: bool,
    /// `option log-separate-errors`.
    pub separate_errors: bool,
    /// `option logasap`.
    pub as_soon_as_possible: bool,
}
