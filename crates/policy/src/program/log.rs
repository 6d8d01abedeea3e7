//! Where log lines go, resolved (configuration manual, section 4.2 "log").

use config::spec::{LogLevel, SyslogFormat};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A target's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogAddress {
    /// UDP; port 514 where none was written.
    Inet(SocketAddr),
    /// A UNIX datagram socket.
    Unix(PathBuf),
    /// An abstract UNIX datagram socket: what stands behind the NUL, padded to 107 bytes for `abns@`.
    Abstract(Vec<u8>),
    /// `stdout`, `stderr`, `fd@n`.
    Descriptor(i32),
}

/// `sample <ranges>:<size>`: out of every `size` lines, those whose number (from 1) is in one of the ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// First and last number of each range, both included.
    pub ranges: Vec<(u32, u32)>,
    /// Lines of a round.
    pub size: u32,
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
    /// `sample`; `None`: every line.
    pub sample: Option<Sample>,
    /// Facility number, 0 to 23.
    pub facility: u8,
    /// Lines less severe than this are not sent.
    pub max_level: LogLevel,
    /// Lines more severe than this are sent with this severity.
    pub min_level: LogLevel,
}
