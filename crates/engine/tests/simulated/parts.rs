//! Both ends of HTTP/2 for most tests: heads are texts in HTTP/1 form, payload is sent as the windows allow. Must never
//! judge a message.

use std::collections::BTreeMap;

use testkit::{Peer, Service};
use wire::h2::{
    Decoder, ErrorCode, FrameHeader, HEADER_LENGTH, INITIAL_WINDOW, Kind, PREFACE, Setting, flag, push_frame,
};

use crate::messages::*;
use crate::world::*;

/// A part of a stream sent by one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Head,
    HeadAlone,
    Data,
    End,
    Reset,
}

/// Initial window of a stream in bytes of payload.
pub const WINDOW: usize = INITIAL_WINDOW as usize;

/// Encodes a literal without indexing and without Huffman coding.
pub fn literal(block: &mut Vec<u8>, name: &str, value: &str) {
    block.push(0);
    for text in [name, value] {
        assert!(text.len() < 127);
        block.push(text.len() as u8);
        block.extend_from_slice(text.as_bytes());
    }
}

/// Encodes the block of a head in HTTP/1 form; or of trailers, which have no start line.
fn block(text: &str) -> Vec<u8> {
    let mut block = Vec::new();
    let mut lines = text.split("\r\n").filter(|line| !line.is_empty()).peekable();
    let first = lines.next_if(|line| line.contains("HTTP/1.1"));
    let is_host = |line: &&str| line.to_ascii_lowercase().starts_with("host: ");
    match first.map(|line| line.split(' ').collect::<Vec<_>>()).as_deref() {
        Some(["HTTP/1.1", status, ..]) => literal(&mut block, ":status", status),
        Some(["CONNECT", authority, _]) if !text.contains(":protocol: ") => {
            literal(&mut block, ":method", "CONNECT");
            literal(&mut block, ":authority", authority);
        }
        Some([method, path, _]) => {
            let host = text.split("\r\n").find(is_host).unwrap();
            for (name, value) in
                [(":method", *method), (":scheme", "http"), (":path", path), (":authority", &host["host: ".len()..])]
            {
                literal(&mut block, name, value);
            }
        }
        _ => {}
    }
    for line in lines.filter(|line| !is_host(line)) {
        let (name, value) = line.split_once(": ").unwrap();
        literal(&mut block, &name.to_ascii_lowercase(), value);
    }
    block
}

/// Decodes a block to text.
fn text_of(decoder: &mut Decoder, block: &[u8]) -> String {
    let (mut line, mut fields, mut host) = ([String::new(), String::new()], String::new(), String::new());
    let field = |name: &[u8], value: &[u8]| {
        let value = String::from_utf8(value.to_vec()).unwrap();
        match name {
            b":status" => line = ["HTTP/1.1".to_owned(), value],
            b":method" => line[0] = value,
            b":path" => line[1] = value,
            b":scheme" => {}
            b":authority" => host = format!("host: {value}\r\n"),
            name => fields += &format!("{}: {value}\r\n", String::from_utf8_lossy(name)),
        }
    };
    decoder.decode(block, 100_000, field).unwrap();
    let first = match [&*line[0], &*line[1]] {
        ["", ""] => String::new(),
        ["HTTP/1.1", status] => format!("HTTP/1.1 {status} {}\r\n", wire::http::reason(status.parse().unwrap())),
        [method, path] => format!("{method} {path} HTTP/1.1\r\n"),
    };
    format!("{first}{host}{fields}\r\n")
}

/// Encodes the frame of a part.
pub fn frame(part: Part, stream: u32, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let head = || block(std::str::from_utf8(bytes.as_ref()).unwrap());
    match part {
        Part::Head => push_frame(&mut out, Kind::Headers, flag::END_HEADERS, stream, &head()),
        Part::HeadAlone => {
            push_frame(&mut out, Kind::Headers, flag::END_HEADERS | flag::END_STREAM, stream, &head());
        }
        Part::Data => push_frame(&mut out, Kind::Data, 0, stream, bytes.as_ref()),
        Part::End => push_frame(&mut out, Kind::Data, flag::END_STREAM, stream, &[]),
        Part::Reset => push_frame(&mut out, Kind::RstStream, 0, stream, &ErrorCode::Cancel.bytes()),
    }
    out
}

/// The received part of a message.
#[derive(Default)]
pub struct Message {
    pub head: String,
    /// Interim heads before that one.
    pub interims: Vec<String>,
    pub payload: Vec<u8>,
    pub trailers: String,
    pub end: Option<Part>,
}

/// One end of a connection.
pub struct End {
    pub peer: Peer,
    decoder: Decoder,
    pub messages: BTreeMap<u32, Message>,
    /// Its windows for sending: of each stream, and of the connection.
    credit: BTreeMap<u32, i64>,
    all_credit: i64,
    /// The initial window of a new stream for sending.
    window: i64,
    /// The most bytes of payload in a frame.
    pub piece: i64,
    /// Whether it credits windows for the bytes that it receives.
    pub gives: bool,
    /// The number of PINGs received.
    pub pings: u32,
    /// Whether its SETTINGS were acknowledged.
    settled: bool,
    /// The last stream in a GOAWAY.
    pub gone: Option<u32>,
    /// Whether a stream was reset as refused.
    pub refused: bool,
}

impl End {
    fn over(peer: Peer) -> End {
        let (messages, credit) = (BTreeMap::new(), BTreeMap::new());
        let all_credit = i64::from(INITIAL_WINDOW);
        End {
            peer,
            decoder: Decoder::new(4096),
            messages,
            credit,
            all_credit,
            window: all_credit,
            piece: 1000,
            gives: true,
            pings: 0,
            settled: false,
            gone: None,
            refused: false,
        }
    }

    /// A client.
    pub async fn connect() -> End {
        End::open(WEIR).await
    }

    /// One that has connected to that address: a client, or a server of reverse HTTP.
    pub async fn open(address: &str) -> End {
        End::open_over(Peer::connect(address).await).await
    }

    /// The same on a connection that was used before HTTP/2.
    pub async fn open_over(mut peer: Peer) -> End {
        peer.send(PREFACE).await;
        let mut end = End::over(peer);
        end.frame(Kind::Settings, 0, 0, &[]).await;
        end
    }

    /// Waits until the other side has acknowledged the SETTINGS.
    pub async fn settle(&mut self) {
        while !self.settled {
            assert!(self.step().await, "the end of the connection");
        }
    }

    /// A server, on the next connection accepted.
    pub async fn accept(service: &mut Service) -> End {
        End::serve(service.accept().await).await
    }

    /// A server.
    pub async fn serve(peer: Peer) -> End {
        End::serve_with(peer, &[]).await
    }

    /// A server with settings.
    pub async fn serve_with(mut peer: Peer, settings: &[u8]) -> End {
        peer.expect(PREFACE).await;
        let mut end = End::over(peer);
        end.frame(Kind::Settings, 0, 0, settings).await;
        end
    }

    pub async fn frame(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
        let mut out = Vec::new();
        push_frame(&mut out, kind, flags, stream, payload);
        self.peer.try_send(out).await;
    }

    pub async fn send(&mut self, part: Part, stream: u32, bytes: impl AsRef<[u8]>) {
        if matches!(part, Part::Head | Part::HeadAlone) {
            self.credit.entry(stream).or_insert(self.window);
        }
        self.peer.send(frame(part, stream, bytes)).await;
    }

    /// Receives one frame. Returns false if the connection has ended.
    pub async fn step(&mut self) -> bool {
        let (header, whole) = self.peer.try_receive_up_to(HEADER_LENGTH).await;
        if !whole {
            return false;
        }
        let header = FrameHeader::parse(&header).unwrap();
        let (payload, whole) = self.peer.try_receive_up_to(header.length).await;
        if !whole {
            return false;
        }
        let stream = header.stream;
        let number = payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        match header.kind {
            Kind::Settings if !header.has(flag::ACK) => {
                for setting in payload.chunks(6).filter(|setting| setting[1] == Setting::InitialWindowSize as u8) {
                    let window = i64::from(u32::from_be_bytes(*setting[2..].first_chunk().unwrap()));
                    self.credit.values_mut().for_each(|credit| *credit += window - self.window);
                    self.window = window;
                }
                self.frame(Kind::Settings, flag::ACK, 0, &[]).await;
            }
            Kind::Settings => self.settled = true,
            Kind::Ping if !header.has(flag::ACK) => {
                self.pings += 1;
                self.frame(Kind::Ping, flag::ACK, 0, &payload).await;
            }
            Kind::WindowUpdate if stream == 0 => self.all_credit += i64::from(number),
            Kind::WindowUpdate => {
                *self.credit.entry(stream).or_insert(self.window) += i64::from(number);
            }
            Kind::GoAway => self.gone = Some(number),
            Kind::RstStream => {
                self.refused |= number == ErrorCode::RefusedStream as u32;
                self.messages.entry(stream).or_default().end = Some(Part::Reset);
            }
            Kind::Headers => {
                assert!(header.has(flag::END_HEADERS));
                let text = text_of(&mut self.decoder, &payload);
                self.credit.entry(stream).or_insert(self.window);
                let message = self.messages.entry(stream).or_default();
                assert!(message.end.is_none(), "a head after the end of stream {stream}");
                if text.contains("HTTP/1.1") {
                    let before = std::mem::replace(&mut message.head, text);
                    message.interims.extend(Some(before).filter(|before| !before.is_empty()));
                } else {
                    message.trailers = text
                }
                message.end = header.has(flag::END_STREAM).then_some(Part::End);
            }
            Kind::Data => {
                let message = self.messages.entry(stream).or_default();
                assert!(message.end.is_none(), "payload after the end of stream {stream}");
                message.payload.extend_from_slice(&payload);
                message.end = header.has(flag::END_STREAM).then_some(Part::End);
                if self.gives && header.length > 0 {
                    let length = (header.length as u32).to_be_bytes();
                    self.frame(Kind::WindowUpdate, 0, 0, &length).await;
                    self.frame(Kind::WindowUpdate, 0, stream, &length).await;
                }
            }
            _ => {}
        }
        true
    }

    /// Sends payload as the windows allow.
    pub async fn stream(&mut self, stream: u32, payload: &[u8]) {
        let mut rest = payload;
        while !rest.is_empty() {
            let credit = self.credit[&stream].min(self.all_credit).clamp(0, self.piece) as usize;
            let most = rest.len().min(credit);
            if most == 0 {
                assert!(self.step().await, "the end of the connection");
                continue;
            }
            *self.credit.get_mut(&stream).unwrap() -= most as i64;
            self.all_credit -= most as i64;
            self.send(Part::Data, stream, &rest[..most]).await;
            rest = &rest[most..];
        }
    }

    /// Sends payload and the end.
    pub async fn upload(&mut self, stream: u32, payload: &[u8]) {
        self.stream(stream, payload).await;
        self.send(Part::End, stream, "").await;
    }

    /// Receives the message of a stream, up to its end.
    pub async fn message(&mut self, stream: u32) -> Message {
        while self.messages.get(&stream).is_none_or(|message| message.end.is_none()) {
            assert!(self.step().await, "the end of the connection before that of stream {stream}");
        }
        self.messages.remove(&stream).unwrap()
    }

    /// Expects a complete answer whose head begins with `status`, with that payload.
    pub async fn expect(&mut self, stream: u32, status: &str, payload: &str) {
        let answered = self.message(stream).await;
        assert_eq!(answered.end, Some(Part::End), "{}", answered.head);
        assert!(answered.head.starts_with(status), "{}", answered.head);
        assert_eq!(String::from_utf8_lossy(&answered.payload), payload, "{}", answered.head);
    }

    /// Expects the reset of a stream, whatever was received before.
    pub async fn expect_reset(&mut self, stream: u32) {
        assert_eq!(self.message(stream).await.end, Some(Part::Reset));
    }

    pub async fn expect_end(&mut self) {
        while self.step().await {}
    }

    pub async fn get(&mut self, stream: u32, path: &str) {
        self.send(Part::HeadAlone, stream, get(path)).await;
    }

    pub async fn post(&mut self, stream: u32, head: impl AsRef<[u8]>) {
        self.send(Part::Head, stream, head).await;
    }

    /// Expects the head of a request, and returns its stream.
    pub async fn expect_head(&mut self, head: &str) -> u32 {
        loop {
            if let Some((stream, _)) = self.messages.iter().find(|(_, message)| message.head == head) {
                return *stream;
            }
            assert!(self.step().await, "the end of the connection instead of {head}");
        }
    }

    /// Expects a complete request with that head and payload, and returns its stream.
    pub async fn expect_request(&mut self, head: &str, payload: &[u8]) -> u32 {
        let stream = self.expect_head(head).await;
        while self.messages[&stream].end.is_none() {
            assert!(self.step().await, "the end of the connection");
        }
        let message = &self.messages[&stream];
        assert_eq!(message.end, Some(Part::End), "{head}");
        assert!(message.payload == payload, "{} of {} bytes of {head}", message.payload.len(), payload.len());
        stream
    }

    /// Sends an answer with a length. The request is removed.
    pub async fn answer(&mut self, stream: u32, payload: &[u8]) {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", payload.len());
        self.send(Part::Head, stream, head).await;
        self.upload(stream, payload).await;
        self.messages.remove(&stream);
    }
}
