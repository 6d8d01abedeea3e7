//! Reports about datagrams that were sent and did not arrive (`IP_RECVERR`, ip(7)): from a socket's queue of errors.
//!
//! Nothing here may interpret an error.

use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

use super::control_data::{self, ReportedError};
use super::receive_messages::decode;

/// Space for the control data of a report, in words of eight bytes.
const CONTROL_WORDS: usize = 32;

/// A report about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The destination of the datagram.
    pub(crate) peer: SocketAddr,
    /// The address that the report was sent to.
    pub(crate) local_ip: Option<IpAddr>,
    pub(crate) error: i32,
    /// The host that has sent the report; `None`: this host.
    pub(crate) offender: Option<IpAddr>,
}

/// Removes the first report from the queue of errors. `Ok(None)`: it is empty.
///
/// # Errors
/// From the socket, and `InvalidData` for a report that names no destination or no error: it is removed.
pub(crate) fn take(fd: RawFd) -> io::Result<Option<Report>> {
    // SAFETY: all bytes zero is a valid value of these plain structures.
    let (mut name, mut head): (libc::sockaddr_in6, libc::msghdr) = unsafe { mem::zeroed() };
    let (mut byte, mut words) = ([0_u8; 1], [0_u64; CONTROL_WORDS]);
    let mut slice = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
    head.msg_name = (&raw mut name).cast();
    head.msg_namelen = mem::size_of_val(&name) as libc::socklen_t;
    (head.msg_iov, head.msg_iovlen) = (&raw mut slice, 1);
    (head.msg_control, head.msg_controllen) = ((&raw mut words).cast(), mem::size_of_val(&words) as _);
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the message points to space for a name, for bytes and for control data, each of the given length.
    if super::attempt(|| unsafe { libc::recvmsg(fd, &raw mut head, flags) })?.is_none() {
        return Ok(None);
    }
    let written = mem::size_of_val(&words).min(head.msg_controllen as _);
    // SAFETY: the words are initialised, and `written` bytes are not more than they have.
    let control = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), written) };
    let report = decode(&name, head.msg_namelen).zip(control_data::read_error(control));
    let (peer, ReportedError { error, offender }) = report.ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(Report { peer, local_ip: control_data::read(control).local_ip, error, offender }))
}
