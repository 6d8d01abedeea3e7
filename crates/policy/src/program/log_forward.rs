//! Compiled `log-forward` sections (configuration manual, section 12.6). Must never hold a message.

use super::{Bind, LogTarget};
use config::spec::{LogHost, SyslogFormat};
use std::time::Duration;

/// A `log-forward` section.
#[derive(Debug, Clone, PartialEq)]
pub struct LogForward {
    /// Index in [`super::Program::log_forwards`].
    pub index: usize,
    pub name: Box<str>,
    /// `bind`: listeners for connections.
    pub binds: Vec<Bind>,
    /// `dgram-bind`: listeners for datagrams.
    pub datagrams: Vec<Bind>,
    /// `maxconn`; 10 by default.
    pub maxconn: u32,
    /// `timeout client`; `None` for no limit.
    pub timeout: Option<Duration>,
    /// `option assume-rfc6587-ntf`.
    pub lines_only: bool,
    /// `option dont-parse-log`.
    pub unparsed: bool,
    /// `option host`.
    pub host: LogHost,
    /// Targets with the format of relayed messages; `None` for the message's own format.
    pub targets: Vec<(LogTarget, Option<SyslogFormat>)>,
}
