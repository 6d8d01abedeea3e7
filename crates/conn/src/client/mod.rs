//! One request to a server, for services of the process itself: connect, TLS handshake, send, read the answer piece by piece, over
//! HTTP/1.1; or on a stream of an HTTP/2 connection. Every wait has a deadline, every buffer a bound; dropping an exchange closes its connection. Must
//! never know why a request is sent, retry it, or resolve a name.

mod stream;
mod subrequest;
mod uri;

pub use stream::ask_on_stream;
pub use subrequest::{Subject, Subrequest};
pub use uri::Uri;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Moment;
use base::buffer::Buffer;
use rt::net::{Address, ConnectOptions};
use tls::{Connection, asked_name};
use wire::h1::{self, ChunkDecoder, ChunkState, HeadLimits, Parse, RequestContext, Scan};
use wire::http::{Fields, Framing, Head};

use crate::progress::TimeoutProgress;
use crate::transport::{self, Insecure, Transport};

/// The most bytes of input held at a time; a head has to fit. A smaller buffer of the worker's pool is used until one does not.
const INPUT: usize = 32 * 1024;

/// Maximum number of interim answers before an answer.
const MOST_INTERIM: u8 = 32;

/// How long an exchange waits once it is connected.
#[derive(Debug, Clone, Copy)]
pub enum Timeouts {
    /// Until this time, for the whole answer.
    Until(Moment),
    /// This long from one whole head or piece of payload to the next, as `timeout server` does for traffic.
    Silence(Duration),
}

impl Timeouts {
    /// The deadline of a wait that begins now.
    fn end(self) -> Moment {
        match self {
            Self::Until(moment) => moment,
            Self::Silence(period) => rt::now() + period,
        }
    }
}

/// Why there is no answer, or no complete one.
#[derive(Debug)]
pub enum Failure {
    /// The connection could not be established.
    Connect(io::Error),
    /// The TLS handshake failed.
    Insecure(Insecure),
    /// The deadline was reached.
    Expired,
    /// The connection failed while the request was sent or the answer read.
    Broken(io::Error),
    /// The server closed before the answer was complete.
    Closed,
    /// The bytes received are not an answer of HTTP/1.
    Invalid,
    /// The body is longer than the caller accepts.
    TooLong,
}

impl Failure {
    /// Whether the request was not sent to a server, so that it may be sent again (`httpclient.retries`).
    pub fn is_of_connecting(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Insecure(_))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "connection failed: {error}"),
            Self::Insecure(Insecure::Handshake(failure)) => write!(f, "TLS handshake failed: {failure}"),
            Self::Insecure(_) => f.write_str("connection closed during the TLS handshake"),
            Self::Expired => f.write_str("no answer in time"),
            Self::Broken(error) => write!(f, "connection broke: {error}"),
            Self::Closed => f.write_str("connection closed before the end of the answer"),
            Self::Invalid => f.write_str("invalid answer"),
            Self::TooLong => f.write_str("answer too long"),
        }
    }
}

/// The destination of a request.
pub struct Destination {
    /// The address to connect to.
    pub address: Address,
    /// The TLS configuration, and the server name for the handshake; `None`: plain bytes.
    pub tls: Option<(Arc<tls::Client>, String)>,
}

/// A request with its whole body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The encoded request.
    pub bytes: Vec<u8>,
    /// Whether the method is HEAD, whose answer has no body.
    pub is_head: bool,
}

impl Message {
    /// Encodes a request: its line, `host`, the other fields in their order, and the body if there is one. `None`: the
    /// method is not a token, or a field contains a character that ends it.
    pub fn new(
        method: &str,
        target: &str,
        authority: &str,
        fields: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Option<Self> {
        let is_token = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        };
        let is_value = |text: &str| !text.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
        let is_target = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte < 0x7f);
        let sound = |(name, value): &(&str, &str)| is_token(name) && is_value(value);
        if !is_token(method) || !is_target(target) || !is_value(authority) || !fields.iter().all(sound) {
            return None;
        }
        let mut text = format!("{method} {target} HTTP/1.1\r\nhost: {authority}\r\n");
        for (name, value) in fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            text.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(body.unwrap_or_default());
        Some(Self { bytes, is_head: method == "HEAD" })
    }
}

/// A request that was sent, and its answer as far as it was read.
pub struct Exchange {
    transport: Transport,
    timer: rt::Timer,
    patience: Timeouts,
    input: Buffer,
    head: Head,
    /// State of scanning the head.
    scan: Scan,
    /// Whether the request was sent whole.
    is_sent: bool,
    /// Whether the head was received whole.
    has_head: bool,
    /// Number of interim answers before it.
    interim: u8,
    framing: Framing,
    decoder: ChunkDecoder,
}

/// An event while a request is sent.
enum Sending {
    /// The result of writing bytes of the request.
    Wrote(io::Result<usize>),
    /// The result of reading bytes of the answer.
    Read(io::Result<usize>),
}

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    pub head: Head,
    pub body: Vec<u8>,
}

/// Waits for one step, until the timer expires.
async fn within<T>(timer: &mut rt::Timer, mut step: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Result<T, Failure> {
    poll_fn(|cx| match step(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => timer.poll_expired(cx).map(|()| Err(Failure::Expired)),
    })
    .await
}

/// Connects, and completes the TLS handshake if there is to be one, until `by`.
///
/// # Errors
/// The connection was not established: [`Failure::is_of_connecting`].
pub async fn open(to: &Destination, timer: &mut rt::Timer, by: Moment) -> Result<Transport, Failure> {
    timer.arm(Some(by));
    let late = || Failure::Connect(io::ErrorKind::TimedOut.into());
    let mut opening = transport::connect(&to.address, &ConnectOptions::default()).map_err(Failure::Connect)?;
    let opened = within(timer, |cx| Pin::new(&mut opening).poll(cx)).await.map_err(|_| late())?;
    let mut transport = opened.map_err(Failure::Connect)?;
    if let Some((client, name)) = &to.tls {
        let name = asked_name(Some(name), to.address.inet().map(|address| address.ip()));
        let side = Connection::of_client(client, name, None)
            .map_err(|failure| Failure::Insecure(Insecure::Handshake(failure)))?;
        transport = transport.with_tls(side);
        transport.begin_tls(&[]);
        let shaken = within(timer, |cx| transport.poll_handshake(cx)).await.map_err(|_| late())?;
        shaken.map_err(Failure::Insecure)?;
    }
    Ok(transport)
}

impl Exchange {
    /// Connects until `connect_by`, sends the request and reads the head of the answer as long as `patience` permits.
    /// Interim answers are skipped.
    ///
    /// # Errors
    /// Why there is no answer; [`Failure::is_of_connecting`] if the request was not sent.
    pub async fn begin(
        to: &Destination,
        message: &Message,
        connect_by: Moment,
        patience: Timeouts,
    ) -> Result<Self, Failure> {
        let transport = open(to, &mut rt::Timer::new(), connect_by).await?;
        Self::over(transport, message, patience).await
    }

    /// Sends the request on an established connection, and reads the head of the answer as long as `patience` permits.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn over(transport: Transport, message: &Message, patience: Timeouts) -> Result<Self, Failure> {
        let mut exchange = Self {
            transport,
            timer: rt::Timer::new(),
            patience,
            input: rt::buffer(),
            head: Head::default(),
            scan: Scan::default(),
            is_sent: false,
            has_head: false,
            interim: 0,
            framing: Framing::None,
            decoder: ChunkDecoder::new(),
        };
        let broken = exchange.send(message).await?;
        match exchange.read_head(message.is_head).await {
            // The server does not accept the rest of the request, and has sent no answer.
            Err(Failure::Closed | Failure::Broken(_)) if broken.is_some() => {
                Err(Failure::Broken(broken.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())))
            }
            outcome => outcome.map(|()| exchange),
        }
    }

    /// Sends the request, unless the answer is received before: a server that refuses a body need not read it (RFC
    /// 9112, section 9.3). Returns the error if the server accepts no more bytes.
    async fn send(&mut self, message: &Message) -> Result<Option<io::Error>, Failure> {
        let mut sent = 0;
        self.begin_wait();
        while sent < message.bytes.len() {
            self.make_room();
            let rest = [IoSlice::new(&message.bytes[sent..])];
            let (transport, input) = (&mut self.transport, &mut self.input);
            let step = within(&mut self.timer, |cx| match transport.poll_write_slices(cx, &rest, false) {
                Poll::Ready(wrote) => Poll::Ready(Sending::Wrote(wrote)),
                Poll::Pending => transport.poll_read(cx, input).map(Sending::Read),
            });
            match step.await? {
                Sending::Wrote(Ok(wrote)) => {
                    sent += wrote;
                    self.restart(TimeoutProgress::of_payload(wrote));
                }
                Sending::Wrote(Err(error)) => return Ok(Some(error)),
                Sending::Read(Ok(0)) => return Ok(Some(io::ErrorKind::BrokenPipe.into())),
                Sending::Read(Ok(_)) if self.parse_head(message.is_head)? => return Ok(None),
                Sending::Read(Ok(_)) => {}
                Sending::Read(Err(error)) => return Err(Failure::Broken(error)),
            }
        }
        self.is_sent = true;
        Ok(None)
    }

    /// The head of the answer.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Arms the timer for a wait that begins now.
    fn begin_wait(&mut self) {
        self.timer.arm(Some(self.patience.end()));
    }

    /// Restarts the timer if the server has made progress.
    fn restart(&mut self, progress: Option<TimeoutProgress>) {
        if progress.is_some() {
            self.timer.arm(Some(self.patience.end()));
        }
    }

    async fn read_head(&mut self, is_head: bool) -> Result<(), Failure> {
        self.begin_wait();
        while !self.parse_head(is_head)? {
            if self.receive().await? == 0 {
                return Err(Failure::Closed);
            }
        }
        Ok(())
    }

    /// Parses the head in the bytes received. Returns true if it is complete; interim answers before it are skipped.
    fn parse_head(&mut self, is_head: bool) -> Result<bool, Failure> {
        let limits = HeadLimits { max_head: INPUT, ..HeadLimits::default() };
        let context = RequestContext { head: is_head, ..RequestContext::default() };
        while !self.has_head && !self.input.is_empty() {
            match h1::parse_response(self.input.data(), &limits, &context, &mut self.scan, &mut self.head) {
                Ok(Parse::Complete { consumed }) => self.input.consume(consumed),
                Ok(Parse::Partial) if self.input.len() < INPUT => return Ok(false),
                Ok(Parse::Partial) | Err(_) => return Err(Failure::Invalid),
            }
            match self.head.status() {
                // The request did not ask for another protocol.
                101 => return Err(Failure::Invalid),
                100..200 if self.interim == MOST_INTERIM => return Err(Failure::Invalid),
                100..200 => {
                    self.interim += 1;
                    (self.scan, self.head) = (Scan::default(), Head::default());
                    self.restart(Some(TimeoutProgress::of_whole()));
                }
                _ => (self.has_head, self.framing) = (true, self.head.framing),
            }
        }
        Ok(self.has_head)
    }

    /// Makes room for input. A head that fills the buffer of the pool gets a larger one.
    fn make_room(&mut self) {
        self.input.compact();
        if self.input.room() == 0 && self.input.capacity() < INPUT {
            let mut larger = Buffer::with_capacity(INPUT);
            if larger.push(self.input.data()) {
                self.input = larger;
            }
        }
    }

    /// Reads more bytes; 0 is the end.
    async fn receive(&mut self) -> Result<usize, Failure> {
        self.make_room();
        let (transport, input) = (&mut self.transport, &mut self.input);
        within(&mut self.timer, |cx| transport.poll_read(cx, input)).await?.map_err(Failure::Broken)
    }

    /// Appends the next part of the body to `body`, at most one buffer. Returns false at the end of the body.
    ///
    /// # Errors
    /// The answer is incomplete.
    pub async fn next(&mut self, body: &mut Vec<u8>) -> Result<bool, Failure> {
        // The caller got the head or payload before.
        self.begin_wait();
        loop {
            let before = body.len();
            match self.take(body)? {
                true => return Ok(false),
                false if body.len() > before => return Ok(true),
                false => {}
            }
            if self.receive().await? == 0 {
                return match self.framing {
                    Framing::UntilClose => Ok(false),
                    _ => Err(Failure::Closed),
                };
            }
        }
    }

    /// Moves bytes of the body from the input. Returns true at the end of the body.
    fn take(&mut self, body: &mut Vec<u8>) -> Result<bool, Failure> {
        match &mut self.framing {
            Framing::None => Ok(true),
            Framing::UntilClose => {
                body.extend_from_slice(self.input.data());
                self.input.clear();
                Ok(false)
            }
            Framing::Length(left) => {
                let here = self.input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                body.extend_from_slice(&self.input.data()[..here]);
                self.input.consume(here);
                *left -= here as u64;
                Ok(*left == 0)
            }
            Framing::Chunked => {
                let mut trailers = Fields::new();
                let decoded = self.decoder.decode_in_place(self.input.data_mut(), &mut trailers);
                let decoded = decoded.map_err(|_| Failure::Invalid)?;
                body.extend_from_slice(&self.input.data()[..decoded.payload]);
                self.input.consume(decoded.consumed);
                Ok(decoded.state == ChunkState::End)
            }
        }
    }

    /// Reads the rest of the answer, with a body of at most `most` bytes.
    ///
    /// # Errors
    /// The answer is incomplete, or longer than that.
    pub async fn whole(self, most: usize) -> Result<Answer, Failure> {
        self.whole_with_connection(most).await.map(|(answer, _)| answer)
    }

    /// As [`Exchange::whole`]. Returns the connection as well, if it may carry another request.
    ///
    /// # Errors
    /// The answer is incomplete, or longer than that.
    pub async fn whole_with_connection(mut self, most: usize) -> Result<(Answer, Option<Transport>), Failure> {
        let mut body = Vec::new();
        while self.next(&mut body).await? {
            if body.len() > most {
                return Err(Failure::TooLong);
            }
        }
        if body.len() > most {
            return Err(Failure::TooLong);
        }
        let keeps =
            self.is_sent && self.head.keeps_alive() && self.framing != Framing::UntilClose && self.input.is_empty();
        Ok((Answer { head: self.head, body }, keeps.then_some(self.transport)))
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn requests_hold_what_was_asked_for_and_no_line_more() {
        let message = Message::new("POST", "/a?b", "h:81", &[("accept", "*/*")], Some(b"abc")).unwrap();
        let text = "POST /a?b HTTP/1.1\r\nhost: h:81\r\naccept: */*\r\ncontent-length: 3\r\n\r\nabc";
        assert_eq!((message.bytes.as_slice(), message.is_head), (text.as_bytes(), false));
        assert!(Message::new("HEAD", "/", "h", &[], None).unwrap().is_head);
        for (method, target, host, field) in [
            ("G ET", "/", "h", ("a", "b")),
            ("", "/", "h", ("a", "b")),
            ("GET", "/ x", "h", ("a", "b")),
            ("GET", "", "h", ("a", "b")),
            ("GET", "/", "h\r\nx: y", ("a", "b")),
            ("GET", "/", "h", ("a:", "b")),
            ("GET", "/", "h", ("a", "b\r\nc: d")),
        ] {
            assert_eq!(Message::new(method, target, host, &[field], None), None, "{method} {target} {host} {field:?}");
        }
    }
}
