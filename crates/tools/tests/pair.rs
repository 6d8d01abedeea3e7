//! The load generator and the origin, against each other over real sockets, with every common protocol.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rt::net::{Address, BindOptions, ListeningSocket};
use weir_tools::Outcome;
use weir_tools::load::counters::Counters;
use weir_tools::load::drive::{Drive, Gathering, Report, Sink};
use weir_tools::load::options::{self, LoadTask};
use weir_tools::load::plan::Plan;
use weir_tools::load::show::{Second, Show};
use weir_tools::origin::certificate::{Kind, Origin, offer};
use weir_tools::origin::quic::QuicListening;
use weir_tools::origin::serve::{Listening, Service};

/// An origin on one worker, at one address without TLS, one with TLS and one for HTTP/3.
struct Server {
    clear: SocketAddr,
    secure: SocketAddr,
    quic: SocketAddr,
    handle: rt::Handle,
    thread: thread::JoinHandle<()>,
}

impl Server {
    fn start(kind: Kind) -> Self {
        let any = Address::Inet("127.0.0.1:0".parse().unwrap());
        let listen = || ListeningSocket::bind(&any, &BindOptions::default()).unwrap();
        let address = |socket: &ListeningSocket| socket.local_address().inet().unwrap();
        let offers = offer(Origin::Made(kind)).unwrap();
        let listening = QuicListening::open(&any, 1, &offers.quic).unwrap();
        let quic = listening.local_address().and_then(|address| address.inet()).unwrap();
        let sockets = [None, Some(offers.tcp)].map(|tls| Listening { tls, ..Listening::from(listen()) });
        let [clear, secure] = [&sockets[0], &sockets[1]].map(|listening| address(&listening.socket));
        let service = Service {
            sockets: sockets.into(),
            quic: vec![listening],
            datagrams: Vec::new(),
            workers: 1,
            most: 100,
            line: None,
            starter: None,
            at_end: || {},
        };
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let tell = Mutex::new(tell);
            let inner = service.into_main();
            let main: rt::Main = Arc::new(move |number| {
                tell.lock().unwrap().send(rt::handle()).unwrap();
                inner(number)
            });
            rt::run(&rt::Config::default(), main).unwrap();
        });
        Self { clear, secure, quic, handle: told.recv().unwrap(), thread }
    }

    fn stop(self) {
        self.handle.stop();
        self.thread.join().unwrap();
    }
}

struct Silent;

impl Show for Silent {
    fn begin(&mut self, _: &Plan) -> Result<(), Outcome> {
        Ok(())
    }

    fn second(&mut self, _: &Second, _: &Counters) -> Result<(), Outcome> {
        Ok(())
    }

    fn end(&mut self, _: &Counters, _: Duration) -> Result<(), Outcome> {
        Ok(())
    }
}

/// Ends the runtime with the run.
struct Direct(Mutex<Gathering>, AtomicUsize);

impl Sink for Direct {
    fn report(&self, report: Report) -> Result<(), Box<Report>> {
        self.0.lock().unwrap().take(report).unwrap();
        Ok(())
    }

    fn ended(&self) {
        self.1.store(1, Ordering::SeqCst);
        rt::stop();
    }
}

/// Runs `weir load` with these words to its end; returns its counters, and the first failure.
fn load(line: &str) -> (Counters, Option<String>) {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let Ok(LoadTask::Run(plan)) = options::parse(&words, &weir_tools::load::target::resolve) else { panic!("{line}") };
    let drive = Drive::new((*plan).clone()).unwrap();
    let gathering = Gathering::new(&plan, Box::new(Silent), drive.workers()).unwrap();
    let sink = Arc::new(Direct(Mutex::new(gathering), AtomicUsize::new(0)));
    let main = drive.main(Arc::clone(&sink) as Arc<dyn Sink>);
    rt::run(&rt::Config { workers: drive.workers(), ..rt::Config::default() }, main).unwrap();
    assert_eq!(sink.1.load(Ordering::SeqCst), 1, "{line}");
    let total = sink.0.lock().unwrap().total().clone();
    (total, drive.trouble())
}

/// Returns responses, connections, handshakes and resumed handshakes of a run without a failure.
fn counts(line: &str) -> [u64; 4] {
    let (total, trouble) = load(line);
    assert_eq!((trouble, total.errors.failures()), (None, 0), "{line}: {:?}", total.errors);
    [total.answers, total.connections, total.handshakes, total.resumed]
}

#[test]
fn requests_by_tls_are_answered() {
    for kind in [Kind::P256, Kind::Rsa(2048)] {
        let server = Server::start(kind);
        let at = server.secure;
        for version in ["TLS1.2", "TLS1.3"] {
            let common = format!("--tls-ver {version} -w 20000 https://{at}/?s=");
            assert_eq!(counts(&format!("-n 60 -c 3 {common}64")), [60, 3, 3, 0], "{version}");
            assert_eq!(counts(&format!("-n 6 -c 2 {common}1m")), [6, 2, 2, 0], "{version}");
            // Each slot resumes its own sessions.
            assert_eq!(counts(&format!("-n 9 -r 1 -c 3 -w 20000 --tls-reuse {common}5")), [9, 9, 9, 6], "{version}");
            assert_eq!(counts(&format!("-n 9 -r 1 -c 3 -w 20000 {common}5")), [9, 9, 9, 0], "{version}");
            assert_eq!(counts(&format!("-n 8 --handshakes -c 2 {common}5")), [8, 8, 8, 0], "{version}");
            assert_eq!(counts(&format!("-n 8 --handshakes --tls-reuse -c 2 {common}5")), [8, 8, 8, 6], "{version}");
        }
        server.stop();
    }
}

#[test]
fn a_server_is_verified_where_that_is_asked_for() {
    let server = Server::start(Kind::P256);
    let other = std::env::temp_dir().join(format!("weir-load-ca-{}", std::process::id()));
    let key = rcgen::KeyPair::generate().unwrap();
    let stranger = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(&other, stranger.pem()).unwrap();
    let (total, trouble) = load(&format!("-n 1 -e --ca {} https://{}/", other.display(), server.secure));
    std::fs::remove_file(&other).unwrap();
    assert_eq!(total.answers, 0);
    assert!(trouble.as_ref().is_some_and(|why| why.contains("UnknownIssuer")), "{trouble:?}");
    server.stop();
}

#[test]
fn requests_in_clear_are_answered_by_the_same_origin() {
    let server = Server::start(Kind::P256);
    assert_eq!(counts(&format!("-n 60 -c 3 -w 20000 http://{}/?s=64", server.clear)), [60, 3, 0, 0]);
    server.stop();
}

#[test]
fn requests_by_http_2_are_answered() {
    let server = Server::start(Kind::P256);
    for url in [format!("http://{}", server.clear), format!("https://{}", server.secure)] {
        let shaken = |connections: u64| if url.starts_with("https") { connections } else { 0 };
        for (options, target, answers, connections) in [
            ("-n 60 -c 3", "/?s=64", 60, 3),
            ("-n 2000 -c 2 --streams 32", "/?s=64", 2000, 2),
            ("-n 1500 -c 1 --streams 500", "/", 1500, 1),
            ("-n 40 -c 2 --streams 8", "/?s=1m", 40, 2),
            ("-n 5 -c 1 --streams 2", "/?s=20m", 5, 1),
            ("-n 50 -c 1 --streams 5 -r 10", "/?s=5", 50, 5),
            ("-n 20 -c 1 --streams 4 --data hello", "/?s=5", 20, 1),
            ("-n 20 -c 1 --streams 4 -I", "/?s=5", 20, 1),
            ("-n 20 -c 1 --streams 4", "/?s=5&k=1&R=1&c=0&v=0", 20, 1),
            ("-n 20 -c 1 --streams 10", "/?s=5&t=3", 20, 1),
            ("-n 20 -c 1 --streams 10 -T 2", "/?s=5", 20, 1),
            ("-n 20 -c 1 --streams 10 --constant 2k", "/?s=5", 20, 1),
            ("-n 4 -c 1", "/?", 4, 1),
            ("-n 40 -c 2 --streams 8 --data hello", "/?s=20&k=1&g=1", 40, 2),
            ("-n 4 -c 1", "/?g=1", 4, 1),
        ] {
            let line = format!("--h2 -w 20000 {options} {url}{target}");
            let shaken = shaken(connections);
            assert_eq!(counts(&line)[..], [answers, connections, shaken, 0], "{line}");
        }
        let (total, _) = load(&format!("--h2 -n 30 --streams 10 -w 20000 {url}/?s=100&r=404"));
        assert_eq!((total.answers, total.errors.status), (30, 30));
    }
    server.stop();
}

/// Payload that is larger than every window, in both directions at the same time.
#[test]
fn long_bodies_go_both_ways_by_http_2() {
    let server = Server::start(Kind::P256);
    let body = std::env::temp_dir().join(format!("weir-load-body-{}", std::process::id()));
    std::fs::write(&body, vec![b'x'; 5 << 20]).unwrap();
    for target in ["/?s=3m", "/?s=3m&A=1"] {
        let line = format!("--h2 -n 12 --streams 4 -w 20000 --body {} http://{}{target}", body.display(), server.clear);
        assert_eq!(counts(&line), [12, 1, 0, 0], "{line}");
    }
    std::fs::remove_file(&body).unwrap();
    server.stop();
}

#[test]
fn a_server_that_has_not_agreed_on_http_2_is_not_asked_by_it() {
    // An HTTP/1 server rejects the preface as an invalid request.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 24]).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let (total, trouble) = load(&format!("--h2 -e -n 1 -w 20000 http://{at}/"));
    assert_eq!((total.answers, total.errors.protocol), (0, 1));
    assert!(trouble.is_some_and(|why| why.contains("no HTTP")));
    thread.join().unwrap();
}

#[test]
fn requests_by_http_3_are_answered() {
    let server = Server::start(Kind::P256);
    for (options, target, answers, connections) in [
        ("-n 60 -c 3", "/?s=64", 60, 3),
        ("-n 1000 -c 2 --streams 32", "/?s=64", 1000, 2),
        // More than the server permits at a time.
        ("-n 1500 -c 1 --streams 500", "/", 1500, 1),
        ("-n 12 -c 2 --streams 3", "/?s=1m", 12, 2),
        ("-n 3 -c 1 --streams 2", "/?s=7m", 3, 1),
        ("-n 50 -c 1 --streams 5 -r 10", "/?s=5", 50, 5),
        ("-n 20 -c 1 --streams 4 --data hello", "/?s=5", 20, 1),
        ("-n 20 -c 1 --streams 4 -I", "/?s=5", 20, 1),
        ("-n 20 -c 1 --streams 4", "/?s=5&k=1&R=1&c=0&v=0", 20, 1),
        ("-n 20 -c 1 --streams 10", "/?s=5&t=3", 20, 1),
        ("-n 20 -c 1 --streams 10 -T 2", "/?s=5", 20, 1),
        ("-n 20 -c 1 --streams 10 --constant 2k", "/?s=5", 20, 1),
        ("-n 4 -c 1", "/?", 4, 1),
        ("-n 40 -c 2 --streams 8 --data hello", "/?s=20&k=1&g=1", 40, 2),
        ("-n 4 -c 1", "/?g=1", 4, 1),
        ("-n 20 -c 4 -t 2 --streams 2", "/?s=5", 20, 4),
    ] {
        let line = format!("--h3 -w 20000 {options} https://{}{target}", server.quic);
        assert_eq!(counts(&line), [answers, connections, connections, 0], "{line}");
    }
    let (total, _) = load(&format!("--h3 -n 30 --streams 10 -w 20000 https://{}/?s=100&r=404", server.quic));
    assert_eq!((total.answers, total.errors.status), (30, 30));
    // Each answer has 100 bytes of payload, in frames with a head.
    assert!(total.received > 30 * 100 && total.received < 30 * 400, "{}", total.received);
    server.stop();
}

#[test]
fn handshakes_of_http_3_resume_sessions_where_that_is_asked_for() {
    let server = Server::start(Kind::P256);
    let at = server.quic;
    for (options, expected) in [
        ("-n 9 -r 1 -c 3 --tls-reuse", [9, 9, 9, 6]),
        ("-n 9 -r 1 -c 3", [9, 9, 9, 0]),
        ("-n 8 --handshakes -c 2", [8, 8, 8, 0]),
        ("-n 8 --handshakes --tls-reuse -c 2", [8, 8, 8, 6]),
    ] {
        assert_eq!(counts(&format!("--h3 -w 20000 {options} https://{at}/?s=5")), expected, "{options}");
    }
    server.stop();
}

/// Payload that is larger than every window, in both directions at the same time.
#[test]
fn long_bodies_go_both_ways_by_http_3() {
    let server = Server::start(Kind::P256);
    let body = std::env::temp_dir().join(format!("weir-load-h3-body-{}", std::process::id()));
    std::fs::write(&body, vec![b'x'; 3 << 20]).unwrap();
    for target in ["/?s=3m", "/?s=3m&A=1"] {
        let line = format!("--h3 -n 4 --streams 4 -w 20000 --body {} https://{}{target}", body.display(), server.quic);
        assert_eq!(counts(&line), [4, 1, 1, 0], "{line}");
    }
    std::fs::remove_file(&body).unwrap();
    server.stop();
}

#[test]
fn a_request_that_is_reset_is_a_failure_and_the_connection_goes_on() {
    let server = Server::start(Kind::P256);
    let (total, trouble) = load(&format!("--h3 -n 4 -w 20000 https://{}/?r=199", server.quic));
    assert_eq!((total.answers, total.errors.reset, total.connections, trouble), (0, 4, 1, None));
    let (_, trouble) = load(&format!("--h3 -e -n 4 -w 20000 https://{}/?r=199", server.quic));
    let expected = format!("{}: the server has reset the request: H3_REQUEST_CANCELLED", server.quic);
    assert_eq!(trouble, Some(expected));
    server.stop();
}

#[test]
fn an_address_without_http_3_is_a_failure_to_connect_or_a_timeout() {
    let server = Server::start(Kind::P256);
    let stranger = std::env::temp_dir().join(format!("weir-load-h3-ca-{}", std::process::id()));
    let key = rcgen::KeyPair::generate().unwrap();
    let other = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(&stranger, other.pem()).unwrap();
    let (total, trouble) = load(&format!("--h3 -n 1 -e --ca {} https://{}/", stranger.display(), server.quic));
    std::fs::remove_file(&stranger).unwrap();
    assert_eq!((total.answers, total.errors.connect), (0, 1), "{:?}", total.errors);
    assert!(
        trouble.as_ref().is_some_and(|why| why.contains("no handshake of TLS: this side has sent alert")),
        "{trouble:?}"
    );
    server.stop();
    // This socket answers nothing.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let (total, trouble) = load(&format!("--h3 -e -n 1 -w 100 https://{at}/"));
    assert_eq!((total.answers, total.errors.timeout), (0, 1), "{:?}", total.errors);
    assert_eq!(trouble, Some(format!("{at}: nothing came in time")));
}

#[test]
fn a_request_without_an_answer_ends_its_connection_although_another_one_was_answered() {
    let server = Server::start(Kind::P256);
    for (option, url) in [("--h2", format!("http://{}", server.clear)), ("--h3", format!("https://{}", server.quic))] {
        let line = format!("{option} -n 2 --streams 2 -w 1000 {url}/?s=5 {url}/?s=5&t=60000");
        let (total, trouble) = load(&line);
        assert_eq!((total.answers, total.errors.timeout, total.connections), (1, 1, 1), "{line}: {:?}", total.errors);
        assert_eq!((trouble, total.requests), (None, 2), "{line}");
    }
    server.stop();
}
