//! An HTTP/2 connection of a client: requests are answered at the end of their streams, each as its query specifies.
//! Must never hold a body, nor wait without a timeout.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::{Buffer, Moment};
use conn::transport::Transport;
use rt::Timer;
use wire::h1::Edits;
use wire::h2::{self, Capacity, ErrorCode, HeaderField, MAX_FRAME_SIZE, Outcome, RequestReader};
use wire::haterm::PAGE;
use wire::http::{self, Head};

use super::answer::fields;
use super::pattern::Content;
use super::request::Request;
use super::worker::Worker;
use crate::frames::{Announced, Event, Frames, poll_read};

/// Announced settings.
const ANNOUNCED: Announced = Announced { window: 1 << 20, shared: 1 << 22, streams: Some(MOST_STREAMS) };
/// Maximum number of concurrent streams.
const MOST_STREAMS: u32 = 1024;
/// Maximum size of a head in bytes, and of its number of fields.
const LARGEST_HEAD: usize = 16 * 1024;
const MOST_FIELDS: usize = 100;
/// Number of queued bytes above which no more payload is added.
const ENOUGH: usize = 256 * 1024;
/// Number of consecutive reads before yielding.
const READS: usize = 16;
/// Timeout of a connection without streams.
const IDLE: Duration = Duration::from_secs(300);
/// Timeout without progress in either direction while there are streams.
const STALL: Duration = Duration::from_secs(60);

/// Phase of a stream.
enum Phase {
    /// The request's body is received.
    Body,
    /// The response is delayed.
    Wait,
    /// The remaining number of bytes of the response's body.
    Send(u64),
    /// The response is complete; the rest of the request's body is received.
    Rest,
}

/// A request in progress.
struct OpenRequest {
    stream: u32,
    request: Request,
    phase: Phase,
    /// Time at which the request was complete.
    since: Moment,
    /// The request's body has ended.
    ended: bool,
    /// Send window of the stream, in bytes.
    window: i64,
    /// Number of sent bytes of payload.
    position: u64,
    /// Received payload for which no WINDOW_UPDATE was sent, in bytes.
    owed: u32,
}

/// A connection.
struct Session {
    worker: Rc<Worker>,
    transport: Transport,
    input: Buffer,
    frames: Frames,
    /// Requests in progress, in ascending order of their stream numbers.
    served: Vec<OpenRequest>,
    newest: u32,
    /// Streams with payload to send.
    sending: VecDeque<u32>,
    /// Number of delayed responses.
    waiting: usize,
    /// Time of the last progress in either direction.
    moved: Moment,
    /// GOAWAY has been sent.
    leaving: bool,
}

/// Serves a connection after its preface, to its end. `input` contains the bytes after the preface.
pub async fn serve(worker: Rc<Worker>, transport: Transport, input: Buffer, mut timer: Timer) {
    let mut session = Session {
        worker,
        transport,
        input,
        frames: Frames::of_server(ANNOUNCED),
        served: Vec::new(),
        newest: 0,
        sending: VecDeque::new(),
        waiting: 0,
        moved: rt::now(),
        leaving: false,
    };
    poll_fn(|context| session.poll(context, &mut timer)).await;
}

impl Session {
    /// Ready when the connection has ended.
    fn poll(&mut self, context: &mut Context<'_>, timer: &mut Timer) -> Poll<()> {
        for _ in 0..READS {
            if let Err(code) = self.take_events() {
                self.frames.go_away(self.newest, code);
                let _ = self.frames.poll_flush(context, &mut self.transport);
                return Poll::Ready(());
            }
            self.answer_due();
            self.send_payload();
            let before = self.frames.waiting();
            if let Poll::Ready(Err(_)) = self.frames.poll_flush(context, &mut self.transport) {
                return Poll::Ready(());
            }
            if before > self.frames.waiting() {
                self.moved = rt::now();
            }
            if before > 0 && self.frames.waiting() == 0 && !self.sending.is_empty() {
                // There is free space again.
                continue;
            }
            if self.worker.is_stopping() && !std::mem::replace(&mut self.leaving, true) {
                self.frames.go_away(self.newest, ErrorCode::NoError);
                continue;
            }
            if self.leaving && self.served.is_empty() && self.frames.waiting() == 0 {
                return Poll::Ready(());
            }
            match poll_read(context, &mut self.transport, &mut self.input) {
                Poll::Ready(Ok(1..)) => self.moved = rt::now(),
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.poll_patience(context, timer),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_patience(&mut self, context: &mut Context<'_>, timer: &mut Timer) -> Poll<()> {
        let limit = if self.served.is_empty() { IDLE } else { STALL };
        let due = self.served.iter().filter(|served| matches!(served.phase, Phase::Wait)).map(OpenRequest::due).min();
        let end = if due.is_some() { None } else { Some(self.moved + limit) };
        if self.served.is_empty() {
            self.frames.rest();
        }
        timer.arm(due.or(end));
        if timer.poll_expired(context).is_pending() {
            return Poll::Pending;
        }
        if end.is_some_and(|end| end <= rt::now()) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn find(&mut self, stream: u32) -> Option<usize> {
        self.served.binary_search_by_key(&stream, |served| served.stream).ok()
    }

    fn take_events(&mut self) -> Result<(), ErrorCode> {
        while let Some(event) = self.frames.next(&mut self.input)? {
            match event {
                Event::Head { stream, ends } => self.take_head(stream, ends)?,
                Event::Payload { stream, length, ends } => {
                    let Some(at) = self.find(stream) else { continue };
                    let served = &mut self.served[at];
                    if !ends {
                        self.frames.note_taken(stream, length, &mut served.owed);
                        continue;
                    }
                    served.ended = true;
                    match served.phase {
                        Phase::Body => self.begin_answer(at),
                        Phase::Rest => {
                            self.served.remove(at);
                        }
                        Phase::Wait | Phase::Send(_) => {}
                    }
                }
                Event::Reset { stream, .. } => {
                    if let Some(at) = self.find(stream) {
                        self.forget(at);
                    }
                }
                Event::Window { stream, by } => {
                    let Some(at) = self.find(stream) else { continue };
                    let served = &mut self.served[at];
                    let waits = served.window <= 0;
                    served.window += i64::from(by);
                    if waits && matches!(served.phase, Phase::Send(_)) {
                        self.sending.push_back(stream);
                    }
                }
                Event::Settings { more } => {
                    self.sending.clear();
                    for served in &mut self.served {
                        served.window += more;
                        if matches!(served.phase, Phase::Send(_)) {
                            self.sending.push_back(served.stream);
                        }
                    }
                }
                Event::GoAway { .. } => self.leaving = true,
            }
        }
        Ok(())
    }

    fn take_head(&mut self, stream: u32, ends: bool) -> Result<(), ErrorCode> {
        if let Some(at) = self.find(stream) {
            // Trailers.
            self.frames.decode(|_, _| {})?;
            self.served[at].ended = true;
            if matches!(self.served[at].phase, Phase::Body) {
                self.begin_answer(at);
            }
            return Ok(());
        }
        if stream <= self.newest || stream.is_multiple_of(2) {
            self.frames.decode(|_, _| {})?;
            return if stream.is_multiple_of(2) { Err(ErrorCode::ProtocolError) } else { Ok(()) };
        }
        self.newest = stream;
        let worker = Rc::clone(&self.worker);
        let Some(request) = self.read_request(stream, ends, &mut worker.head.borrow_mut())? else { return Ok(()) };
        self.served.push(OpenRequest {
            stream,
            request,
            phase: Phase::Body,
            since: rt::now(),
            ended: ends,
            window: self.frames.stream_window(),
            position: 0,
            owed: 0,
        });
        if request.expects && !ends {
            let mut head = Head::new();
            head.set_status(100, b"");
            let _ = h2::encode_response(stream, &head, &Edits::interim(), self.frames.output());
        }
        if ends || request.parameters.drain_after {
            self.begin_answer(self.served.len() - 1);
        }
        Ok(())
    }

    /// Reads the request at the start of a stream; `None`: the stream is reset.
    fn read_request(&mut self, stream: u32, ends: bool, head: &mut Head) -> Result<Option<Request>, ErrorCode> {
        let mut reader = RequestReader::new(head, Capacity { bytes: LARGEST_HEAD, fields: MOST_FIELDS }, false);
        self.frames.decode(|name, value| reader.field(&HeaderField::new(name, value)))?;
        let outcome = reader.finish(ends, false);
        let is_request = outcome == Ok(Outcome::Request) && head.known_method() != http::Method::Connect;
        let code = if self.leaving || self.served.len() >= MOST_STREAMS as usize {
            ErrorCode::RefusedStream
        } else if !is_request {
            ErrorCode::ProtocolError
        } else {
            let request = Request::of(head, self.worker.shared.size, rt::random);
            // Only an interim response has a status below 200.
            if request.help || request.parameters.status >= 200 {
                return Ok(Some(request));
            }
            ErrorCode::InternalError
        };
        self.frames.reset(stream, code);
        Ok(None)
    }

    fn forget(&mut self, at: usize) {
        if matches!(self.served.remove(at).phase, Phase::Wait) {
            self.waiting -= 1;
        }
    }

    /// Handles a complete request: its response is sent, or delayed.
    fn begin_answer(&mut self, at: usize) {
        let served = &mut self.served[at];
        served.since = rt::now();
        if served.request.parameters.wait > 0 {
            served.phase = Phase::Wait;
            self.waiting += 1;
        } else {
            self.answer(at, 0);
        }
    }

    /// Sends the delayed responses that are due.
    fn answer_due(&mut self) {
        if self.waiting == 0 {
            return;
        }
        let now = rt::now();
        // In reverse order: a response without a body is removed immediately.
        for at in (0..self.served.len()).rev() {
            let served = &self.served[at];
            if matches!(served.phase, Phase::Wait) && served.due() <= now {
                self.waiting -= 1;
                let waited = now.saturating_since(served.since).as_millis() as u64;
                self.answer(at, waited);
            }
        }
    }

    /// Queues the head of a response. Its body follows as the windows permit.
    fn answer(&mut self, at: usize, waited: u64) {
        let worker = Rc::clone(&self.worker);
        let head: &mut Head = &mut worker.head.borrow_mut();
        let served = &mut self.served[at];
        let stream = served.stream;
        let (size, edits) = fields(&served.request, waited, head);
        let begin = self.frames.output().len();
        if h2::encode_response(stream, head, &edits, self.frames.output()).is_err() {
            self.frames.reset(stream, ErrorCode::InternalError);
            self.served.remove(at);
            return;
        }
        if size > 0 {
            served.phase = Phase::Send(size);
            self.sending.push_back(stream);
            return;
        }
        if served.request.parameters.grpc {
            self.push_trailers(stream);
            return self.end_answer(at);
        }
        if let Some(flags) = self.frames.output().get_mut(begin + 4) {
            *flags |= h2::flag::END_STREAM;
        }
        self.end_answer(at);
    }

    /// Queues the trailers of gRPC, which end a response.
    fn push_trailers(&mut self, stream: u32) {
        let worker = Rc::clone(&self.worker);
        if h2::encode_trailers(stream, &worker.trailers, self.frames.output()).is_err() {
            self.frames.reset(stream, ErrorCode::InternalError);
        }
    }

    /// Handles a completely queued response.
    fn end_answer(&mut self, at: usize) {
        if self.served[at].ended {
            self.served.remove(at);
        } else {
            self.served[at].phase = Phase::Rest;
        }
    }

    /// Queues payload, one frame of each stream in turn, as far as the windows permit.
    fn send_payload(&mut self) {
        let patterns = Rc::clone(&self.worker);
        while self.frames.waiting() < ENOUGH && self.frames.window() > 0 {
            let Some(stream) = self.sending.pop_front() else { return };
            let Some(at) = self.find(stream) else { continue };
            let served = &mut self.served[at];
            let Phase::Send(left) = served.phase else { continue };
            let window = usize::try_from(served.window.min(self.frames.window())).unwrap_or(0);
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(window).min(MAX_FRAME_SIZE);
            if most == 0 {
                // It continues when its window grows.
                continue;
            }
            let content = if served.request.help {
                PAGE.as_bytes().get(served.position as usize..).unwrap_or_default()
            } else {
                let content = if served.request.parameters.random { Content::Random } else { Content::Lines };
                patterns.patterns.from(content, served.position)
            };
            let piece = &content[..most.min(content.len())];
            let ends = piece.len() as u64 == left;
            served.position += piece.len() as u64;
            served.window -= piece.len() as i64;
            served.phase = Phase::Send(left - piece.len() as u64);
            let has_trailers = served.request.parameters.grpc;
            self.frames.push_payload(stream, piece, ends && !has_trailers);
            if ends {
                if has_trailers {
                    self.push_trailers(stream);
                }
                self.end_answer(at);
            } else {
                self.sending.push_back(stream);
            }
        }
    }
}

impl OpenRequest {
    /// Returns the time at which the response is due.
    fn due(&self) -> Moment {
        self.since + Duration::from_millis(self.request.parameters.wait)
    }
}
