//! How connections end over kernel sockets: data written before arrives, whatever the client sends.

use crate::support::{DEFAULTS, Folder, Running, connect, free_port, get};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use wire::h2::{FrameHeader, HEADER_LENGTH, Kind, PREFACE, Setting, flag, push_frame};

/// More than the receive window of a client that does not read.
const BODY: usize = 600_000;
/// Bytes that a client reads at a time, and its pause: reading a body takes longer than closing its connection.
const PIECE: usize = 4_000;
const PAUSE: Duration = Duration::from_millis(10);

/// Runs a server that answers every request with a body of that length, and closes after an early answer.
fn origin(length: usize, status: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        let text = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
                        let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(&vec![b'x'; length]));
                        if !status.starts_with('2') {
                            return;
                        }
                    }
                }
            });
        }
    });
    port
}

/// Runs Weir in front of that server, with additional lines.
fn serving(folder: &Folder, origin: u16, lines: &str) -> (Running, u16) {
    let port = free_port();
    let text = format!("{DEFAULTS}listen l\n    bind 127.0.0.1:{port}\n    server s 127.0.0.1:{origin}\n{lines}\n");
    let file = folder.write("endings.cfg", &text);
    (Running::weir(&["-db", "-f", &file]), port)
}

/// Reads slowly to the end, and sends `said` with each piece. The connection must not end with a reset.
fn read_slowly(client: &mut TcpStream, said: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        match client.read(&mut piece).unwrap_or_else(|error| panic!("{error} after {} bytes", all.len())) {
            0 => return all,
            count => all.extend_from_slice(&piece[..count]),
        }
        // After the end this may fail.
        let _ = client.write_all(said);
        thread::sleep(PAUSE);
    }
}

#[test]
fn a_soft_stop_cuts_no_answer_off_from_a_client_of_http_2_that_reads_slowly() {
    let folder = Folder::new();
    let (weir, port) = serving(&folder, origin(BODY, "200 OK"), "");
    let mut client = connect(port);
    let mut asked = PREFACE.to_vec();
    push_frame(&mut asked, Kind::Settings, 0, 0, &Setting::InitialWindowSize.bytes(1 << 20));
    push_frame(&mut asked, Kind::WindowUpdate, 0, 0, &(1_u32 << 20).to_be_bytes());
    let mut block = vec![0x82, 0x84, 0x86];
    block.extend_from_slice(b"\x01\x01a");
    push_frame(&mut asked, Kind::Headers, flag::END_HEADERS | flag::END_STREAM, 1, &block);
    client.write_all(&asked).expect("sent");
    let mut begun = vec![0; PIECE];
    client.read_exact(&mut begun).expect("the answer begins");
    weir.send(Signal::USR1);
    let mut said = Vec::new();
    push_frame(&mut said, Kind::Ping, 0, 0, b"pingping");
    push_frame(&mut said, Kind::WindowUpdate, 0, 0, &1_u32.to_be_bytes());
    begun.extend_from_slice(&read_slowly(&mut client, &said));
    let (mut rest, mut length, mut ended) = (&begun[..], 0, false);
    while let Some(header) = FrameHeader::parse(rest) {
        if header.kind == Kind::Data {
            length += header.length;
            ended |= header.has(flag::END_STREAM);
        }
        rest = rest.get(HEADER_LENGTH + header.length..).unwrap_or_default();
    }
    assert_eq!((length, ended), (BODY, true));
    drop(client);
    assert_eq!(weir.finish().code(), Some(0));
}

#[test]
fn a_client_that_asks_again_too_late_gets_what_it_has_asked_for_before() {
    let folder = Folder::new();
    let (_weir, port) = serving(&folder, origin(200_000, "200 OK"), "    timeout http-keep-alive 50ms\n");
    let mut client = connect(port);
    client.write_all(get("/").as_bytes()).expect("sent");
    let mut begun = vec![0; PIECE];
    client.read_exact(&mut begun).expect("the answer begins");
    thread::sleep(Duration::from_millis(200));
    begun.extend_from_slice(&read_slowly(&mut client, get("/again").as_bytes()));
    assert!(begun.len() >= 200_000, "{}", begun.len());
}

#[test]
fn an_upload_that_is_answered_early_is_read_to_its_end() {
    let folder = Folder::new();
    let (_weir, port) =
        serving(&folder, origin(4, "413 Large"), "    http-request deny deny_status 413 if { path /denied }\n");
    for path in ["/denied", "/"] {
        let mut client = connect(port);
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4000000\r\n\r\n");
        client.write_all(head.as_bytes()).expect("sent");
        let mut begun = [0; 12];
        client.read_exact(&mut begun).expect("the answer begins");
        client.write_all(&vec![b'u'; 4_000_000]).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(&begun, b"HTTP/1.1 413", "{answer}");
    }
}
