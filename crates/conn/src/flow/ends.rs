//! What a flow reads from and writes to. Owns the operations that it needs of either; must never know what is behind them.

use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use rt::net::Pipe;
use wire::http::Fields;

use crate::transport::Transport;

/// A source of bytes.
pub trait ByteSource {
    /// Reads into the spare part of `buffer`; 0 is the end.
    ///
    /// # Errors
    /// The source's.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>>;

    /// Whether the last read has completed something: of frames that come in parts, all of one. Asked once for each read.
    #[inline]
    fn completes(&mut self) -> bool {
        true
    }

    /// The fields that came behind the payload, once a read has told its end.
    fn take_trailers(&mut self) -> Option<Box<Fields>> {
        None
    }

    /// Moves bytes into a pipe, at most `most`; 0 is the end.
    ///
    /// # Errors
    /// The source's; `InvalidInput` where it has no descriptor to splice from.
    fn poll_splice_into(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, most: usize) -> Poll<io::Result<usize>> {
        let _ = (cx, pipe, most);
        Poll::Ready(Err(io::ErrorKind::InvalidInput.into()))
    }

    /// Wakes readers only when so many bytes have come.
    ///
    /// # Errors
    /// The source's; `Unsupported` where it has no such mark.
    fn set_receive_low_water(&mut self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether the last read found nothing more, and nothing was reported since.
    fn is_quiet(&self) -> bool {
        true
    }

    /// Whether a read makes no system call: what there is goes out along with the head in front of it.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// Whether payload lies in memory that outlives the write: [`ByteSource::slices`] works.
    fn can_lend(&self) -> bool {
        false
    }

    /// Lends what comes next, in order, and returns how many slices that are: at least one that is not empty, unless the payload
    /// has ended.
    fn slices<'s>(&'s self, into: &mut [IoSlice<'s>]) -> usize {
        let _ = into;
        0
    }

    /// So many bytes of what was lent have been written.
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

    /// Writes slices with one call and returns how many bytes were written; nothing of them is kept.
    ///
    /// # Errors
    /// The sink's; `Unsupported` where [`ByteSink::takes_slices`] says so.
    fn poll_write_slices(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        let _ = (cx, slices, more);
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    /// Whether [`ByteSink::poll_write_slices`] works, and saves a copy.
    fn takes_slices(&self) -> bool {
        false
    }

    /// Whether a head is written by [`ByteSink::poll_write`] alone, because slices are payload.
    fn parts_heads(&self) -> bool {
        false
    }

    /// Writes what a pipe holds.
    ///
    /// # Errors
    /// The sink's; `InvalidInput` where it has no descriptor to splice to.
    fn poll_splice_from(&mut self, cx: &mut Context<'_>, pipe: &mut Pipe, more: bool) -> Poll<io::Result<usize>> {
        let _ = (cx, pipe, more);
        Poll::Ready(Err(io::ErrorKind::InvalidInput.into()))
    }

    /// Whether [`ByteSink::poll_splice_from`] works.
    fn can_splice(&self) -> bool {
        false
    }

    /// Bytes of a full segment.
    ///
    /// # Errors
    /// The sink's; `Unsupported` where it has no segments.
    fn segment_size(&self) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Bytes that may be written now without waiting, about.
    ///
    /// # Errors
    /// The sink's; `Unsupported` where that is not known.
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
