//! Transfers between ends in memory; a script gives the sizes of reads and writes. Owns the ends and the polls;
//! must never wait.

use std::io;
use std::task::{Context, Poll, Waker};

use base::buffer::Buffer;
use weir_conn::flow::{ByteSink, ByteSource, Flow, FlowError, FlowProgress, FlowStep, body_buffer};
use wire::http::Framing;

use crate::model::{Case, Coding, End, Outcome, judge};

/// The sizes of successive reads or writes, repeated; 0 is a pause.
#[derive(Clone, Debug)]
pub struct Script(pub Vec<usize>);

impl Script {
    fn at(&self, turn: &mut usize) -> usize {
        *turn += 1;
        self.0[*turn % self.0.len()]
    }
}

struct Source {
    bytes: Vec<u8>,
    at: usize,
    script: Script,
    turn: usize,
    /// The result of a read after the bytes; `None`: there must be no such read.
    end: Option<io::Result<usize>>,
    /// Whether the end was returned.
    ended: bool,
    mark: usize,
    at_hand: bool,
}

impl ByteSource for Source {
    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        assert!(buffer.room() > 0, "a read without room is taken for the end");
        assert!(!self.ended, "read behind the end");
        let most = self.script.at(&mut self.turn);
        if most == 0 {
            return Poll::Pending;
        }
        if self.at == self.bytes.len() {
            self.ended = true;
            return Poll::Ready(self.end.take().expect("read behind the message"));
        }
        let count = most.min(buffer.room()).min(self.bytes.len() - self.at);
        assert!(buffer.push(&self.bytes[self.at..self.at + count]));
        self.at += count;
        Poll::Ready(Ok(count))
    }

    fn set_receive_low_water(&mut self, bytes: usize) -> io::Result<()> {
        self.mark = bytes;
        Ok(())
    }

    fn is_quiet(&self) -> bool {
        self.turn.is_multiple_of(2)
    }

    fn is_at_hand(&self) -> bool {
        self.at_hand
    }
}

struct Sink {
    taken: Vec<u8>,
    script: Script,
    turn: usize,
    /// The number of bytes after which it fails.
    fails: usize,
}

impl ByteSink for Sink {
    fn poll_write(
        &mut self,
        _: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
        _: bool,
    ) -> Poll<io::Result<usize>> {
        assert!(head.len() + body.len() > 0, "a write of nothing");
        let most = self.script.at(&mut self.turn);
        if most == 0 {
            return Poll::Pending;
        }
        if self.taken.len() == self.fails {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let mut left = most.min(self.fails - self.taken.len());
        let before = self.taken.len();
        for part in [head, body] {
            let count = left.min(part.len());
            self.taken.extend_from_slice(&part.data()[..count]);
            part.consume(count);
            left -= count;
        }
        Poll::Ready(Ok(self.taken.len() - before))
    }

    fn segment_size(&self) -> io::Result<usize> {
        Ok(1_460)
    }

    fn send_capacity(&self) -> io::Result<usize> {
        Ok(self.script.0[0] * 16)
    }
}

/// A transfer in progress.
struct Transfer<'a> {
    case: &'a Case,
    flow: Flow,
    source: Source,
    sink: Sink,
    /// The index of the sink.
    sinks: u64,
    moved: FlowProgress,
    /// Bytes written to earlier sinks.
    written_before: usize,
}

pub fn run(case: &Case, reads: &Script, writes: &Script, at_hand: bool) {
    let sent = case.sent();
    let (arrived, end) = match case.end {
        End::SourceCloses(at) => (at.min(sent.bytes.len()), Some(Ok(0))),
        End::SourceFails(at) => (at.min(sent.bytes.len()), Some(Err(io::ErrorKind::ConnectionReset.into()))),
        _ if case.coding == Coding::UntilClose => (sent.bytes.len(), Some(Ok(0))),
        _ => (sent.bytes.len(), None),
    };
    let bytes = sent.bytes[..arrived].to_vec();
    let mut early = body_buffer();
    let length = case.early.min(arrived).min(early.room());
    assert!(early.push(&bytes[..length]));
    let fails = if let End::SinkFails(at) = case.end { at } else { usize::MAX };
    let source = Source { bytes, at: length, script: reads.clone(), turn: 0, end, ended: false, mark: 1, at_hand };
    let sink = Sink { taken: Vec::new(), script: writes.clone(), turn: 0, fails };
    let flow = Flow::idle();
    let mut transfer =
        Transfer { case, flow, source, sink, sinks: 0, moved: FlowProgress::default(), written_before: 0 };
    let result = transfer.start(early, length, sent.framing, sent.body).and_then(|()| transfer.drive(sent.body));
    let result = result.map_err(|error| match error {
        FlowError::Read(_) => "read",
        FlowError::Truncated => "truncated",
        FlowError::Write(_) => "write",
        FlowError::Malformed(_) => "malformed",
        FlowError::Refused => "refused",
    });
    assert_eq!(result.is_ok(), transfer.flow.is_finished());
    if matches!(result, Err("read" | "truncated" | "malformed")) {
        transfer.flush();
    }
    assert_eq!(transfer.moved.written, transfer.written_before + transfer.sink.taken.len());
    assert!(result.is_err() || transfer.source.mark <= 1, "a low-water mark that nobody lowers");
    let rest = transfer.flow.take_rest().data().to_vec();
    if result.is_ok() {
        let body = sent.body.min(arrived);
        assert_eq!(transfer.moved.read, body - length.min(body), "bytes of the body that were read");
    }
    let Transfer { sink, source, sinks, .. } = transfer;
    let rest = if result.is_ok() { rest } else { Vec::new() };
    judge(case, &Outcome { result, got: sink.taken, rest, consumed: source.at }, sinks, true);
}

impl Transfer<'_> {
    fn start(
        &mut self,
        early: Buffer,
        length: usize,
        framing: wire::http::Framing,
        body: usize,
    ) -> Result<(), FlowError> {
        let case = self.case;
        if let Some(filter) = case.filter() {
            self.flow.set_body_filter(filter);
        }
        self.write_head();
        let used = self.flow.start(early, framing, case.chunked)?;
        let expected = if self.flow.source_ended() { length.min(body) } else { length };
        assert_eq!(used, expected, "bytes of the input that belong to the body");
        if case.recorded {
            self.flow.record();
        }
        self.flow.closes = case.closes;
        Ok(())
    }

    fn write_head(&mut self) {
        let text = self.case.head_text(self.sinks);
        if !text.is_empty() {
            assert!(self.flow.head_mut().push(&text));
        }
    }

    fn drive(&mut self, body: usize) -> Result<(), FlowError> {
        let mut context = Context::from_waker(Waker::noop());
        let most = 100 * (self.source.bytes.len() + 1_000);
        let mut abandoned = false;
        for number in 0..most {
            let step = if abandoned {
                self.flow.poll_drain(&mut context, &mut self.source, &mut self.moved)?
            } else {
                self.flow.poll(&mut context, &mut self.source, &mut self.sink, &mut self.moved)?
            };
            assert!(step != FlowStep::Held || self.flow.held_until().is_some(), "held for ever");
            let came = self.source.ended || self.source.at >= body;
            assert!(!self.flow.source_ended() || came, "an end was seen that has not come");
            match self.case.end {
                End::Abandoned(polls) if polls == number => {
                    abandoned = true;
                    self.flow.abandon_sink();
                }
                End::Rewound(one, other) if one == number || one + other == number => {
                    self.rewind();
                    continue;
                }
                _ => {}
            }
            match step {
                FlowStep::Finished if abandoned || self.flow.is_finished() => return Ok(()),
                FlowStep::Finished => panic!("finished with something to write"),
                FlowStep::Held | FlowStep::Exhausted | FlowStep::AwaitsSource | FlowStep::AwaitsSink => {}
            }
        }
        panic!("no end after {most} polls");
    }

    /// After an error of the source, the owner's last bytes are written, and none that were not decoded.
    fn flush(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        let mut polls = 0..1_000_000;
        while polls.next().is_some() {
            let flushed = self.flow.poll_flush(&mut context, &mut self.sink, &mut self.moved);
            if let Poll::Ready(result) = flushed {
                return result.expect("the sink takes it");
            }
        }
        panic!("it is never flushed");
    }

    /// Sends all of it to another sink, if it was recorded.
    fn rewind(&mut self) {
        if !self.flow.is_recorded() {
            assert!(self.case.payload > 500, "a short body was not recorded");
            return;
        }
        assert!(self.flow.rewind());
        self.sinks += 1;
        self.write_head();
        self.written_before += std::mem::take(&mut self.sink.taken).len();
    }
}

/// The number of writes for a short answer, depending on whether its source has the payload in memory.
pub fn writes(at_hand: bool) -> usize {
    let script = Script(vec![100_000]);
    let bytes = b"payload".to_vec();
    let mut source =
        Source { bytes, at: 0, script: script.clone(), turn: 0, end: None, ended: false, mark: 1, at_hand };
    let mut sink = Sink { taken: Vec::new(), script, turn: 0, fails: usize::MAX };
    let (mut flow, mut moved) = (Flow::idle(), FlowProgress::default());
    assert!(flow.head_mut().push(b"head "));
    assert!(flow.start(Buffer::empty(), Framing::Length(7), false).is_ok());
    let mut context = Context::from_waker(Waker::noop());
    while !flow.is_finished() {
        assert!(flow.poll(&mut context, &mut source, &mut sink, &mut moved).is_ok());
    }
    assert_eq!(sink.taken, b"head payload");
    sink.turn
}
