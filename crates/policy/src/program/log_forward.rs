//! Relays of log lines, ready to run (configuration manual, section 12.6).

use super::{Bind, LogTarget};
use config::spec::{LogHost, SyslogFormat};
use std::time::Duration;

/// A relay.
#[derive(Debug, Clone, PartialEq)]
pub struct LogForward {
    /// Its place in [`super::Program::log_forwards`].
    pub index: usize,
    /// Its name.
    pub name: Box<str>,
    /// `bind`: messages over connections.
    pub binds: Vec<Bind>,
    /// `dgram-bind`: messages as datagrams.
    pub datagrams: Vec<Bind>,
    /// `maxconn`; 10 where none was written.
    pub maxconn: u32,
    /// `timeout client`; `None` means no limit.
    pub timeout: Option<Duration>,
    /// `option assume-rfc6587-ntf`.
    pub lines_only: bool,
    /// `option dont-parse-log`.
    pub unparsed: bool,
    /// `option host`.
    pub host: LogHost,
    /// Where its messages go, and in which form; `None`: each in its own.
    pub targets: Vec<(LogTarget, Option<SyslogFormat>)>,
}
