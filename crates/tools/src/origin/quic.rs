//! HTTP/3 over QUIC: a UDP socket for each worker, connections, and their requests, each answered as its query specifies.
//! Must never hold a body, nor wait without a timeout.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::{Buffer, Moment};
use conn::flow::{ByteSink, ByteSource};
use conn::glitches::GlitchLimits;
use conn::h1::ReadResult;
use conn::h3::{Connection, Stream, Terms};
use conn::quic::{Arrival, Link, Listener, Reception};
use quic::cid::Place;
use quic::endpoint::{ServerSettings, Settings};
use quic::{Clock, Datagram, Endpoint, HalfOpen, Secrets, Transport, transport};
use rt::net::{Address, BindOptions, DatagramSocket, steer_by_connection_id};
use rt::{Class, Timer};
use wire::h1::{Edits, HeadLimits, Scan};
use wire::h3;
use wire::haterm::PAGE;
use wire::http::{Head, Method};

use super::answer::fields;
use super::capacity::CapacitySlot;
use super::pattern::Content;
use super::request::Request;
use super::worker::Worker;

/// Maximum number of concurrent streams: QUIC prepares memory for each.
const MOST_STREAMS: u32 = 256;
/// Maximum size of a head in bytes, and of its number of fields.
const LARGEST_HEAD: usize = 16 * 1024;
const MOST_FIELDS: usize = 100;
/// Timeout of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(60);
/// Timeout of a connection without packets.
const IDLE: Duration = Duration::from_secs(300);
/// Timeout of a stream without progress.
const STALL: Duration = Duration::from_secs(60);
/// Maximum size of an encoded head, in bytes.
const ENCODED_HEAD: usize = 1024;

/// An address for HTTP/3.
pub struct QuicListening {
    /// One socket for each worker, in the order in which the kernel chooses among them.
    sockets: Vec<DatagramSocket>,
    tls: Arc<tls::Server>,
}

/// A socket of an address, for one worker.
pub(super) struct QuicSocket {
    socket: DatagramSocket,
    /// Its position among the sockets of the address, which connection IDs contain.
    position: u8,
    tls: Arc<tls::Server>,
}

impl std::fmt::Debug for QuicListening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicListening").field("sockets", &self.sockets.len()).finish_non_exhaustive()
    }
}

impl QuicListening {
    /// Opens an address: a socket for each worker.
    ///
    /// # Errors
    /// The address is not available.
    pub fn open(address: &Address, workers: usize, tls: &Arc<tls::Server>) -> io::Result<QuicListening> {
        let address = address.inet().ok_or(io::ErrorKind::Unsupported)?;
        let sockets = DatagramSocket::bind_group(address, &BindOptions::default(), workers)?;
        if workers > 1 {
            // Without it, the worker that receives a datagram may not have its connection.
            steer_by_connection_id(&sockets)?;
        }
        Ok(Self { sockets, tls: Arc::clone(tls) })
    }

    /// Takes a socket.
    pub(super) fn take(&mut self) -> Option<QuicSocket> {
        let socket = self.sockets.pop()?;
        let position = u8::try_from(self.sockets.len()).unwrap_or(u8::MAX);
        Some(QuicSocket { socket, position, tls: Arc::clone(&self.tls) })
    }

    /// Returns its address, with the port that was chosen.
    pub fn local_address(&self) -> Option<Address> {
        self.sockets.first().map(|socket| Address::Inet(socket.local_address()))
    }
}

/// Returns random bytes of the worker.
fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&rt::random().to_be_bytes()));
    bytes
}

fn endpoint(position: u8, tls: Arc<tls::Server>) -> Endpoint {
    let settings = Settings {
        place: Place { worker: position, process: 0 },
        secrets: Secrets::random(random_bytes()),
        seed: random_bytes(),
        clock: Clock::new(rt::clock::origin()),
        may_discover_mtu: true,
    };
    let of_connections =
        transport::Settings { idle_timeout: IDLE, max_bidirectional: MOST_STREAMS, ..transport::Settings::default() };
    let server = ServerSettings {
        tls,
        transport: Transport::new(&of_connections),
        half_open: Arc::new(HalfOpen::default()),
        retry_threshold: usize::MAX,
        forces_retry: false,
    };
    Endpoint::new(settings, Some(server))
}

/// Serves the connections of a socket, as long as the process runs. `accepting` is dropped when the process stops.
pub(super) async fn accept(worker: Rc<Worker>, socket: QuicSocket, accepting: CapacitySlot) {
    let QuicSocket { socket, position, tls } = socket;
    let listener = Listener::new(socket, endpoint(position, tls));
    let _watch = worker.watch_stop().await;
    let (mut accepting, mut receiver) = (Some(accepting), Receiver { worker });
    poll_fn(|context| {
        if receiver.worker.is_stopping() {
            accepting = None;
        }
        listener.poll(context, &mut receiver).map(drop)
    })
    .await;
}

/// Takes the connections of a socket.
struct Receiver {
    worker: Rc<Worker>,
}

impl Reception for Receiver {
    /// The sockets of other workers receive what is theirs.
    fn diverts(&mut self, _: &Datagram<'_>) -> bool {
        false
    }

    fn arrive(&mut self, arrival: Arrival<'_>, _: &Datagram<'_>) {
        begin(&self.worker, arrival);
    }
}

/// Begins a connection. Without a free slot its first datagram is ignored: the client repeats it.
fn begin(worker: &Rc<Worker>, arrival: Arrival<'_>) {
    if worker.is_stopping() {
        return arrival.refuse();
    }
    let Some(slot) = worker.shared.capacity.take() else { return arrival.ignore() };
    if let Some(link) = arrival.accept() {
        rt::spawn(Class::Normal, 0, serve(Rc::clone(worker), link, slot));
    }
}

/// Serves a connection to its end.
async fn serve(worker: Rc<Worker>, link: Link, slot: CapacitySlot) {
    let _held = slot;
    let _watch = worker.watch_stop().await;
    let mut timer = Timer::new();
    timer.arm(Some(rt::now() + HANDSHAKE));
    let shaken = poll_fn(|context| match link.poll_handshake(context) {
        Poll::Ready(shaken) => Poll::Ready(shaken.is_ok()),
        Poll::Pending => timer.poll_expired(context).map(|()| false),
    });
    if !shaken.await {
        return;
    }
    timer.arm(None);
    let terms = Terms {
        max_streams: MOST_STREAMS as usize,
        max_total: 0,
        max_head: LARGEST_HEAD,
        max_fields: MOST_FIELDS,
        extends: false,
        webtransport: false,
        accept_unsafe: false,
        glitches: GlitchLimits::default(),
        budget: 0,
    };
    let mut connection = Connection::new(link, terms);
    poll_fn(|context| {
        loop {
            if worker.is_stopping() {
                connection.leave(false);
            }
            let Some(stream) = ready!(connection.poll(context, None)) else { return Poll::Ready(()) };
            rt::spawn(Class::Normal, 0, answer(Rc::clone(&worker), stream));
        }
    })
    .await;
}

/// Answers a request. A stream that is dropped before its answer is complete is reset.
async fn answer(worker: Rc<Worker>, stream: Stream) {
    let mut exchange = Exchange { worker, stream, timer: Timer::new() };
    // The client is gone, or does not receive: nothing is left to be done.
    let _ = exchange.run().await;
}

/// A request in progress.
struct Exchange {
    worker: Rc<Worker>,
    stream: Stream,
    timer: Timer,
}

/// A failure of a stream, or a timeout.
struct Failed;

impl From<io::Error> for Failed {
    fn from(_: io::Error) -> Self {
        Self
    }
}

impl Exchange {
    async fn run(&mut self) -> Result<(), Failed> {
        let Some(request) = self.read_request().await? else { return Ok(()) };
        // Only an interim response has a status below 200.
        if !request.help && request.parameters.status < 200 {
            return Ok(());
        }
        if request.expects && !self.stream.was_whole() {
            let mut head = Head::new();
            head.set_status(100, b"");
            self.send_head(&head, &Edits::interim()).await?;
        }
        if !request.parameters.drain_after {
            self.drain().await?;
        }
        let since = rt::now();
        self.wait(Duration::from_millis(request.parameters.wait)).await?;
        let waited = rt::now().saturating_since(since).as_millis() as u64;
        let mut head = Head::new();
        let (size, edits) = fields(&request, waited, &mut head);
        self.send_head(&head, &edits).await?;
        self.send_body(&request, size).await?;
        let trailers = request.parameters.grpc && !request.help;
        self.stream.complete(Some(&self.worker.trailers).filter(|_| trailers));
        if request.parameters.drain_after {
            self.drain().await?;
        }
        Ok(())
    }

    /// Returns the request; `None` if it was answered with an error, or is none that can be answered.
    async fn read_request(&mut self) -> Result<Option<Request>, Failed> {
        let worker = Rc::clone(&self.worker);
        let limits = HeadLimits { max_head: LARGEST_HEAD, max_fields: MOST_FIELDS, ..HeadLimits::default() };
        let read = {
            let head: &mut Head = &mut worker.head.borrow_mut();
            match self.stream.take_head(&limits, &mut Scan::default(), head) {
                ReadResult::Head { .. } if head.known_method() == Method::Connect => Err(400),
                ReadResult::Head { .. } => Ok(Request::of(head, worker.shared.size, rt::random)),
                ReadResult::Invalid { status, .. } => Err(status),
                _ => return Ok(None),
            }
        };
        match read {
            Ok(request) => Ok(Some(request)),
            Err(status) => {
                let mut head = Head::new();
                head.set_status(status, b"");
                self.send_head(&head, &Edits::default()).await?;
                self.stream.complete(None);
                Ok(None)
            }
        }
    }

    /// Reads the rest of the request, and drops it.
    async fn drain(&mut self) -> Result<(), Failed> {
        if self.stream.has_ended() {
            return Ok(());
        }
        let mut buffer = rt::buffer();
        loop {
            self.arm();
            buffer.clear();
            let Self { stream, timer, .. } = self;
            let count = poll_fn(|context| patient(stream.poll_read(context, &mut buffer), timer, context)).await?;
            if count == 0 {
                return Ok(());
            }
        }
    }

    /// Waits before the answer, as long as the client is interested in it.
    async fn wait(&mut self, time: Duration) -> Result<(), Failed> {
        if time.is_zero() {
            return Ok(());
        }
        self.timer.arm(Some(rt::now() + time));
        let Self { stream, timer, .. } = self;
        poll_fn(|context| {
            if stream.poll_closed(context).is_ready() {
                return Poll::Ready(Err(Failed));
            }
            timer.poll_expired(context).map(Ok)
        })
        .await
    }

    async fn send_head(&mut self, head: &Head, edits: &Edits<'_>) -> Result<(), Failed> {
        let mut frame = Buffer::with_capacity(ENCODED_HEAD);
        h3::encode_response(head, edits, &mut frame).map_err(|_| Failed)?;
        let mut nothing = Buffer::empty();
        self.arm();
        let Self { stream, timer, .. } = self;
        while !frame.is_empty() {
            poll_fn(|context| patient(stream.poll_write(context, &mut frame, &mut nothing, false), timer, context))
                .await?;
        }
        Ok(())
    }

    async fn send_body(&mut self, request: &Request, size: u64) -> Result<(), Failed> {
        let content = if request.parameters.random { Content::Random } else { Content::Lines };
        let worker = Rc::clone(&self.worker);
        let mut position = 0;
        while position < size {
            let piece = if request.help {
                PAGE.as_bytes().get(position as usize..).unwrap_or_default()
            } else {
                worker.patterns.from(content, position)
            };
            let most = usize::try_from(size - position).unwrap_or(usize::MAX).min(piece.len());
            let slices = [IoSlice::new(&piece[..most])];
            self.arm();
            let Self { stream, timer, .. } = self;
            let written =
                poll_fn(|context| patient(stream.poll_write_slices(context, &slices, false), timer, context)).await?;
            if written == 0 {
                return Err(Failed);
            }
            position += written as u64;
        }
        Ok(())
    }

    fn arm(&mut self) {
        self.timer.arm(Some(deadline()));
    }
}

fn deadline() -> Moment {
    rt::now() + STALL
}

/// Returns the result of an operation, or fails once the timer has expired.
fn patient<T>(result: Poll<io::Result<T>>, timer: &mut Timer, context: &mut Context<'_>) -> Poll<Result<T, Failed>> {
    match result {
        Poll::Ready(result) => Poll::Ready(result.map_err(Failed::from)),
        Poll::Pending => timer.poll_expired(context).map(|()| Err(Failed)),
    }
}
