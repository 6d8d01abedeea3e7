//! `log` lines and formats (configuration manual, sections 3.1, 4.2 "log" and 8).

use super::AddressSpec;
use crate::span::{Span, Spanned};

/// Syslog severities, most severe first; the number is the syslog code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
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

/// `format` of a `log` line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
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

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTargetSpec {
    /// A syslog server by UDP or a UNIX datagram socket.
    Address(AddressSpec),
    /// `stdout`, `stderr` or `fd@n`: descriptor number.
    Descriptor(i32),
    /// `ring@`: the name of a `ring` section.
    Ring(Spanned<String>),
    /// `tcp@`: a syslog server by TCP, through a ring of its own.
    Stream(AddressSpec),
}

/// One `log` line.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSpec {
    /// Where it is written.
    pub span: Span,
    /// The target.
    pub target: LogTargetSpec,
    /// `len`, bytes of a line at most; default 1024.
    pub length: u32,
    /// `format`; `None`: rfc3164 for addresses, raw text for descriptors as the manual says.
    pub format: Option<SyslogFormat>,
    /// `sample`: ranges and size; `None` means every line.
    pub sample: Option<(Vec<(u32, u32)>, u32)>,
    /// Facility number, 0 to 23.
    pub facility: u8,
    /// Lines less severe than this are not sent.
    pub max_level: LogLevel,
    /// Lines more severe than this are sent with this severity.
    pub min_level: Option<LogLevel>,
}

/// Which format a proxy's lines take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogFormatSpec {
    /// None of the options, and no format: "Connect from …".
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

/// What else a proxy says about its lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogLinesSpec {
    /// `log-format-sd`: structured data in the headers of RFC 5424.
    pub structured_data: Option<Spanned<String>>,
    /// `error-log-format`: the format of connections that brought no valid request.
    pub error: Option<Spanned<String>>,
    /// `option dontlog-normal`.
    pub dontlog_normal: bool,
    /// `option log-separate-errors`.
    pub separate_errors: bool,
    /// `option logasap`.
    pub as_soon_as_possible: bool,
}
