//! Rings (configuration manual, section 12.5).

use super::{AddressSpec, ServerTlsSpec, SyslogFormat};
use crate::span::{Span, Spanned};

/// Framing of lines on a connection: `log-proto` (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogProtocol {
    /// Each line ends with a newline (RFC 6587, section 3.4.2).
    #[default]
    Legacy,
    /// Each line is preceded by its length (RFC 6587, section 3.4.1).
    OctetCount,
}

/// A syslog server that receives the lines of a ring.
#[derive(Debug, Clone, PartialEq)]
pub struct RingServerSpec {
    pub span: Span,
    pub name: Spanned<String>,
    pub address: Spanned<AddressSpec>,
    /// `log-proto`.
    pub protocol: LogProtocol,
    /// `ssl`.
    pub tls: Option<Box<ServerTlsSpec>>,
}

/// A `ring` section, or the ring of `log tcp@…`.
#[derive(Debug, Clone, PartialEq)]
pub struct RingSpec {
    pub span: Span,
    /// Empty for `log tcp@…`.
    pub name: String,
    /// `description`; defaults to the name.
    pub description: Option<String>,
    /// `format`; `None`: the manual's default.
    pub format: Option<SyslogFormat>,
    /// `maxlen`: maximum length of a line in bytes; default 1024.
    pub maxlen: u32,
    /// `size` in bytes; `None`: `tune.bufsize`.
    pub size: Option<u32>,
    /// `backing-file`.
    pub backing_file: Option<String>,
    /// `timeout connect` in milliseconds; default 1000.
    pub timeout_connect: u64,
    /// `timeout server` in milliseconds; default 5000.
    pub timeout_server: u64,
    /// `server` lines.
    pub servers: Vec<RingServerSpec>,
}
