//! The kernel's data on a TCP connection (`TCP_INFO`).

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use crate::sys;

/// The state of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Round-trip time variance.
    pub rtt_variance: Duration,
    /// Segments sent but not acknowledged.
    pub unacked: u32,
    /// Of these, segments acknowledged out of order (SACK).
    pub sacked: u32,
    /// Segments presumed lost.
    pub lost: u32,
    /// Segments retransmitted but not acknowledged.
    pub retransmitted: u32,
    /// Forward acknowledgements; 0 on modern kernels.
    pub fackets: u32,
    /// Reordering distance up to which segments are not presumed lost.
    pub reordering: u32,
}

/// Offset in bytes of the structure's 32-bit numbers.
const NUMBERS_AT: usize = 8;
/// The number of 32-bit numbers that are read.
const NUMBERS: usize = 21;

pub(super) fn read(fd: RawFd) -> io::Result<TcpInfo> {
    let mut bytes = [0; NUMBERS_AT + 4 * NUMBERS];
    sys::socket::option_bytes(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let mut numbers = [0; NUMBERS];
    for (number, bytes) in numbers.iter_mut().zip(bytes[NUMBERS_AT..].as_chunks::<4>().0) {
        *number = u32::from_ne_bytes(*bytes);
    }
    let [_, _, _, _, unacked, sacked, lost, retransmitted, fackets, _, _, _, _, _, _, rtt, variance, .., reordering] =
        numbers;
    let micros = |micros: u32| Duration::from_micros(u64::from(micros));
    let (rtt, rtt_variance) = (micros(rtt), micros(variance));
    Ok(TcpInfo { rtt, rtt_variance, unacked, sacked, lost, retransmitted, fackets, reordering })
}
