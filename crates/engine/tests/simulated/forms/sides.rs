//! Clients and servers of all versions: they send a message in the form of a row, and record the messages that they
//! receive. Must never judge one.

use std::cell::RefCell;
use std::rc::Rc;

use testkit::{Chunked, Peer, decode_chunks, sleep};
use wire::h2::{Kind, MAX_FRAME_SIZE, flag};

use super::rows::{Body, Row, SendMode};
use super::{Version, payload, streams_over_quic};
use crate::http3_client;
use crate::parts::{End, Part};
use crate::world::*;

/// A message as received.
#[derive(Debug, Default)]
pub struct ReceivedMessage {
    pub interims: Vec<String>,
    pub head: String,
    /// The framing of its body.
    pub framing: String,
    pub payload: Vec<u8>,
    pub trailers: String,
    /// Whether it was received to its end.
    pub whole: bool,
}

/// Requests as received by a server.
pub type ReceivedRequests = Rc<RefCell<Vec<ReceivedMessage>>>;

pub const NEXT: &str = "GET /after HTTP/1.1\r\nhost: a\r\n";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n";

/// Returns a head without the framing of the body, its names in lower case, `host` first; and the framing, if a field
/// contains it.
pub fn bare(head: &str) -> (String, String) {
    let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    if !head.contains('\n') {
        return (first.to_owned(), String::new());
    }
    let (mut framing, mut host, mut rest) = (String::new(), String::new(), String::new());
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        match (&*name, value) {
            ("content-length", length) => framing = format!("length {length}"),
            ("transfer-encoding", _) => "stream".clone_into(&mut framing),
            ("connection", "close" | "keep-alive") => {}
            ("host", _) => host = format!("host: {value}\r\n"),
            _ => rest += &format!("{name}: {value}\r\n"),
        }
    }
    // The reason phrase is ignored.
    let first = match first.strip_prefix("HTTP/1.1 ") {
        Some(status) => format!("HTTP/1.1 {}", &status[..3]),
        None => first.to_owned(),
    };
    (format!("{first}\r\n{host}{rest}"), framing)
}

/// A client of any version.
pub enum Client {
    /// `None`: the connection has ended.
    Plain(Option<Peer>),
    Streams(End),
    Quic(Box<http3_client::Client>),
}

impl Client {
    pub async fn connect(version: Version) -> Client {
        match version {
            Version::H1 => Client::Plain(Some(Peer::connect(WEIR).await)),
            Version::H2 => Client::Streams(End::connect().await),
            Version::H3 => Client::Quic(Box::new(streams_over_quic::connect().await)),
        }
    }

    /// Closes a connection that does not end with its transport's.
    pub async fn close(&mut self) {
        if let Client::Quic(client) = self {
            client.close().await;
        }
    }

    /// Whether another request can be sent.
    pub fn goes_on(&self) -> bool {
        !matches!(self, Client::Plain(None))
    }

    /// Sends the request of a row, and receives its answers.
    pub async fn exchange(&mut self, row: &Row) -> Vec<ReceivedMessage> {
        match self {
            Client::Streams(end) => vec![exchange_on_stream(end, row).await],
            Client::Quic(client) => vec![streams_over_quic::exchange(client, row).await],
            Client::Plain(place) => {
                let mut peer = place.take().unwrap();
                let answer = exchange_plain(&mut peer, row).await;
                let stays = answer.whole && row.body.is_whole() && answer.framing != "close";
                if stays {
                    *place = Some(peer);
                }
                vec![answer]
            }
        }
    }

    /// Sends another request, and returns the payload of its answer.
    pub async fn after(&mut self) -> String {
        let seen = match self {
            Client::Streams(end) => {
                end.send(Part::HeadAlone, 101, NEXT).await;
                receive_answer(end, 101).await
            }
            Client::Quic(client) => streams_over_quic::after(client).await,
            Client::Plain(peer) => {
                let peer = peer.as_mut().unwrap();
                peer.send(format!("{NEXT}\r\n")).await;
                read_answer(peer, false).await
            }
        };
        String::from_utf8_lossy(&seen.payload).into_owned()
    }
}

async fn exchange_plain(peer: &mut Peer, row: &Row) -> ReceivedMessage {
    peer.send(plain_head(row.ask, row.body)).await;
    let mut first = Vec::new();
    if row.way == SendMode::Continue {
        first.push(bare(&peer.receive_head().await.unwrap()).0);
    }
    let whole = payload(row.body.length());
    let is_head = row.ask.starts_with("HEAD");
    if row.way == SendMode::Early {
        let half = whole.len() / 2;
        send_pieces(peer, row.body, &whole[..half]).await;
        let answer = read_answer(peer, is_head).await;
        send_pieces(peer, row.body, &whole[half..]).await;
        send_end(peer, row.body).await;
        return answer;
    }
    send_pieces(peer, row.body, &whole).await;
    if !row.body.is_whole() {
        sleep(20).await;
        return ReceivedMessage::default();
    }
    send_end(peer, row.body).await;
    let mut answer = read_answer(peer, is_head).await;
    answer.interims.splice(0..0, first);
    answer
}

/// The head of a message with the framing of its body.
fn plain_head(head: &str, body: Body) -> String {
    match body {
        Body::None | Body::Close(_) => format!("{head}\r\n"),
        Body::Length(length) => format!("{head}content-length: {length}\r\n\r\n"),
        Body::Cut(length) => format!("{head}content-length: {}\r\n\r\n", length + 10),
        Body::Stream(_) | Body::Trailers(_) | Body::CutStream(_) => format!("{head}transfer-encoding: chunked\r\n\r\n"),
    }
}

/// Sends payload, in chunks if the framing needs them.
async fn send_pieces(peer: &mut Peer, body: Body, payload: &[u8]) {
    let is_chunked = matches!(body, Body::Stream(_) | Body::Trailers(_) | Body::CutStream(_));
    for piece in payload.chunks(7000) {
        if is_chunked {
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            peer.try_send(chunk).await;
        } else {
            peer.try_send(piece).await;
        }
    }
}

async fn send_end(peer: &mut Peer, body: Body) {
    if matches!(body, Body::Stream(_) | Body::Trailers(_)) {
        peer.try_send(format!("0\r\n{}\r\n", body.trailers())).await;
    }
}

/// Reads an answer with the interim heads before it.
async fn read_answer(peer: &mut Peer, is_head: bool) -> ReceivedMessage {
    let mut interims = Vec::new();
    loop {
        let Some(head) = peer.try_receive_head().await else {
            return ReceivedMessage { interims, ..ReceivedMessage::default() };
        };
        if head.starts_with("HTTP/1.1 1") {
            interims.push(bare(&head).0);
            continue;
        }
        let has_none = is_head || ["HTTP/1.1 204", "HTTP/1.1 304"].iter().any(|status| head.starts_with(status));
        let otherwise = if has_none { "none" } else { "close" };
        return ReceivedMessage { interims, ..read_message(peer, &head, (otherwise, has_none)).await };
    }
}

/// Reads the rest of a message; `otherwise`: the framing of its body if no field contains it.
async fn read_message(peer: &mut Peer, head: &str, (otherwise, has_none): (&str, bool)) -> ReceivedMessage {
    let (head, framing) = bare(head);
    let framing = if framing.is_empty() { otherwise.to_owned() } else { framing };
    let mut seen = ReceivedMessage { head, framing, whole: true, ..ReceivedMessage::default() };
    match &*seen.framing {
        _ if has_none => {}
        "none" => {}
        "close" => seen.payload = peer.receive_rest().await,
        "stream" => {
            let (mut coded, mut decoded) = (Vec::new(), Chunked::default());
            while !decode_chunks(&mut coded, &mut decoded) {
                let more = peer.receive_some().await;
                if more.is_empty() {
                    seen.whole = false;
                    break;
                }
                coded.extend(more);
            }
            seen.payload = decoded.body;
            seen.trailers = decoded.trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        }
        length => {
            let length = length["length ".len()..].parse().unwrap();
            (seen.payload, seen.whole) = peer.try_receive_up_to(length).await;
        }
    }
    seen
}

async fn exchange_on_stream(end: &mut End, row: &Row) -> ReceivedMessage {
    const STREAM: u32 = 1;
    end.piece = MAX_FRAME_SIZE as i64;
    let head = row.ask.replacen("http://a/", "/", 1);
    send_head(end, STREAM, &head, row.body).await;
    if row.way == SendMode::Continue {
        while end.messages.get(&STREAM).is_none_or(|message| message.head.is_empty()) {
            assert!(end.step().await, "the end of the connection");
        }
    }
    let whole = payload(row.body.length());
    if row.way == SendMode::Early {
        let half = whole.len() / 2;
        send_frames(end, STREAM, row.way, &whole[..half]).await;
        let answer = receive_answer(end, STREAM).await;
        send_frames(end, STREAM, row.way, &whole[half..]).await;
        finish(end, STREAM, row.body).await;
        return answer;
    }
    send_frames(end, STREAM, row.way, &whole).await;
    if !row.body.is_whole() {
        sleep(20).await;
        end.send(Part::Reset, STREAM, "").await;
        return ReceivedMessage::default();
    }
    finish(end, STREAM, row.body).await;
    receive_answer(end, STREAM).await
}

/// The head of a message on a stream, with the length of its body.
pub fn message_head(head: &str, body: Body) -> String {
    match body {
        Body::Length(length) => format!("{head}content-length: {length}\r\n\r\n"),
        Body::Cut(length) => format!("{head}content-length: {}\r\n\r\n", length + 10),
        _ => format!("{head}\r\n"),
    }
}

async fn send_head(end: &mut End, stream: u32, head: &str, body: Body) {
    let head = message_head(head, body);
    let part = if body == Body::None { Part::HeadAlone } else { Part::Head };
    end.send(part, stream, head).await;
}

/// Sends payload in frames.
async fn send_frames(end: &mut End, stream: u32, way: SendMode, payload: &[u8]) {
    match way {
        SendMode::Padded => {
            for (number, piece) in payload.chunks(200).enumerate() {
                let padding = [0, 1, 255, 17][number % 4];
                let frame = [&[padding], piece, &vec![0; usize::from(padding)]].concat();
                end.frame(Kind::Data, flag::PADDED, stream, &frame).await;
            }
        }
        SendMode::EmptyFrames => {
            for piece in payload.chunks(300) {
                end.frame(Kind::Data, 0, stream, &[]).await;
                end.frame(Kind::Data, 0, stream, piece).await;
                end.frame(Kind::Data, flag::PADDED, stream, &[3, 0, 0, 0]).await;
            }
        }
        _ => end.stream(stream, payload).await,
    }
}

async fn finish(end: &mut End, stream: u32, body: Body) {
    match body {
        Body::None => {}
        Body::Trailers(_) => end.send(Part::HeadAlone, stream, body.trailers()).await,
        Body::Cut(_) | Body::CutStream(_) => end.send(Part::Reset, stream, "").await,
        _ => end.send(Part::End, stream, "").await,
    }
}

/// Receives the answer of a stream, up to its end.
async fn receive_answer(end: &mut End, stream: u32) -> ReceivedMessage {
    let is_alone = receive_head(end, stream).await;
    receive_message(end, stream, is_alone).await
}

/// Waits for a head that is not an interim one. Returns whether it ends the message.
async fn receive_head(end: &mut End, stream: u32) -> bool {
    loop {
        if let Some(message) = end.messages.get(&stream)
            && (message.end.is_some() || !message.head.is_empty() && !message.head.starts_with("HTTP/1.1 1"))
        {
            return message.end.is_some();
        }
        assert!(end.step().await, "the end of the connection before the head of stream {stream}");
    }
}

async fn receive_message(end: &mut End, stream: u32, is_alone: bool) -> ReceivedMessage {
    while end.messages.get(&stream).is_some_and(|message| message.end.is_none()) && end.step().await {}
    let Some(message) = end.messages.remove(&stream) else { return ReceivedMessage::default() };
    let (head, framing) = bare(&message.head);
    let framing = match (framing.is_empty(), is_alone) {
        (false, _) => framing,
        (true, true) => "none".to_owned(),
        (true, false) => "stream".to_owned(),
    };
    ReceivedMessage {
        interims: message.interims.iter().map(|head| bare(head).0).collect(),
        head,
        framing,
        payload: message.payload,
        trailers: message.trailers.trim_end_matches("\r\n").lines().map(|line| format!("{line}\r\n")).collect(),
        whole: message.end == Some(Part::End),
    }
}

/// Serves a connection: records the requests, and answers as defined by the row.
pub async fn serve(version: Version, peer: Peer, row: Row, asked: ReceivedRequests) {
    if version.has_streams() {
        serve_streams(End::serve(peer).await, row, asked).await;
    } else {
        serve_plain(peer, row, asked).await;
    }
}

async fn serve_plain(mut peer: Peer, row: Row, asked: ReceivedRequests) {
    while let Some(head) = peer.try_receive_head().await {
        if head.contains(" /after ") {
            peer.try_send("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nafter").await;
            continue;
        }
        if row.way == SendMode::Continue {
            peer.try_send(format!("{CONTINUE}\r\n")).await;
        }
        if row.way == SendMode::Early {
            answer_plain(&mut peer, row).await;
        }
        let seen = read_message(&mut peer, &head, ("none", false)).await;
        let is_whole = seen.whole;
        asked.borrow_mut().push(seen);
        if !is_whole || row.way == SendMode::Vanish {
            return;
        }
        if row.way != SendMode::Early {
            answer_plain(&mut peer, row).await;
        }
        if matches!(row.back, Body::Close(_)) || !row.back.is_whole() {
            return;
        }
    }
}

async fn answer_plain(peer: &mut Peer, row: Row) {
    for head in row.interims {
        peer.try_send(format!("{head}\r\n")).await;
    }
    peer.try_send(plain_head(row.answer, row.back)).await;
    send_pieces(peer, row.back, &payload(row.back.length())).await;
    send_end(peer, row.back).await;
    if !row.back.is_whole() {
        sleep(20).await;
    }
}

async fn serve_streams(mut end: End, row: Row, asked: ReceivedRequests) {
    let mut served = Vec::new();
    end.piece = MAX_FRAME_SIZE as i64;
    loop {
        let begun = end.messages.iter().find(|(stream, message)| !served.contains(*stream) && !message.head.is_empty());
        let Some((stream, message)) = begun.map(|(stream, message)| (*stream, message)) else {
            if !end.step().await {
                return;
            }
            continue;
        };
        served.push(stream);
        if message.head.contains(" /after ") {
            end.answer(stream, b"after").await;
            continue;
        }
        let is_alone = message.end.is_some();
        if row.way == SendMode::Continue {
            end.send(Part::Head, stream, format!("{CONTINUE}\r\n")).await;
        }
        if row.way == SendMode::Early {
            answer_on_stream(&mut end, stream, row).await;
        }
        let seen = receive_message(&mut end, stream, is_alone).await;
        let is_whole = seen.whole;
        asked.borrow_mut().push(seen);
        match row.way {
            SendMode::Vanish => end.send(Part::Reset, stream, "").await,
            SendMode::Early => {}
            _ if is_whole => answer_on_stream(&mut end, stream, row).await,
            _ => {}
        }
    }
}

async fn answer_on_stream(end: &mut End, stream: u32, row: Row) {
    for head in row.interims {
        end.send(Part::Head, stream, format!("{head}\r\n")).await;
    }
    send_head(end, stream, row.answer, row.back).await;
    send_frames(end, stream, row.way, &payload(row.back.length())).await;
    if !row.back.is_whole() {
        sleep(20).await;
    }
    finish(end, stream, row.back).await;
}
