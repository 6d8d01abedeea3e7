//! Relays of log lines (configuration manual, section 12.6).

use super::{BindSpec, LogSpec};
use crate::span::{Span, Spanned};

/// `option host`: treatment of the host name in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogHost {
    Replace,
    #[default]
    Fill,
    Keep,
    Append,
}

/// A `log-forward` section.
#[derive(Debug, Clone, PartialEq)]
pub struct LogForwardSpec {
    pub span: Span,
    pub name: Spanned<String>,
    /// `bind` lines: messages over stream connections.
    pub binds: Vec<BindSpec>,
    /// `dgram-bind` lines: messages as datagrams.
    pub datagrams: Vec<BindSpec>,
    /// `maxconn`; default 10.
    pub maxconn: Option<u32>,
    /// `backlog`.
    pub backlog: Option<u32>,
    /// `timeout client`, milliseconds.
    pub timeout_client: Option<u64>,
    /// `option assume-rfc6587-ntf`.
    pub lines_only: bool,
    /// `option dont-parse-log`.
    pub unparsed: bool,
    /// `option host`.
    pub host: LogHost,
    /// `log global`.
    pub logs_globally: bool,
    /// `log` lines; `log global` adds the global ones.
    pub logs: Vec<LogSpec>,
}
