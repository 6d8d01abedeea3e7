//! The end of a transport, in order or by a reset, and the bytes still to be sent before it. Must never decide which.

use std::io;
use std::task::{Context, Poll};

use super::Transport;

/// The most bytes of input that one call drops.
pub(super) const AT_ONCE: usize = 256 << 10;

impl Transport {
    /// Shuts down the direction to the peer in order, after the rest of a pending write was sent.
    ///
    /// # Errors
    /// The socket's: `NotConnected` after a reset.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.shutdown_write(),
            Self::Tls(tls) => tls.end(),
            #[cfg(feature = "fakes")]
            Self::Records(records) => records.end(),
        }
    }

    /// Reads some bytes and drops them; 0 is the end. Sends the bytes that precede the end of the direction.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn poll_drop_input(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => stream.poll_drop(cx, AT_ONCE),
            Self::Tls(tls) => tls.poll_drop_input(cx),
            #[cfg(feature = "fakes")]
            Self::Records(records) => records.poll_drop_input(cx),
        }
    }

    /// Drops the input already received.
    pub(crate) fn drop_received(&mut self) {
        let stream = match self {
            Self::Plain(stream) => stream,
            Self::Tls(tls) => &mut **tls,
            #[cfg(feature = "fakes")]
            Self::Records(records) => &mut **records,
        };
        // The connection is closed even if this fails.
        let _ = stream.try_drop(AT_ONCE);
    }

    /// Sets whether dropping the transport resets the connection, without a `close_notify` alert. Set while a
    /// close-delimited message is sent, so that a failure of this process is not taken for the end of the message.
    pub fn set_resets(&mut self, resets: bool) {
        if let Self::Tls(tls) = self {
            tls.set_silent(resets);
        }
        // A socket that has failed cannot be closed in order.
        let _ = match self {
            Self::Plain(stream) => set(stream, resets),
            Self::Tls(tls) => set(tls, resets),
            #[cfg(feature = "fakes")]
            Self::Records(records) => set(records, resets),
        };
    }

    /// Gives up a pending write: the rest of it is sent while input is dropped.
    pub(crate) fn give_up_write(&mut self) {
        if let Self::Tls(tls) = self {
            tls.give_up_write();
        }
    }

    /// The number of bytes written that the kernel has not sent yet. A system call.
    pub(crate) fn unsent(&self) -> usize {
        match self {
            Self::Plain(stream) => stream.unsent(),
            Self::Tls(tls) => tls.unsent() + tls.unsealed(),
            #[cfg(feature = "fakes")]
            Self::Records(records) => records.unsent() + records.unsealed(),
        }
    }

    /// The number of bytes written that the peer's kernel has not acknowledged yet. A system call.
    pub(crate) fn unacknowledged(&self) -> usize {
        match self {
            Self::Plain(stream) => stream.unacknowledged(),
            Self::Tls(tls) => tls.unacknowledged() + tls.unsealed(),
            #[cfg(feature = "fakes")]
            Self::Records(records) => records.unacknowledged() + records.unsealed(),
        }
    }
}

fn set(stream: &mut rt::net::Stream, resets: bool) -> io::Result<()> {
    if resets { stream.set_linger_zero() } else { stream.clear_linger() }
}

impl super::tls::Tls {
    /// As [`Transport::poll_drop_input`]. Records that arrive after our `close_notify` are not decrypted.
    pub(super) fn poll_drop_input(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if !self.is_whole() {
            return self.poll_read(cx, &mut rt::buffer());
        }
        if let Poll::Ready(said) = self.poll_say(cx) {
            said?;
        }
        (**self).poll_drop(cx, AT_ONCE)
    }
}
