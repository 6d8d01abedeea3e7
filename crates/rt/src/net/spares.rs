//! Sockets of short connections, kept to connect again: creating and closing a socket costs more than a short
//! connection on it.
//!
//! A kept socket must never be connected, watched, or different from a new one except for `TCP_NODELAY`.

use std::os::fd::{AsRawFd, OwnedFd};

use super::{Address, ConnectOptions, OwnedSocket, Socket, Stream};
use crate::{current, sys};

/// Maximum number of sockets of one family that a worker keeps.
const MOST: usize = 128;

/// The kept sockets of a worker.
#[derive(Default)]
pub(crate) struct Spares {
    v4: Vec<OwnedFd>,
    v6: Vec<OwnedFd>,
}

impl Spares {
    fn of(&mut self, v6: bool) -> &mut Vec<OwnedFd> {
        if v6 { &mut self.v6 } else { &mut self.v4 }
    }
}

impl ConnectOptions {
    /// Whether a socket with these options equals a new one once its connection is reset.
    pub fn is_plain(&self) -> bool {
        self.is_brief
            && self.nodelay
            && !(self.transparent || self.reset_on_close || self.fast_open)
            && (self.source.is_none() && self.interface.is_none() && self.namespace.is_none())
            && (self.keepalive.is_none() && self.congestion_control.is_none() && self.md5_key.is_none())
            && (self.mss.is_none() && self.user_timeout.is_none() && self.unsent_limit.is_none())
            && (self.send_buffer.is_none() && self.receive_buffer.is_none())
            && (self.mark.is_none() && self.service_class.is_none())
    }
}

/// Takes a kept socket for a connection to `address` with those options, if there is one.
pub(super) fn take(address: &Address, options: &ConnectOptions) -> Option<OwnedFd> {
    let v6 = address.inet().filter(|_| options.is_plain())?.is_ipv6();
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
