//! What the kernel knows of a TCP connection (`TCP_INFO`).

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use crate::sys;

/// A connection as the kernel sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// How much it varies.
    pub rtt_variance: Duration,
    /// Segments that were sent and not acknowledged.
    pub unacked: u32,
    /// Segments of them that were acknowledged out of order.
    pub sacked: u32,
    /// Segments that are thought lost.
    pub lost: u32,
    /// Segments that were sent again and not acknowledged.
    pub retransmitted: u32,
    /// Forward acknowledgements; modern kernels count none.
    pub fackets: u32,
    /// How far segments may come out of order before they are thought lost.
    pub reordering: u32,
}

/// Bytes in front of the structure's 32-bit numbers.
const NUMBERS_AT: usize = 8;
/// How many of the numbers are read.
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
