//! Reads and writes other than a stream's own, such as splicing, which moves bytes past the process; and the send
//! capacity of a stream. Must never interpret a byte.

use std::io;
use std::task::{Context, Poll};

use super::{Interest, Socket, Stream};

impl Stream {
    /// Returns the approximate free space of the socket's send buffer in bytes: the kernel counts its own overhead as
    /// well, and moves the limit with the connection's window. 0: it is full. A system call.
    ///
    /// # Errors
    /// From the socket.
    pub fn send_capacity(&self) -> io::Result<usize> {
        self.socket.send_capacity()
    }

    /// Returns the number of bytes written that the kernel has not sent yet. A system call.
    pub fn unsent(&self) -> usize {
        self.socket.unsent()
    }

    /// Returns the number of bytes written that the peer's kernel has not acknowledged yet. A system call.
    pub fn unacknowledged(&self) -> usize {
        self.socket.unacknowledged()
    }

    /// Reverts [`Stream::set_linger_zero`]: dropping the stream ends the connection in order again.
    ///
    /// # Errors
    /// From the socket.
    pub fn clear_linger(&mut self) -> io::Result<()> {
        self.socket.clear_linger()
    }

    /// Reads by a function other than `poll_read`: `receive` moves up to `room` bytes out of the socket and returns
    /// their number.
    pub(in crate::net) fn poll_receive_by(
        &mut self,
        context: &Context<'_>,
        room: usize,
        receive: impl FnOnce(&Socket) -> io::Result<Option<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.with_source(|worker, source| {
            if source.may_read() {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                let received = receive(&self.socket)?;
                match received {
                    // A splice may move less than is available: only a result of "nothing" means drained.
                    Some(count) => {
                        source.has_read(room, room);
                        worker.spend_bytes(count);
                        return Poll::Ready(Ok(count));
                    }
                    None => source.has_read(0, room.max(1)),
                }
            }
            self.wait(worker, source, context, Interest::Read)?;
            Poll::Pending
        })
    }

    /// Writes by a function other than `poll_write`: `send` moves up to `offered` bytes into the socket.
    pub(in crate::net) fn poll_send_by(
        &mut self,
        context: &Context<'_>,
        offered: usize,
        send: impl FnOnce(&Socket) -> io::Result<Option<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.poll_send(context, offered, send)
    }
}
