//! One connection: requests are read and answered one after the other. Must never wait without a timeout, nor hold a
//! buffer while it waits for a request.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Buffer;
use conn::transport::Transport;
use rt::Timer;
use rt::net::Hangup;
use wire::h1::{ChunkDecoder, ChunkState};
use wire::h2::PREFACE;
use wire::http::{self, Fields};

use super::answer::{self, CONTINUE, Framing, LARGEST_HEAD};
use super::body::Body;
use super::pattern::Content;
use super::request::{Progress, Reader, Request};
use super::streams;
use super::worker::Worker;

/// Timeout between two requests.
const IDLE: Duration = Duration::from_secs(300);
/// Timeout of a head, from its first byte to its last.
const HEAD: Duration = Duration::from_secs(60);
/// Timeout without progress, while a response is sent or a body is received.
const STALL: Duration = Duration::from_secs(60);
/// Maximum time, and number of bytes, for which the client's data is read after the last response, so that it does not
/// reset the connection before the client has read the response.
const LINGER: (Duration, u64) = (Duration::from_secs(5), 1 << 20);
/// Maximum size of bodies that are copied after their heads: cheaper than a second slice in the system call.
const SMALL: usize = 4096;

/// Serves a connection to its end.
pub async fn serve(worker: Rc<Worker>, mut stream: Transport) {
    if stream.is_tls() && rt::boxed(shake(&mut stream)).await.is_none() {
        return;
    }
    let agreed = stream.handshake_info().is_some_and(|facts| facts.alpn.as_deref() == Some(b"h2"));
    let (input, output) = (Buffer::empty(), Buffer::empty());
    let reader = Reader::new(worker.shared.size);
    let mut connection = Connection { worker, stream, input, output, timer: Timer::new(), reader, agreed, first: true };
    if connection.run().await {
        let Connection { worker, stream, mut input, timer, .. } = connection;
        input.consume(PREFACE.len());
        rt::boxed(streams::serve(worker, stream, input, timer)).await;
    }
}

/// Completes the TLS handshake; `None` if it fails.
async fn shake(stream: &mut Transport) -> Option<()> {
    let mut timer = Timer::new();
    timer.arm(Some(rt::now() + HEAD));
    stream.begin_tls(&[]);
    poll_fn(|context| match stream.poll_handshake(context) {
        Poll::Ready(shaken) => Poll::Ready(shaken.ok()),
        Poll::Pending => timer.poll_expired(context).map(|()| None),
    })
    .await
}

/// A connection with its input and output.
struct Connection {
    worker: Rc<Worker>,
    stream: Transport,
    input: Buffer,
    output: Buffer,
    timer: Timer,
    reader: Reader,
    /// ALPN selected HTTP/2.
    agreed: bool,
    /// No request so far: the client may start with HTTP/2's preface.
    first: bool,
}

/// Comparison of a connection's first bytes with HTTP/2's preface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preface {
    /// The complete preface.
    Whole,
    /// A prefix of it.
    Part,
    Other,
}

impl Preface {
    fn of(bytes: &[u8]) -> Self {
        match bytes.get(..PREFACE.len()) {
            Some(whole) if whole == PREFACE => Self::Whole,
            None if PREFACE.starts_with(bytes) => Self::Part,
            _ => Self::Other,
        }
    }
}

/// Next input from the client.
enum ClientInput {
    Request(Request),
    Refused(u16),
    /// HTTP/2's preface was received.
    Streams,
    End,
}

impl Connection {
    /// Serves HTTP/1 requests. Returns true if the client continues with HTTP/2.
    async fn run(&mut self) -> bool {
        loop {
            let goes_on = match self.next().await {
                ClientInput::Request(request) if request.help => {
                    self.last_word(&answer::help(request.bodiless)).await;
                    None
                }
                ClientInput::Request(request) => self.answer(&request).await,
                ClientInput::Refused(status) => {
                    self.last_word(&answer::refusal(status)).await;
                    None
                }
                ClientInput::Streams => return true,
                ClientInput::End => None,
            };
            if goes_on.is_none() {
                return false;
            }
            self.first = false;
        }
    }

    /// Reads the next request. Pending responses are sent before waiting.
    async fn next(&mut self) -> ClientInput {
        let mut begun = None;
        loop {
            let preface = if self.first { Preface::of(self.input.data()) } else { Preface::Other };
            match preface {
                Preface::Whole => return ClientInput::Streams,
                Preface::Other if self.agreed => return ClientInput::End,
                _ => {}
            }
            if !self.input.is_empty() && preface == Preface::Other {
                match self.reader.read(self.input.data(), &self.worker.head, rt::random) {
                    Progress::Complete(request, consumed) => {
                        self.input.consume(consumed);
                        return ClientInput::Request(request);
                    }
                    Progress::Refused(status) => return ClientInput::Refused(status),
                    Progress::Partial if self.input.room() == 0 => self.input.compact(),
                    Progress::Partial => {}
                }
            }
            if self.flush().await.is_none() {
                return ClientInput::End;
            }
            let deadline =
                if self.input.is_empty() { rt::now() + IDLE } else { *begun.get_or_insert_with(|| rt::now() + HEAD) };
            self.timer.arm(Some(deadline));
            if poll_fn(|context| self.poll_fill(context)).await.is_none() {
                return ClientInput::End;
            }
        }
    }

    /// Ready with bytes after those in the input, or with `None` at the end. An empty input has no buffer
    /// while it waits.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Option<()>> {
        if self.input.is_empty() {
            if self.stream.poll_readable(context).is_pending() {
                self.input = Buffer::empty();
                return self.poll_patience(context);
            }
            if self.input.capacity() == 0 {
                self.input = rt::buffer();
            }
        }
        match self.stream.poll_read(context, &mut self.input) {
            Poll::Ready(Ok(1..)) => Poll::Ready(Some(())),
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => {
                if self.input.is_empty() {
                    self.input = Buffer::empty();
                }
                self.poll_patience(context)
            }
        }
    }

    /// Ready with `None` when waiting for the client ends.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<Option<()>> {
        if self.worker.is_stopping() && self.input.is_empty() {
            // A request whose event was not processed yet may be in the socket: closing would reset the connection.
            if !self.stream.has_input() {
                return Poll::Ready(None);
            }
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.timer.poll_expired(context).map(|()| None)
    }

    /// Answers a request; `None` when the connection has ended.
    async fn answer(&mut self, request: &Request) -> Option<()> {
        let parameters = &request.parameters;
        if request.expects {
            self.say(CONTINUE).await?;
        }
        if request.framing.has_body() && !parameters.drain_after {
            self.flush().await?;
            self.drain(request.framing).await?;
        }
        let waited = if parameters.wait > 0 { self.wait(parameters.wait).await? } else { 0 };
        let keep = request.keep && !self.worker.is_stopping();
        self.make_room(LARGEST_HEAD).await?;
        answer::write_head(request, keep, waited, &mut self.output);
        self.send(Body::new(Framing::of(request), Content::of(parameters.chunks, parameters.random))).await?;
        if request.framing.has_body() && parameters.drain_after {
            self.flush().await?;
            self.drain(request.framing).await?;
        }
        if keep {
            return Some(());
        }
        // The FIN is then sent with the last bytes, in one packet.
        let at_once = self.input.is_empty();
        self.write_out(at_once).await?;
        if !at_once {
            self.linger().await;
        }
        None
    }

    /// Delays a response, unless the connection fails before; returns the elapsed milliseconds.
    async fn wait(&mut self, milliseconds: u64) -> Option<u64> {
        self.flush().await?;
        let before = rt::now();
        self.timer.arm(Some(before + Duration::from_millis(milliseconds)));
        poll_fn(|context| match self.stream.poll_hangup(context) {
            Poll::Ready(Hangup::Error) => Poll::Ready(None),
            // A client that has closed only its sending side may still read.
            Poll::Ready(Hangup::PeerClosed) | Poll::Pending => self.timer.poll_expired(context).map(Some),
        })
        .await?;
        Some(rt::now().saturating_since(before).as_millis() as u64)
    }

    /// Sends a body after the content of the output. A small one is kept there.
    async fn send(&mut self, mut body: Body) -> Option<()> {
        let worker = Rc::clone(&self.worker);
        if body.is_done() || body.copy_into(&worker.patterns, SMALL, &mut self.output) {
            return Some(());
        }
        while !body.is_done() {
            let (edge, content) = body.next(&worker.patterns);
            let in_output = self.output.len();
            let slices = [IoSlice::new(self.output.data()), IoSlice::new(edge), IoSlice::new(content)];
            let slices = if in_output + edge.len() == 0 { &slices[2..] } else { &slices[..] };
            let (stream, timer) = (&mut self.stream, &mut self.timer);
            timer.arm(Some(rt::now() + STALL));
            let written = within(timer, |context| stream.poll_write_slices(context, slices, false)).await?;
            let of_output = written.min(in_output);
            self.output.consume(of_output);
            body.advance(written - of_output);
        }
        self.output = Buffer::empty();
        Some(())
    }

    /// Reads a request's body and discards it.
    async fn drain(&mut self, framing: http::Framing) -> Option<()> {
        match framing {
            http::Framing::Length(length) => self.drain_length(length).await,
            http::Framing::Chunked => self.drain_chunks().await,
            http::Framing::None | http::Framing::UntilClose => Some(()),
        }
    }

    async fn drain_length(&mut self, length: u64) -> Option<()> {
        let mut left = length;
        loop {
            let here = self.input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.input.consume(here);
            left -= here as u64;
            if left == 0 {
                return Some(());
            }
            self.refill(left).await?;
        }
    }

    async fn drain_chunks(&mut self) -> Option<()> {
        let mut decoder = ChunkDecoder::new();
        let mut trailers = Fields::new();
        loop {
            match decoder.decode_in_place(self.input.data_mut(), &mut trailers) {
                Ok(decoded) => {
                    self.input.consume(decoded.consumed);
                    if decoded.state == ChunkState::End {
                        return Some(());
                    }
                }
                Err(_) => {
                    self.last_word(&answer::refusal(400)).await;
                    return None;
                }
            }
            self.refill(u64::MAX).await?;
        }
    }

    /// Reads more of a body with `left` missing bytes, when all previous bytes have been discarded.
    async fn refill(&mut self, left: u64) -> Option<()> {
        let large = left > rt::buffer_size() as u64 && self.input.capacity() <= rt::buffer_size();
        if self.input.capacity() == 0 || large {
            self.input = if large { rt::bulk_buffer() } else { rt::buffer() };
        }
        self.timer.arm(Some(rt::now() + STALL));
        let (stream, timer, input) = (&mut self.stream, &mut self.timer, &mut self.input);
        let read = within(timer, |context| stream.poll_read(context, input)).await?;
        (read > 0).then_some(())
    }

    /// Appends text to the output, and sends all of it.
    async fn say(&mut self, text: &[u8]) -> Option<()> {
        self.make_room(text.len()).await?;
        let fits = self.output.push(text);
        debug_assert!(fits, "there is room");
        self.flush().await
    }

    /// Sends the last text to the client, and waits briefly for the client to read it.
    async fn last_word(&mut self, text: &str) {
        if self.say(text.as_bytes()).await.is_some() {
            self.linger().await;
        }
    }

    /// Ensures free space of that number of bytes in the output.
    async fn make_room(&mut self, bytes: usize) -> Option<()> {
        if self.output.room() < bytes {
            self.flush().await?;
            self.output = rt::buffer();
        }
        Some(())
    }

    /// Sends the output, and releases its buffer.
    async fn flush(&mut self) -> Option<()> {
        self.write_out(false).await
    }

    /// Like [`Self::flush`]; `more` indicates to the kernel that more data, or the end, follows immediately.
    async fn write_out(&mut self, more: bool) -> Option<()> {
        if self.output.is_empty() {
            return Some(());
        }
        self.timer.arm(Some(rt::now() + STALL));
        let (stream, timer, output) = (&mut self.stream, &mut self.timer, &mut self.output);
        let mut nothing = Buffer::empty();
        while !output.is_empty() {
            within(timer, |context| stream.poll_write(context, output, &mut nothing, more)).await?;
        }
        self.output = Buffer::empty();
        Some(())
    }

    /// Reads further data from the client for some time: closing with unread data would reset the connection.
    async fn linger(&mut self) {
        if self.stream.shutdown_write().is_err() {
            return;
        }
        let (patience, mut most) = LINGER;
        self.input = rt::buffer();
        self.timer.arm(Some(rt::now() + patience));
        let (stream, timer, input) = (&mut self.stream, &mut self.timer, &mut self.input);
        while let Some(count @ 1..) = within(timer, |context| stream.poll_read(context, input)).await {
            input.clear();
            most = most.saturating_sub(count as u64);
            if most == 0 {
                return;
            }
        }
    }
}

/// Returns the result of an attempt; `None` when it fails, or when the timer expires while it is pending.
async fn within<T>(timer: &mut Timer, mut attempt: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>) -> Option<T> {
    poll_fn(|context| match attempt(context) {
        Poll::Ready(done) => Poll::Ready(done.ok()),
        Poll::Pending => timer.poll_expired(context).map(|()| None),
    })
    .await
}
