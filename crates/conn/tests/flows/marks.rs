//! The low-water mark of a source beside a sink that takes what it gets, or not. Owns both ends; must never wait.

use std::io;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use weir_conn::flow::{ByteSink, ByteSource, Flow, FlowProgress, FlowStep};
use wire::http::Framing;

/// Bytes that the kernel of the sink keeps for its reader.
const ROOM: usize = 2 << 20;

/// A server that always has something.
struct Source {
    left: u64,
    highest_mark: usize,
    largest_read: usize,
}

impl ByteSource for Source {
    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.room());
        assert!(count > 0 && buffer.push(&vec![0; count]));
        self.left -= count as u64;
        self.largest_read = self.largest_read.max(count);
        Poll::Ready(Ok(count))
    }

    fn set_receive_low_water(&mut self, bytes: usize) -> io::Result<()> {
        self.highest_mark = self.highest_mark.max(bytes);
        Ok(())
    }
}

/// A client. One that reads nothing leaves everything to the kernel.
struct Sink {
    room: usize,
    reads: bool,
}

impl ByteSink for Sink {
    fn poll_write(
        &mut self,
        _: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        let mut written = 0;
        for part in [head, body] {
            let count = part.len().min(self.room);
            part.consume(count);
            written += count;
            self.room -= if self.reads { 0 } else { count };
        }
        if written == 0 { Poll::Pending } else { Poll::Ready(Ok(written)) }
    }

    fn segment_size(&self) -> io::Result<usize> {
        Ok(1_460)
    }

    fn send_capacity(&self) -> io::Result<usize> {
        Ok(self.room)
    }
}

/// The highest mark of a server whose answer has a body of so many bytes, and the most that is read of it at a time.
pub fn largest(body: u64, reads: bool) -> (usize, usize) {
    let mut source = Source { left: body, highest_mark: 0, largest_read: 0 };
    let mut sink = Sink { room: ROOM, reads };
    let (mut flow, mut moved) = (Flow::idle(), FlowProgress::default());
    assert!(flow.head_mut().push(b"head "));
    assert!(flow.start(Buffer::empty(), Framing::Length(body), false).is_ok());
    let mut context = Context::from_waker(Waker::noop());
    let mut stalled = 0;
    while !flow.is_finished() && stalled < 100 {
        let step = flow.poll(&mut context, &mut source, &mut sink, &mut moved).expect("neither end fails");
        if step == FlowStep::AwaitsSink {
            stalled += 1;
            // A reader that takes little at a time.
            sink.room += 16 * 1024;
        }
    }
    (source.highest_mark, source.largest_read)
}
