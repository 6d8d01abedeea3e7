//! The origin's protocols other than HTTP: a FastCGI responder and an SPOP agent. Each is a state machine from bytes to
//! bytes; the I/O is here, too. Must never wait without a timeout, nor hold more than a request's parameters.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Buffer;
use conn::transport::Transport;
use rt::Timer;
use wire::fcgi;
use wire::haterm::{Chunks, Parameters};
use wire::peers::encode_integer;
use wire::spop::{self, Data};

use super::pattern::{Content, Patterns};
use super::worker::Worker;

/// Timeout for data from a client.
const IDLE: Duration = Duration::from_secs(300);
/// Timeout without progress of a response.
const STALL: Duration = Duration::from_secs(60);
/// Maximum size of a request's parameters, in bytes.
const PARAMETERS: usize = 64 * 1024;
/// Protocol status of a request (FastCGI specification, section 5.5).
const COMPLETE: u8 = 0;
const CANNOT_MULTIPLEX: u8 = 1;
/// Maximum size of a body's part in a record, in bytes.
const PIECE: usize = 32 * 1024;

/// Protocol of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Http,
    Fcgi,
    Spop,
}

/// State machine of a protocol.
trait Machine {
    /// Processes bytes, and returns their number; appends the reply. `None`: the connection has ended.
    fn take(&mut self, input: &[u8], output: &mut Vec<u8>) -> Option<usize>;

    /// Appends the next part of a long response, after the previous output has been written. Returns false if there is
    /// none.
    fn go_on(&mut self, output: &mut Vec<u8>) -> bool {
        let _ = output;
        false
    }

    /// Whether no further replies follow.
    fn is_over(&self) -> bool;
}

/// Serves a connection to its end.
pub async fn serve(worker: Rc<Worker>, stream: Transport, protocol: Protocol) {
    match protocol {
        Protocol::Fcgi => run(&worker, stream, Responder::new(&worker.patterns)).await,
        Protocol::Spop => run(&worker, stream, Agent::default()).await,
        Protocol::Http => {}
    }
}

async fn run(worker: &Worker, mut stream: Transport, mut machine: impl Machine) {
    let (mut timer, mut input, mut output) = (Timer::new(), rt::buffer(), Vec::new());
    loop {
        let taken = machine.take(input.data(), &mut output);
        input.consume(taken.unwrap_or(0));
        loop {
            let mut left = &output[..];
            while !left.is_empty() {
                timer.arm(Some(rt::now() + STALL));
                let write =
                    |context: &mut Context<'_>| stream.poll_write_slices(context, &[io::IoSlice::new(left)], false);
                let Some(written) = within(&mut timer, write).await else { return };
                left = &left[written..];
            }
            output.clear();
            if !machine.go_on(&mut output) {
                break;
            }
        }
        if taken.is_none() || machine.is_over() || worker.is_stopping() {
            return;
        }
        if input.room() == 0 {
            input.compact();
        }
        timer.arm(Some(rt::now() + IDLE));
        let read = within(&mut timer, |context| read(worker, &mut stream, &mut input, context)).await;
        if read.is_none_or(|count| count == 0) {
            return;
        }
    }
}

fn read(worker: &Worker, stream: &mut Transport, input: &mut Buffer, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
    match stream.poll_read(cx, input) {
        Poll::Pending if worker.is_stopping() => Poll::Ready(Ok(0)),
        other => other,
    }
}

/// Returns the result of an attempt; `None` when it fails, or when the timer expires.
async fn within<T>(timer: &mut Timer, mut attempt: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>) -> Option<T> {
    poll_fn(|context| match attempt(context) {
        Poll::Ready(done) => Poll::Ready(done.ok()),
        Poll::Pending => timer.poll_expired(context).map(|()| None),
    })
    .await
}

/// A FastCGI application that responds as a request's query specifies, one request at a time on a connection.
struct Responder<'p> {
    patterns: &'p Patterns,
    /// The record that is being read: its type, its request, and the number of missing bytes of its content and its
    /// padding.
    record: Option<(u8, u16, usize, usize)>,
    /// The open request, and whether the connection is kept after it.
    request: Option<(u16, bool)>,
    parameters: Vec<u8>,
    /// Number of bytes of the body that are still to be sent, and of those that were sent.
    left: u64,
    sent: u64,
    /// The response has started.
    answers: bool,
    over: bool,
}

impl<'p> Responder<'p> {
    fn new(patterns: &'p Patterns) -> Self {
        let parameters = Vec::new();
        Self { patterns, record: None, request: None, parameters, left: 0, sent: 0, answers: false, over: false }
    }

    /// Processes a part of a record's content; `whole`: the last one. Returns false if it is invalid.
    fn content(&mut self, kind: u8, request: u16, data: &[u8], empty: bool, whole: bool, out: &mut Vec<u8>) -> bool {
        let is_own = self.request.is_some_and(|own| own.0 == request);
        match kind {
            // The role is in the first two bytes, the flags in the third; the record is short, so it must be complete.
            fcgi::kind::BEGIN_REQUEST if !whole || data.len() < 3 => return false,
            fcgi::kind::BEGIN_REQUEST if self.request.is_some() => end(out, request, CANNOT_MULTIPLEX),
            fcgi::kind::BEGIN_REQUEST => {
                self.request = Some((request, data[2] & 1 == 1));
                self.parameters.clear();
            }
            fcgi::kind::PARAMS if is_own => {
                if self.parameters.len() + data.len() > PARAMETERS {
                    return false;
                }
                self.parameters.extend_from_slice(data);
            }
            fcgi::kind::STDIN if is_own && empty => self.begin_answer(request, out),
            fcgi::kind::ABORT_REQUEST if is_own && whole => self.end_answer(request, out),
            _ => {}
        }
        true
    }

    fn begin_answer(&mut self, request: u16, out: &mut Vec<u8>) {
        let target = fcgi::parameter(&self.parameters, b"QUERY_STRING").unwrap_or_default();
        let asked = Parameters::read(&[b"/?", target].concat(), rt::random);
        let mut head = Vec::new();
        if asked.status != 200 {
            head.extend_from_slice(format!("Status: {}\r\n", asked.status).as_bytes());
        }
        head.extend_from_slice(
            format!("Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n", asked.size).as_bytes(),
        );
        record(out, fcgi::kind::STDOUT, request, &head);
        (self.left, self.sent, self.answers) = (asked.size, 0, true);
        self.go_on(out);
    }

    fn end_answer(&mut self, request: u16, out: &mut Vec<u8>) {
        record(out, fcgi::kind::STDOUT, request, &[]);
        end(out, request, COMPLETE);
        self.over = self.request.is_none_or(|own| !own.1);
        (self.request, self.answers) = (None, false);
    }
}

impl Machine for Responder<'_> {
    fn take(&mut self, input: &[u8], output: &mut Vec<u8>) -> Option<usize> {
        let mut rest = input;
        while !self.answers && !self.over {
            match self.record {
                None => {
                    let Some((header, behind)) = rest.split_first_chunk::<{ fcgi::HEADER }>() else { break };
                    let [version, kind, id_high, id_low, high, low, padding, _] = *header;
                    let request = u16::from_be_bytes([id_high, id_low]);
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    if version != fcgi::VERSION {
                        return None;
                    }
                    // BEGIN_REQUEST is processed only when it is complete.
                    if kind == fcgi::kind::BEGIN_REQUEST && behind.len() < length {
                        break;
                    }
                    rest = behind;
                    self.record = Some((kind, request, length, usize::from(padding)));
                    if length == 0 && !self.content(kind, request, &[], true, true, output) {
                        return None;
                    }
                }
                Some((kind, request, length, padding)) => {
                    let (data, behind) = rest.split_at(length.min(rest.len()));
                    let whole = data.len() == length;
                    if length > 0 && !data.is_empty() && !self.content(kind, request, data, false, whole, output) {
                        return None;
                    }
                    let skipped = if whole { padding.min(behind.len()) } else { 0 };
                    rest = &behind[skipped..];
                    let missing = (length - data.len(), padding - skipped);
                    self.record = (missing != (0, 0)).then_some((kind, request, missing.0, missing.1));
                    if self.record.is_some() {
                        break;
                    }
                }
            }
        }
        Some(input.len() - rest.len())
    }

    fn go_on(&mut self, output: &mut Vec<u8>) -> bool {
        let Some((request, _)) = self.request.filter(|_| self.answers) else { return false };
        if self.left > 0 {
            let content = self.patterns.from(Content::of(Chunks::None, false), self.sent);
            let most = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE).min(content.len());
            record(output, fcgi::kind::STDOUT, request, &content[..most]);
            self.left -= most as u64;
            self.sent += most as u64;
        }
        if self.left == 0 {
            self.end_answer(request, output);
        }
        true
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

fn record(out: &mut Vec<u8>, kind: u8, request: u16, content: &[u8]) {
    debug_assert!(content.len() <= fcgi::MAX_CONTENT, "a piece fits into a record");
    out.extend_from_slice(&fcgi::header(kind, request, content.len() as u16));
    out.extend_from_slice(content);
}

fn end(out: &mut Vec<u8>, request: u16, status: u8) {
    record(out, fcgi::kind::END_REQUEST, request, &[0, 0, 0, 0, status, 0, 0, 0]);
}

/// An agent that sets one variable, `score` of the transaction, for every message.
#[derive(Default)]
struct Agent {
    greeted: bool,
    over: bool,
}

/// Returns the maximum size of a frame in bytes: it fits into a buffer.
fn largest_frame() -> u32 {
    u32::try_from(rt::buffer_size() - spop::LENGTH).unwrap_or(spop::SMALLEST_FRAME)
}

impl Machine for Agent {
    fn take(&mut self, input: &[u8], output: &mut Vec<u8>) -> Option<usize> {
        let mut taken = 0;
        while let Some((frame, length)) = spop::next_frame(&input[taken..], largest_frame()).ok()? {
            taken += length;
            match frame.kind {
                spop::kind::HAPROXY_HELLO if !self.greeted => {
                    self.greeted = true;
                    self.over = is_check(frame.payload);
                    output.extend_from_slice(&greeting());
                }
                spop::kind::NOTIFY if self.greeted => acknowledge(output, frame.stream, frame.id),
                _ => return None,
            }
        }
        Some(taken)
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Whether a HELLO frame is that of a health check.
fn is_check(mut payload: &[u8]) -> bool {
    while !payload.is_empty() {
        let (Ok(name), Ok(value)) = (spop::take_string(&mut payload), Data::take(&mut payload)) else { return false };
        if name == b"healthcheck" && value == Data::Bool(true) {
            return true;
        }
    }
    false
}

/// Returns the payload of the AGENT-HELLO frame.
fn greeting() -> Vec<u8> {
    let mut items = Vec::new();
    let all: [(&[u8], Data<'_>); 3] = [
        (b"version", Data::Str(b"2.0")),
        (b"max-frame-size", Data::Uint32(largest_frame())),
        (b"capabilities", Data::Str(b"pipelining")),
    ];
    for (name, value) in all {
        encode_integer(&mut items, name.len() as u64);
        items.extend_from_slice(name);
        value.encode(&mut items);
    }
    let mut out = Vec::new();
    frame(&mut out, spop::kind::AGENT_HELLO, 0, 0, &items);
    out
}

/// Acknowledges a message with one action.
fn acknowledge(out: &mut Vec<u8>, stream: u64, id: u64) {
    const SET_VARIABLE: [u8; 3] = [1, 3, 2];
    let mut action = SET_VARIABLE.to_vec();
    action.extend_from_slice(b"\x05score");
    Data::Int32(20).encode(&mut action);
    frame(out, spop::kind::ACK, stream, id, &action);
}

fn frame(out: &mut Vec<u8>, kind: u8, stream: u64, id: u64, payload: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&[0; spop::LENGTH]);
    out.push(kind);
    out.extend_from_slice(&spop::FIN.to_be_bytes());
    encode_integer(out, stream);
    encode_integer(out, id);
    out.extend_from_slice(payload);
    let length = (out.len() - start - spop::LENGTH) as u32;
    out[start..start + spop::LENGTH].copy_from_slice(&length.to_be_bytes());
}
