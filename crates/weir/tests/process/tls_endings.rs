//! How connections by TLS end over sockets of the kernel: a client gets all that was written to it before the end and the word that
//! nothing more comes, or does not get that word.

use crate::support::{DEFAULTS, Folder, Running, connect, free_port, get};
use base::buffer::Buffer;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;
use tls::connection::LARGEST_FLIGHT;
use tls::{Client, Connection, RecordContent, asked_name, client::Settings};

/// More than the window of a client that does not read.
const BODY: usize = 600_000;
/// What a client reads at a time, and how long it pauses then: all of a body takes longer than the end of its connection.
const PIECE: usize = 4_000;
const PAUSE: Duration = Duration::from_millis(10);

/// Less than the kernel keeps of an answer.
const SHORT: usize = 200_000;

/// A server that answers by the path: `/sized` and `/short` and stays, `/closed` until it closes, `/reset` until it resets the
/// connection.
fn origin() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            thread::spawn(move || answer(stream));
        }
    });
    port
}

fn answer(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
        head.clear();
        let (field, length) = match &*path {
            "/sized" => (format!("content-length: {BODY}\r\n"), BODY),
            "/short" => (format!("content-length: {SHORT}\r\n"), SHORT),
            _ => (String::new(), BODY),
        };
        let sent = stream.write_all(format!("HTTP/1.1 200 OK\r\n{field}\r\n").as_bytes());
        let _ = sent.and_then(|()| stream.write_all(&vec![b'x'; length]));
        if path == "/reset" {
            rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket");
        }
        if field.is_empty() {
            return;
        }
    }
}

/// A client by TLS over a socket.
struct Secure {
    stream: TcpStream,
    connection: Connection,
    input: Buffer,
}

/// What a client has got of a connection that has ended.
#[derive(Debug, PartialEq, Eq)]
struct ReceivedEnd {
    bytes: usize,
    /// The word that nothing more comes.
    in_order: bool,
}

impl Secure {
    fn connect(port: u16) -> Secure {
        let client = Client::new(Settings::default()).expect("a client");
        let connection = Connection::of_client(&client, asked_name(Some("a.example"), None), None).expect("a client");
        let mut own = Secure { stream: connect(port), connection, input: Buffer::with_capacity(LARGEST_FLIGHT) };
        loop {
            let mut out = Vec::new();
            let shaken = own.connection.shake(&mut own.input, &mut out);
            own.stream.write_all(&out).expect("it takes part");
            if shaken.expect("a handshake").is_open() {
                return own;
            }
            assert!(own.read(PIECE), "the handshake was not finished");
        }
    }

    /// False: the end of the connection.
    fn read(&mut self, most: usize) -> bool {
        let mut piece = vec![0; most];
        let count = self.stream.read(&mut piece).unwrap_or_default();
        self.input.compact();
        assert!(self.input.push(&piece[..count]));
        count > 0
    }

    /// Sends bytes as far as the other side takes them.
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let (mut sent, mut out) = (0, Vec::new());
        while sent < bytes.len() {
            sent += self.connection.send([&bytes[sent..], &[]], usize::MAX, &mut out).expect("it is open");
        }
        self.stream.write_all(&out)
    }

    /// Plain bytes; `None`: the end, with the word that nothing more comes or without.
    fn receive(&mut self) -> Result<Vec<u8>, bool> {
        loop {
            match self.connection.receive(&mut self.input, &mut Vec::new()) {
                Ok(RecordContent::Data { plain, behind }) => {
                    let bytes = self.input.data()[..plain].to_vec();
                    self.input.consume(plain + behind);
                    return Ok(bytes);
                }
                Ok(RecordContent::Own) => {}
                Ok(RecordContent::End) => return Err(true),
                Ok(RecordContent::Part) if self.read(PIECE) => {}
                Ok(RecordContent::Part) | Err(_) => return Err(false),
            }
        }
    }

    /// Reads slowly to the end, and sends `said` now and then.
    fn read_slowly(&mut self, said: &[u8]) -> ReceivedEnd {
        let mut bytes = 0;
        loop {
            match self.receive() {
                Ok(some) => bytes += some.len(),
                Err(in_order) => return ReceivedEnd { bytes, in_order },
            }
            // It may have ended by then.
            let _ = self.send(said);
            thread::sleep(PAUSE);
        }
    }
}

/// Serves that server by TLS, with more lines.
fn serving(folder: &Folder, lines: &str) -> (Running, u16) {
    let port = free_port();
    let certificate = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/site.pem");
    let text = format!(
        "{DEFAULTS}listen l\n    bind 127.0.0.1:{port} ssl crt {}\n    server s 127.0.0.1:{}\n{lines}\n",
        certificate.display(),
        origin()
    );
    let file = folder.write("endings.cfg", &text);
    (Running::weir(&["-db", "-f", &file]), port)
}

/// The bytes of the head of an answer whose body has that many bytes: what came beside them.
fn begun(client: &mut Secure, path: &str) -> usize {
    client.send(get(path).as_bytes()).expect("sent");
    let mut head = Vec::new();
    loop {
        head.extend(client.receive().expect("the answer begins"));
        if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            return head.len() - end - 4;
        }
    }
}

#[test]
fn a_soft_stop_cuts_no_answer_off_from_a_client_by_tls_that_reads_slowly() {
    let folder = Folder::new();
    // The answer that is on its way may not say that the connection ends: its client may still ask again.
    let (weir, port) = serving(&folder, "    timeout http-keep-alive 500ms\n");
    let mut client = Secure::connect(port);
    let first = begun(&mut client, "/sized");
    weir.send(Signal::USR1);
    let seen = client.read_slowly(b"");
    assert_eq!(seen, ReceivedEnd { bytes: BODY - first, in_order: true });
    drop(client);
    assert_eq!(weir.finish().code(), Some(0));
}

#[test]
fn a_client_by_tls_that_asks_again_too_late_gets_what_it_has_asked_for_before() {
    let folder = Folder::new();
    let (_weir, port) = serving(&folder, "    timeout http-keep-alive 50ms\n");
    let mut client = Secure::connect(port);
    let first = begun(&mut client, "/short");
    thread::sleep(Duration::from_millis(200));
    let seen = client.read_slowly(get("/again").as_bytes());
    assert!(seen.bytes >= SHORT - first, "{seen:?}");
    assert!(seen.in_order, "{seen:?}");
}

/// What the end of the connection delimits: a server that closes has sent all of it, one that resets may not have.
#[test]
fn the_end_of_an_answer_by_tls_is_an_orderly_one_only_where_its_servers_was() {
    let folder = Folder::new();
    let (_weir, port) = serving(&folder, "");
    for (path, in_order) in [("/closed", true), ("/reset", false)] {
        for said in [&b""[..], b"more"] {
            let mut client = Secure::connect(port);
            let first = begun(&mut client, path);
            let seen = client.read_slowly(said);
            assert_eq!(seen.in_order, in_order, "{path}: {seen:?}");
            assert!(!in_order || seen.bytes == BODY - first, "{path}: {seen:?}");
        }
    }
}

#[test]
fn an_upload_by_tls_that_is_answered_early_is_read_to_its_end() {
    let folder = Folder::new();
    let (_weir, port) = serving(&folder, "    http-request deny deny_status 413\n");
    let mut client = Secure::connect(port);
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4000000\r\n\r\n";
    client.send(head.as_bytes()).expect("sent");
    let mut answer = client.receive().expect("the answer begins");
    for _ in 0..40 {
        client.send(&[b'u'; 100_000]).expect("the upload is read");
    }
    loop {
        match client.receive() {
            Ok(some) => answer.extend(some),
            Err(in_order) => {
                assert!(in_order);
                break;
            }
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&answer));
}
