//! Sources and sinks of a flow. Owns the operations that a flow needs of either; must never know what implements them.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use rt::net::Pipe;
use wire::http::Fields;

use crate::transport::Transport;

/// A source of bytes.
pub trait ByteSource {
    /// Reads into the free space of `buffer`; 0 is the end.
    ///
    /// # Errors
    /// The source's.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>>;

    /// Whether the last read completed something; for frames received in parts, a whole frame. Called once after each
    /// read.
    #[inline]
    fn completes(&mut self) -> bool {
        true
    }

    /// Takes the trailers that followed the payload, after a read has returned the end.
    fn take_trailers(&mut self) -> Option<Box<Fields>> {
        None
    }

    /// Moves at most `most` bytes into a pipe; 0 is the end.
    ///
    /// # Errors
    /// The source's; `InvalidInput` if it has no descriptor to splice from.
    fn poll_splice_into(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, most: usize) -> Poll<io::Result<usize>> {
        let _ = (cx, pipe, most);
        Poll::Ready(Err(io::ErrorKind::InvalidInput.into()))
    }

    /// Sets the number of bytes that have to be received before readers are woken (`SO_RCVLOWAT`).
    ///
    /// # Errors
    /// The source's; `Unsupported` if it has no such mark.
    fn set_receive_low_water(&mut self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether the last read emptied the source, and no readiness was reported since.
    fn is_quiet(&self) -> bool {
        true
    }

    /// Whether a read needs no system call. Its data is then sent together with the head before it.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// Whether the payload is in memory that outlives the write, so that [`ByteSource::slices`] can be used.
    fn can_lend(&self) -> bool {
        false
    }

    /// Lends the next bytes, in order, and returns the number of slices: at least one that is not empty, unless the
    /// payload has ended.
    fn slices<'s>(&'s self, into: &mut [IoSlice<'s>]) -> usize {
        let _ = into;
        0
    }

    /// Consumes `count` bytes of the slices lent, which were written.
    fn advance(&mut self, count: usize) {
        let _ = count;
    }
}

/// A sink for bytes.
pub trait ByteSink {
    /// Writes both buffers, `head` first, and consumes what was written. `more` announces that more data or a close
    /// follows at once.
    ///
    /// # Errors
    /// The sink's.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        more: bool,
    ) -> Poll<io::Result<usize>>;

    /// Writes slices with one call and returns the number of bytes written; none of them are kept.
    ///
    /// # Errors
    /// The sink's; `Unsupported` if [`ByteSink::takes_slices`] is false.
    fn poll_write_slices(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let _ = (cx, slices, more);
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Whether [`ByteSink::poll_write_slices`] is supported and saves a copy.
    fn takes_slices(&self) -> bool {
        false
    }

    /// Whether heads have to be written by [`ByteSink::poll_write`], because slices are taken as payload.
    fn parts_heads(&self) -> bool {
        false
    }

    /// Whether [`ByteSink::poll_write`] keeps the storage of a piece ([`rt::piece_buffer`]) instead of a copy of its bytes.
    fn keeps_buffers(&self) -> bool {
        false
    }

    /// Writes the bytes in a pipe.
    ///
    /// # Errors
    /// The sink's; `InvalidInput` if it has no descriptor to splice to.
    fn poll_splice_from(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, more: bool) -> Poll<io::Result<usize>> {
        let _ = (cx, pipe, more);
        Poll::Ready(Err(io::ErrorKind::InvalidInput.into()))
    }

    /// Whether [`ByteSink::poll_splice_from`] is supported.
    fn can_splice(&self) -> bool {
        false
    }

    /// The length of a full segment in bytes.
    ///
    /// # Errors
    /// The sink's; `Unsupported` if it has no segments.
    fn segment_size(&self) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The approximate number of bytes that can be written now without waiting.
    ///
    /// # Errors
    /// The sink's; `Unsupported` if that is not known.
    fn send_capacity(&self) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ByteSource for Transport {
    #[inline]
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        Transport::poll_read(self, cx, buffer)
    }

    fn poll_splice_into(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, most: usize) -> Poll<io::Result<usize>> {
        Transport::poll_splice_into(self, cx, pipe, most)
    }

    #[inline]
    fn set_receive_low_water(&mut self, bytes: usize) -> io::Result<()> {
        Transport::set_receive_low_water(self, bytes)
    }

    #[inline]
    fn is_quiet(&self) -> bool {
        Transport::is_quiet(self)
    }
}

impl ByteSink for Transport {
    #[inline]
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        Transport::poll_write(self, cx, head, body, more)
    }

    fn poll_write_slices(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        Transport::poll_write_slices(self, cx, slices, more)
    }

    fn takes_slices(&self) -> bool {
        Transport::takes_slices(self)
    }

    fn poll_splice_from(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, more: bool) -> Poll<io::Result<usize>> {
        Transport::poll_splice_from(self, cx, pipe, more)
    }

    fn can_splice(&self) -> bool {
        Transport::can_splice(self)
    }

    fn segment_size(&self) -> io::Result<usize> {
        Transport::segment_size(self)
    }

    fn send_capacity(&self) -> io::Result<usize> {
        Transport::send_capacity(self)
    }
}
