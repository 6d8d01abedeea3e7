//! Connections that are passed as descriptors over a connected UNIX socket. Must never interpret the bytes that come with them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use super::{Address, Socket};
use crate::sys;

/// Maximum number of messages that one attempt to accept examines.
const LOOKED_AT: usize = 8;

/// Takes a connection that was passed over a carrier; `None`: none has arrived. Descriptors of messages other than one
/// connected stream socket are closed. `has_ended` is set if the other end of the carrier is closed.
pub(super) fn accept(carrier: &Socket, has_ended: &mut bool) -> io::Result<Option<(Socket, Address)>> {
    let Some(number) = carrier.descriptor() else { return Ok(None) };
    for _ in 0..LOOKED_AT {
        let (mut place, mut came) = ([0; 64], Vec::new());
        match sys::passing::receive(number, &mut place, &mut came) {
            Ok(None) => return Ok(None),
            Ok(Some(0)) => {
                *has_ended = true;
                return Ok(None);
            }
            Ok(Some(_)) => {}
            // Too many descriptors: all of them are closed.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => continue,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                *has_ended = true;
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let [fd] = &came[..] else { continue };
        let is_connected =
            matches!(sys::socket::option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TYPE), Ok(libc::SOCK_STREAM));
        let peer = sys::socket::peer_address(fd.as_raw_fd()).ok().filter(|_| is_connected);
        if let Some(peer) = peer
            && sys::set_nonblocking(fd).is_ok()
            && let Some(fd) = came.pop()
        {
            return Ok(Some((Socket::Os(fd.into()), peer)));
        }
    }
    // The driver reports again if there are more.
    Ok(None)
}

/// Connects over a carrier: passes one end of a new socket pair, and returns the other one.
///
/// # Errors
/// From creating the pair (`true`), or from passing it: `WouldBlock` if the receiver has not taken the earlier ones.
pub(super) fn connect(carrier: RawFd) -> Result<OwnedFd, (bool, io::Error)> {
    let (own, other) = sys::passing::pair(libc::SOCK_STREAM).map_err(|error| (true, error))?;
    let sent =
        sys::passing::send(carrier, &[0], &[other.as_fd()], libc::MSG_DONTWAIT).map_err(|error| (false, error))?;
    sent.map(|_| own).ok_or_else(|| (false, io::ErrorKind::WouldBlock.into()))
}
