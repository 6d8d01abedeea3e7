//! Sockets of short connections, kept to connect again: creating and closing a socket costs more than a short
//! connection on it.
//!
//! A kept socket must never be connected, watched, or different from a new one except for `TCP_NODELAY`.

use std::os::fd::{AsRawFd, OwnedFd};

use super::{OwnedSocket, Socket, Stream};
use crate::{current, sys};

/// Maximum number of sockets of one family that a worker keeps.
const MOST: usize = 128;

/// Takes a kept socket of a family, if there is one, for a connection with plain options.
pub(super) fn take(v6: bool) -> Option<OwnedFd> {
    current::with(|worker| worker.spares.borrow_mut().of(v6).pop())
}

/// Ends a connection by a reset, and keeps its socket for the next short one. Only for streams whose options were plain
/// ([`ConnectOptions::is_plain`]); `v6`: the family of the connection.
pub fn reset(stream: Stream, v6: bool) {
    let OwnedSocket { socket } = stream.detach();
    match socket {
        Socket::Sim(socket) => socket.set_reset_on_close(),
        // A socket that cannot be disconnected is closed with a reset.
        Socket::Os(fd) if sys::socket::disconnect(fd.as_raw_fd()).is_err() => {
            let _ = Socket::Os(fd).set_linger_zero();
        }
        Socket::Os(fd) => current::with(|worker| {
            let mut spares = worker.spares.borrow_mut();
            let kept = spares.of(v6);
            if kept.len() < MOST {
                kept.push(fd.into());
            }
        }),
    }
}
