//! Rings (configuration manual, section 12.5).

use super::{AddressSpec, ServerTlsSpec, SyslogFormat};
use crate::span::{Span, Spanned};

/// How lines are told apart on a connection: `log-proto` (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogProtocol {
    /// Each line ends with a newline (RFC 6587, section 3.4.2).
    #[default]
    Legacy,
    /// Each line follows its length (RFC 6587, section 3.4.1).
    OctetCount,
}

/// A syslog server that gets the lines of a ring.
#[derive(Debug, Clone, PartialEq)]
pub struct RingServerSpec {
    /// Where it is written.
    pub span: Span,
    /// Its name.
    pub name: Spanned<String>,
    /// Where it listens.
    pub address: Spanned<AddressSpec>,
    /// `log-proto`.
    pub protocol: LogProtocol,
    /// `ssl`.
    pub tls: Option<Box<ServerTlsSpec>>,
}

/// A `ring` section, or what `log tcp@…` stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct RingSpec {
    /// Where it starts.
    pub span: Span,
    /// Its name; empty for `log tcp@…`.
    pub name: String,
    /// `description`; the name where none is written.
    pub description: Option<String>,
    /// `format`; `None`: the manual's default.
    pub format: Option<SyslogFormat>,
    /// `maxlen`, bytes of a line at most; default 1024.
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
