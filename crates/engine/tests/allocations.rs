//! Tests that a warm worker serves a keep-alive request without an allocation: over real sockets, counted in the whole
//! process; and that an idle client takes little of it. Must never share its process with another test, whose allocations would be counted.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use config::environment::Environment;
use config::{InputFile, LoadOptions};
use engine::generation::Generation;
use engine::listener::Listening;
use engine::service::log::Targets;
use engine::worker::Process;
use policy::program::Program;
use rt::net::{Address, BindOptions, ListeningSocket};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use weir_engine as engine;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of requests before and during the counting of allocations.
const WARM_UP: usize = 300;
const COUNTED: usize = 300;

const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello";
const OK: &str = "HTTP/1.1 200 OK\r\nServer: test\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";

/// An engine with one worker, in a thread of its own.
struct Engine {
    address: SocketAddr,
    handle: rt::Handle,
    thread: thread::JoinHandle<()>,
    shared: Arc<Process>,
}

struct NoNames;

impl policy::Resolver for NoNames {
    fn resolve(&mut self, host: &str, _: config::spec::Family) -> Result<std::net::IpAddr, String> {
        Err(host.to_owned())
    }
}

fn program(text: &str) -> Program {
    let file = InputFile { name: "haproxy.cfg".to_owned(), bytes: text.as_bytes().to_vec() };
    let loaded = config::load(&[file], Environment::new(), &LoadOptions::default());
    assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
    policy::compile(&loaded.spec, &mut NoNames, &policy::SystemLimits::default(), &mut Vec::new()).unwrap()
}

impl Engine {
    /// Serves the first `bind` line of a configuration at a free port instead of its own.
    fn start(text: &str) -> Engine {
        let program = Arc::new(program(text));
        let any = Address::Inet("127.0.0.1:0".parse().unwrap());
        let socket = Arc::new(ListeningSocket::bind(&any, &BindOptions::default()).unwrap());
        let address = socket.local_address().inet().unwrap();
        let live = Arc::new(program.live(7));
        let generation = Generation::new(program, 7);
        let (targets, _) = Targets::open(&generation, &live, "haproxy");
        let shared = Arc::new(Process::new(generation, live, Arc::new(targets), 1));
        let (tell, told) = mpsc::channel();
        let process = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let listening: Arc<[Listening]> =
                Arc::new([Listening { frontend: 0, bind: 0, socket, workers: None, closed: Arc::default() }]);
            let tell = Mutex::new(tell);
            let main: rt::Main = Arc::new(move |_| {
                tell.lock().unwrap().send(rt::handle()).unwrap();
                Box::pin(engine::serve(Arc::clone(&shared), Arc::clone(&listening)))
            });
            rt::run(&rt::Config::default(), main).unwrap();
        });
        Engine { address, handle: told.recv().unwrap(), thread, shared: process }
    }

    /// Switches to another configuration, and returns once the previous one was released.
    fn reload(&self, text: &str) {
        let next = Generation::following(Arc::new(program(text)), &self.shared.generation());
        let (tell, told) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        self.handle.post(0, Box::new(move || tell.send(shared.adopt(next)).unwrap()));
        assert_eq!(told.recv().unwrap(), Ok(()));
        while self.shared.is_adopting() || self.shared.generations() > 1 {
            thread::yield_now();
        }
    }

    /// The number of descriptors of the process, and of tasks of the worker.
    fn holdings(&self) -> (usize, usize) {
        let (tell, told) = mpsc::channel();
        // After the tasks that were woken to end.
        let ask = move || {
            rt::spawn(rt::Class::Background, rt::NO_TAG, async move {
                rt::sleep(Duration::from_millis(5)).await;
                tell.send(rt::tasks()).unwrap();
            });
        };
        self.handle.post(0, Box::new(ask));
        let tasks = told.recv().unwrap();
        (std::fs::read_dir("/proc/self/fd").unwrap().count(), tasks)
    }

    fn stop(self) {
        self.handle.stop();
        self.thread.join().unwrap();
    }
}

/// Starts a server that answers every request of `length` bytes on every connection, without an allocation per request.
fn origin(length: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut buffer = [0; 512];
                let mut got = 0;
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    got += count;
                    if got == length {
                        got = 0;
                        stream.write_all(OK.as_bytes()).unwrap();
                    }
                }
            });
        }
    });
    address
}

/// The answer to requests that are redirected.
const FOUND: &str = "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /x\r\ncache-control: no-cache\r\n\r\n";

fn ask(stream: &mut TcpStream, request: &str, status: &str, answer: &mut [u8]) {
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_exact(answer).unwrap();
    assert!(answer.starts_with(status.as_bytes()), "{}", answer.escape_ascii());
}

/// A request of HTTP/2 that ends its stream: GET http://a.example/.
const BLOCK: &[u8] = b"\x82\x86\x84\x01\x09a.example";
/// An answer of HTTP/2: 200, content-length 2, and its payload.
const ANSWER: [&[u8]; 2] = [b"\x88\x0f\x0d\x012", b"ok"];

/// One end of an HTTP/2 connection, which allocates nothing for a frame.
struct Frames {
    stream: TcpStream,
    bytes: [u8; 4096],
    length: usize,
}

impl Frames {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, bytes: [0; 4096], length: 0 }
    }

    fn write(&mut self, kind: u8, flags: u8, number: u32, payload: &[u8]) {
        let mut frame = [0; 64];
        frame[2] = payload.len() as u8;
        (frame[3], frame[4]) = (kind, flags);
        frame[5..9].copy_from_slice(&number.to_be_bytes());
        frame[9..9 + payload.len()].copy_from_slice(payload);
        self.stream.write_all(&frame[..9 + payload.len()]).unwrap();
    }

    fn fill(&mut self, least: usize) -> Option<()> {
        while self.length < least {
            let count = self.stream.read(&mut self.bytes[self.length..]).ok().filter(|count| *count > 0)?;
            self.length += count;
        }
        Some(())
    }

    /// Reads a frame and returns its kind, flags and stream; SETTINGS are acknowledged.
    fn next(&mut self) -> Option<(u8, u8, u32)> {
        self.fill(9)?;
        let whole = 9 + usize::from(self.bytes[1]) * 256 + usize::from(self.bytes[2]);
        self.fill(whole)?;
        let (kind, flags) = (self.bytes[3], self.bytes[4]);
        let number = u32::from_be_bytes(*self.bytes[5..9].first_chunk().unwrap());
        self.bytes.copy_within(whole..self.length, 0);
        self.length -= whole;
        if kind == 4 && flags == 0 {
            self.write(4, 1, 0, b"");
        }
        Some((kind, flags, number))
    }

    /// Sends a request, and reads its answer.
    fn ask(&mut self, number: u32) {
        self.write(1, 5, number, BLOCK);
        loop {
            let (kind, flags, of) = self.next().unwrap();
            assert!(!matches!(kind, 3 | 7), "a frame of kind {kind}");
            if of == number && kind <= 1 && flags & 1 != 0 {
                return;
            }
        }
    }
}

/// Starts a server that answers every request by HTTP/2.
fn origin_of_streams() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut frames = Frames::new(stream.unwrap());
                frames.stream.read_exact(&mut [0; 24]).unwrap();
                frames.write(4, 0, 0, b"");
                while let Some((kind, _, number)) = frames.next() {
                    if kind == 1 {
                        frames.write(1, 4, number, ANSWER[0]);
                        frames.write(0, 1, number, ANSWER[1]);
                    }
                }
            });
        }
    });
    address
}

/// The number of allocations for HTTP/2 requests, to a server of either version.
fn allocations_of_streams(server: &str) -> usize {
    let text = format!(
        "defaults\n mode http\n timeout client 10s\n timeout server 10s\n timeout connect 10s\n\
         listen l\n bind 127.0.0.1:1\n server s1 {server}\n"
    );
    let engine = Engine::start(&text);
    let mut client = Frames::new(TcpStream::connect(engine.address).unwrap());
    client.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    client.write(4, 0, 0, b"");
    let mut numbers = (1..).step_by(2);
    numbers.by_ref().take(WARM_UP).for_each(|number| client.ask(number));
    let counted = least(|| numbers.by_ref().take(COUNTED).for_each(|number| client.ask(number)));
    engine.stop();
    counted
}

/// Opens a connection of HTTP/2 that has had one answer.
fn open_h2(address: SocketAddr) -> TcpStream {
    let mut client = Frames::new(TcpStream::connect(address).unwrap());
    client.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    client.write(4, 0, 0, b"");
    client.ask(1);
    client.stream
}

/// Opens a connection of HTTP/1 that has had one answer.
fn open_h1(address: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    ask(&mut client, GET, "HTTP/1.1 200", &mut [0; OK.len()]);
    client
}

/// Returns the bytes of the heap for each idle client beyond the first ones, including its share of the worker's tables: these
/// grow once while the clients are counted.
fn heap_of_idle_client(request: usize, open: fn(SocketAddr) -> TcpStream) -> isize {
    const FIRST: usize = 150;
    const FURTHER: usize = 250;
    let server = origin(request);
    let engine = Engine::start(&format!(
        "defaults\n mode http\n timeout client 100s\n timeout server 100s\n timeout connect 10s\n\
         listen l\n bind 127.0.0.1:1\n http-reuse always\n server s1 {server}\n"
    ));
    let mut clients = Vec::with_capacity(FIRST + FURTHER);
    clients.extend((0..FIRST).map(|_| open(engine.address)));
    // The clients are idle once the worker has slept.
    engine.holdings();
    let region = Region::new(ALLOCATOR);
    clients.extend((0..FURTHER).map(|_| open(engine.address)));
    engine.holdings();
    let change = region.change();
    engine.stop();
    (change.bytes_allocated as isize - change.bytes_deallocated as isize) / FURTHER as isize
}

/// Most clients of a proxy are idle.
fn idle_clients_take_little_memory() {
    let framed = "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n".len();
    for (what, request, open, most) in
        [("HTTP/1", GET.len(), open_h1 as fn(SocketAddr) -> TcpStream, 490), ("HTTP/2", framed, open_h2, 1050)]
    {
        let bytes = heap_of_idle_client(request, open);
        assert!(bytes > 0 && bytes <= most, "{bytes} bytes for each idle client of {what}");
    }
}

/// Allocations and reallocations of `COUNTED` requests: the least of three rounds, since the test harness allocates as
/// well (for example a note about a slow test).
fn least(mut round: impl FnMut()) -> usize {
    let count = |()| {
        let region = Region::new(ALLOCATOR);
        round();
        let change = region.change();
        change.allocations + change.reallocations
    };
    [(); 3].map(count).into_iter().min().unwrap()
}

/// Allocations and reallocations of `COUNTED` requests on a warm engine. A request reaches the server with its length
/// unchanged, except for the field `added`.
fn allocations(global: &str, proxy: &str, request: &str, added: &str, answer: &str) -> usize {
    let server = origin(request.len() + added.len());
    let text = format!(
        "global\n{global}\ndefaults\n mode http\n log global\n timeout client 10s\n timeout server 10s\n timeout connect 10s\n\
         listen l\n bind 127.0.0.1:1\n{proxy}\n server s1 {server}\n"
    );
    let engine = Engine::start(&text);
    let mut client = TcpStream::connect(engine.address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.set_nodelay(true).unwrap();
    let (status, mut answer) = (&answer[..12], vec![0; answer.len()]);
    for _ in 0..WARM_UP {
        ask(&mut client, request, status, &mut answer);
    }
    let counted = least(|| (0..COUNTED).for_each(|_| ask(&mut client, request, status, &mut answer)));
    engine.stop();
    counted
}

#[test]
fn a_warm_worker_allocates_nothing_for_a_request() {
    let region = Region::new(ALLOCATOR);
    drop(vec![0_u8; 100]);
    assert_eq!(region.change().allocations, 1, "allocations are counted");
    // A receiver must exist, else the kernel reports that the port is unreachable.
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    let logging = format!(" log {} local0", log.local_addr().unwrap());
    let rows = [
        ("a request", "", "", GET, "", OK),
        ("with a body", "", "", POST, "", OK),
        ("with a line of log", logging.as_str(), " option httplog", GET, "", OK),
        ("with the client's address", "", " option forwardfor", GET, "x-forwarded-for: 127.0.0.1\r\n", OK),
        ("over a link of its own", "", " http-reuse never", GET, "", OK),
        ("redirected", "", " http-request redirect location /x", GET, "", FOUND),
        ("redirected, with a body", "", " http-request redirect location /x", POST, "", FOUND),
        ("with another balance", "", " balance leastconn", GET, "", OK),
    ];
    for (what, global, proxy, request, added, answer) in rows {
        assert_eq!(allocations(global, proxy, request, added, answer), 0, "{COUNTED} times {what}");
    }
    // A stream has the memory of streams before it.
    let length = "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n".len();
    for (what, server) in [
        ("by HTTP/2", origin(length).to_string()),
        ("by HTTP/2 on both sides", format!("{} proto h2", origin_of_streams())),
    ] {
        assert_eq!(allocations_of_streams(&server), 0, "{COUNTED} times {what}");
    }
    idle_clients_take_little_memory();
    bombs_take_little_memory();
    reloads_keep_nothing();
}

/// A process that switches configurations repeatedly keeps no memory of previous ones, nor a descriptor, nor a task.
fn reloads_keep_nothing() {
    reload_often(|number| {
        format!(
            " acl known path /a{number} /b{number}\n http-request set-header x-number {number} if known\n \
             http-request set-var(txn.v{}) str({number})\n http-response set-header x %[var(txn.v{})]\n",
            number % 3,
            number % 3
        )
    });
    // These lines are neither sent nor received.
    reload_often(|number| {
        let port = 20_000 + number;
        format!(
            " log 127.0.0.1:{port} local0\n log tcp@127.0.0.1:{port} local0\n log /weir-{number} local0\n log stdout local0\n \
             log-format \"{number} %ci\"\n log-tag t{number}\n"
        )
    });
}

/// Reloads repeatedly, each time with other lines of a proxy.
fn reload_often(lines: impl Fn(usize) -> String) {
    const RELOADS: std::ops::RangeInclusive<usize> = 21..=220;
    // Less than a pointer and its allocation per reload.
    const KEPT: isize = 16 * 200;
    let text = |number: usize| {
        let lines = lines(number);
        format!(
            "defaults\n mode http\n timeout client 10s\n timeout server 10s\n timeout connect 1s\nlisten l\n bind 127.0.0.1:80\n\
             {lines} server s 127.0.0.1:81\n"
        )
    };
    let engine = Engine::start(&text(0));
    (1..*RELOADS.start()).for_each(|number| engine.reload(&text(number)));
    let before = engine.holdings();
    let region = Region::new(ALLOCATOR);
    RELOADS.for_each(|number| engine.reload(&text(number)));
    // After this the last configuration was dropped: its memory is released after the reply that it is.
    assert_eq!(engine.holdings(), before);
    let change = region.change();
    engine.stop();
    let kept = change.bytes_allocated as isize - change.bytes_deallocated as isize;
    assert!(kept.abs() < KEPT, "{kept} bytes after {} reloads", RELOADS.count());
}

/// A body that is decoded to far more than its limit costs the limit and the memory of a decoder, in every coding.
fn bombs_take_little_memory() {
    use engine::decoding::ContentCoding::{Brotli, Deflate, Gzip, Zstd};
    const LIMIT: usize = 16 * 1024;
    let zeros = vec![0; 10_000_000];
    let gzip = |text: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    };
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(9));
    zlib.write_all(&zeros).unwrap();
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 9, 24);
    brotli.write_all(&zeros).unwrap();
    let mut zstd = Vec::with_capacity(zstd_safe::compress_bound(zeros.len()));
    zstd_safe::compress(&mut zstd, &zeros, 3).unwrap();
    let once = gzip(&zeros);
    // In the last row, a window of 16 MB is address space that is not touched.
    let rows = [
        (&[Gzip][..], once.clone(), 256 << 10),
        (&[Gzip, Gzip], gzip(&once), 256 << 10),
        (&[Gzip, Gzip, Gzip], gzip(&gzip(&once)), 256 << 10),
        (&[Deflate], zlib.finish().unwrap(), 256 << 10),
        (&[Zstd], zstd, 256 << 10),
        (&[Brotli], brotli.into_inner(), 20 << 20),
    ];
    for (codings, body, budget) in rows {
        assert!(body.len() < LIMIT, "{codings:?}: {}", body.len());
        let region = Region::new(ALLOCATOR);
        assert_eq!(engine::decoding::decode(codings, &body, LIMIT), Err(engine::decoding::DecodeError::TooLarge));
        let taken = region.change().bytes_allocated;
        assert!(taken < budget, "{codings:?}: {taken} bytes");
    }
}
