//! Reads and writes by other means than a stream's own: splicing moves bytes past the process. How much a stream takes.
//! Must never interpret a byte.

use std::io;
use std::task::{Context, Poll};

use super::{Socket, Stream, Want};

impl Stream {
    /// Bytes that the socket's send buffer still takes, about: the kernel counts its own overhead with them, and moves the
    /// limit with the connection's window. 0: it is full. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn send_capacity(&self) -> io::Result<usize> {
        self.socket.send_capacity()
    }

    /// Bytes that were written and that the kernel has not sent yet. A system call.
    pub fn unsent(&self) -> usize {
        self.socket.unsent()
    }

    /// Bytes that were written and that the peer's kernel has not acknowledged yet. A system call.
    pub fn unacknowledged(&self) -> usize {
        self.socket.unacknowledged()
    }

    /// Ends the effect of [`Stream::set_linger_zero`]: dropping the stream ends the connection in order again.
    ///
    /// # Errors
    /// The socket's.
    pub fn clear_linger(&mut self) -> io::Result<()> {
        self.socket.clear_linger()
    }

    /// Reads by other means than `poll_read`: `read` moves bytes out of the socket and says how many of how much room.
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
                    // A splice may move less than there is: only an answer of "nothing" drains.
                    Some(count) => {
                        source.has_read(room, room);
                        worker.spend_bytes(count);
                        return Poll::Ready(Ok(count));
                    }
                    None => source.has_read(0, room.max(1)),
                }
            }
            self.wait(worker, source, context, Want::Read)?;
            Poll::Pending
        })
    }

    /// Writes by other means than `poll_write`: `send` moves bytes into the socket, of `offered` ones.
    pub(in crate::net) fn poll_send_by(
        &mut self,
        context: &Context<'_>,
        offered: usize,
        send: impl FnOnce(&Socket) -> io::Result<Option<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.poll_send(context, offered, send)
    }
}
