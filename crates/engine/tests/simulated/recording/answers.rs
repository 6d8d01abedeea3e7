//! Tests of malformed, ambiguous or unusual answers, from servers of one HTTP version to clients of the other: a client
//! gets exactly one answer to each of its requests, an error, or a part of an answer and the end of its stream or
//! connection.

use std::cell::RefCell;
use std::rc::Rc;

use testkit::{Peer, Service};
use wire::h2::{Decoder, ErrorCode, FrameHeader, HEADER_LENGTH, Kind, PREFACE, flag, push_frame};

use super::report;
use super::streams::{FORBIDDEN, FRAMINGS, ODD, block, pair};
use crate::parts::{End, Part};
use crate::world::*;

/// A text that could be taken for another answer.
const HIDDEN: &str = "HTTP/1.1 200 OK\r\nx-hidden: 1\r\nContent-Length: 6\r\n\r\nhidden";

/// Bodies that could be taken for another answer.
const BODIES: &[&str] = &[
    "",
    "hello",
    HIDDEN,
    "5\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n0\r\nx-t: u\r\n\r\nHTTP/1.1 200 OK\r\nx-hidden: 1\r\n\r\n",
];

/// Start lines.
const LINES: &[&str] = &[
    "HTTP/1.1 200 OK",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 204 None",
    "HTTP/1.1 304 Same",
    "HTTP/1.1 101 Switching",
    "HTTP/1.1 20 OK",
    "HTTP/1.1 2000 OK",
    "HTTP/1.1 099 OK",
    "HTTP/1.1 +20 OK",
    "HTTP/1.1 200",
    "HTTP/1.1  200 OK",
    "HTTP/2.0 200 OK",
    "HTTP/1.1 200 O\0K",
    "HTTP/1.1 200 O\rK",
    "HTTP/1.1 200 O\nK",
    "http/1.1 200 OK",
    "GET / HTTP/1.1",
];

const SECTIONS: &str =
    "defaults\n mode http\n timeout client 200ms\n timeout connect 1s\n timeout server 200ms\n retries 0\n";

/// All texts for a connection of HTTP/1.
fn texts() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for line in LINES {
        for body in BODIES {
            all.push(format!("{line}\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
            all.push(format!("{line}\r\n\r\n{body}"));
        }
    }
    // Neither an interim answer nor empty lines are an answer.
    all.extend(
        ["HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 103 Early\r\n\r\n", "\r\n\r\nhello"]
            .map(str::to_owned),
    );
    for (name, value) in FRAMINGS {
        for body in BODIES {
            all.push(format!("HTTP/1.1 200 OK\r\n{name}: {value}\r\n\r\n{body}"));
            all.push(format!("HTTP/1.1 200 OK\r\n{name}: {value}\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
        }
    }
    for text in FORBIDDEN.iter().chain(ODD) {
        for field in [format!("x{text}y: z"), format!("{text}x: z"), format!("x: {text}z"), format!("x: z{text}")] {
            all.push(format!("HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: 5\r\n\r\nhello{HIDDEN}"));
        }
        all.push(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx{text}: y\r\n\r\n{HIDDEN}"));
        all.push(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y{text}\r\n\r\n"));
    }
    all.into_iter().map(String::into_bytes).collect()
}

/// The received part of a stream.
#[derive(Default)]
struct ReceivedAnswer {
    status: Vec<u8>,
    length: Option<usize>,
    payload: Vec<u8>,
    ended: bool,
    reset: bool,
}

/// Parses the frames received by a client; an error is a violation of RFC 9113.
fn read_frames(mut bytes: &[u8]) -> Result<[ReceivedAnswer; 2], String> {
    let mut decoder = Decoder::new(4096);
    let mut streams = [ReceivedAnswer::default(), ReceivedAnswer::default()];
    while let Some(header) = FrameHeader::parse(bytes) {
        let Some(payload) = bytes.get(HEADER_LENGTH..HEADER_LENGTH + header.length) else { break };
        bytes = &bytes[HEADER_LENGTH + header.length..];
        let place = match header.stream {
            0 => continue,
            1 => 0,
            3 => 1,
            other => return Err(format!("stream {other}")),
        };
        let stream = &mut streams[place];
        match header.kind {
            Kind::WindowUpdate => continue,
            Kind::RstStream => {
                stream.reset = true;
                continue;
            }
            _ if stream.ended || stream.reset => return Err(format!("{:?} after the end", header.kind)),
            Kind::Data => stream.payload.extend_from_slice(payload),
            Kind::Headers => {
                let mut fields = Vec::new();
                let decoded =
                    decoder.decode(payload, 100_000, |name, value| fields.push((name.to_vec(), value.to_vec())));
                decoded.map_err(|_| "no block".to_owned())?;
                read_block(stream, &fields)?;
            }
            other => return Err(format!("{other:?}")),
        }
        stream.ended |= header.has(flag::END_STREAM);
        if stream.ended && stream.length.is_some_and(|length| length != stream.payload.len()) {
            return Err("a length that is a lie".to_owned());
        }
    }
    Ok(streams)
}

fn read_block(stream: &mut ReceivedAnswer, fields: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String> {
    let is_trailers = !stream.status.is_empty() && !stream.status.starts_with(b"1");
    for (name, value) in fields {
        let token = name.strip_prefix(b":").unwrap_or(name);
        let odd =
            |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_control() || b" :,;()[]{}\"/\\@?=<>".contains(byte);
        if token.is_empty() || token.iter().any(odd) || value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(format!("the field {}: {}", name.escape_ascii(), value.escape_ascii()));
        }
        match &name[..] {
            b":status" if !is_trailers && value.len() == 3 => stream.status.clone_from(value),
            b"content-length" if !matches!(&stream.status[..], b"204" | b"304") => {
                let length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
                if stream.length.is_some() || length.is_none() {
                    return Err("an odd length".to_owned());
                }
                stream.length = length;
            }
            [b':', ..] | b"connection" | b"transfer-encoding" | b"keep-alive" | b"upgrade" => {
                return Err(format!("the field {}", name.escape_ascii()));
            }
            b"x-hidden" => return Err("an answer to nobody".to_owned()),
            _ => {}
        }
    }
    if stream.status.is_empty() { Err("no status".to_owned()) } else { Ok(()) }
}

#[test]
fn clients_of_http_2_get_the_answers_of_http_1_or_none() {
    let faults = Rc::new(RefCell::new(Vec::new()));
    let found = Rc::clone(&faults);
    config(&format!("{SECTIONS}listen l\n bind {WEIR}\n server s1 {S1}\n")).workers(&[1]).seeds(1..2).run(
        move |world| {
            let faults = Rc::clone(&found);
            async move {
                let texts = Rc::new(texts());
                let sent = Rc::clone(&texts);
                Service::at(S1).serve(&world.scope, move |mut peer, _| {
                    let texts = Rc::clone(&sent);
                    async move {
                        while let Some(head) = peer.try_receive_head().await {
                            match head.split(['/', ' ']).nth(2).and_then(|number| number.parse::<usize>().ok()) {
                                Some(number) => {
                                    peer.try_send(&texts[number]).await;
                                    return;
                                }
                                None => {
                                    peer.try_send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine").await;
                                }
                            }
                        }
                    }
                });
                for (number, text) in texts.iter().enumerate() {
                    let mut client = PREFACE.to_vec();
                    push_frame(&mut client, Kind::Settings, 0, 0, &[]);
                    for (stream, path) in [(1, format!("/{number}")), (3, "/fine".to_owned())] {
                        let fields = [(":method", "GET"), (":scheme", "http"), (":path", &path), (":authority", "a")];
                        let block = block(&fields.map(|(name, value)| pair(name, value)));
                        push_frame(&mut client, Kind::Headers, flag::END_HEADERS | flag::END_STREAM, stream, &block);
                    }
                    let mut peer = Peer::connect(WEIR).await;
                    peer.try_send(&client).await;
                    let (answered, _) = peer.try_receive_up_to(1 << 20).await;
                    let fault = match read_frames(&answered) {
                        Ok([_, fine]) if fine.payload != b"fine" || !fine.ended => "the other stream".to_owned(),
                        Ok([odd, _]) if !odd.ended && !odd.reset => "no end".to_owned(),
                        Ok(_) => continue,
                        Err(fault) => fault,
                    };
                    faults.borrow_mut().push(format!("{}\n  {fault}", text.escape_ascii()));
                }
                assert!(texts.len() > 700);
                world.forget_log();
            }
        },
    );
    report(&faults.take());
}

/// Frames of an answer on the stream with that identifier.
fn answers(stream: u32) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut add = |fields: &[(Vec<u8>, Vec<u8>)], body: &[u8], alone: bool, trailers: &[(Vec<u8>, Vec<u8>)]| {
        let end = |ends| flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
        let mut out = Vec::new();
        push_frame(&mut out, Kind::Headers, end(alone), stream, &block(fields));
        if !alone || !body.is_empty() {
            let ends = if trailers.is_empty() { flag::END_STREAM } else { 0 };
            push_frame(&mut out, Kind::Data, ends, stream, body);
        }
        if !trailers.is_empty() {
            push_frame(&mut out, Kind::Headers, end(true), stream, &block(trailers));
        }
        all.push(out);
    };
    for status in ["200", "204", "304", "100", "103", "101", "20", "2000", "099", "+20", "200 OK", "20\r", "2\x000", ""]
    {
        for body in BODIES {
            for alone in [false, true] {
                add(&[pair(":status", status), pair("x", "y")], body.as_bytes(), alone, &[]);
            }
        }
    }
    for (name, value) in FRAMINGS {
        for body in BODIES {
            for alone in [false, true] {
                add(&[pair(":status", "200"), pair(name, value)], body.as_bytes(), alone, &[]);
            }
            add(&[pair(":status", "200")], body.as_bytes(), false, &[pair(name, value)]);
            add(&[pair(name, value), pair(":status", "200")], body.as_bytes(), false, &[]);
        }
    }
    for text in FORBIDDEN.iter().chain(ODD) {
        for (name, value) in [
            (format!("x{text}"), "y".to_owned()),
            (format!("{text}x"), "y".to_owned()),
            ("x".to_owned(), format!("{text}y")),
            ("x".to_owned(), format!("y{text}")),
            ("content-length".to_owned(), format!("5{text}")),
            (":status".to_owned(), format!("200{text}")),
        ] {
            add(&[pair(":status", "200"), pair(&name, &value)], b"hello", false, &[]);
            add(&[pair(":status", "200")], b"hello", false, &[pair(&name, &value)]);
        }
    }
    all.extend(frames(stream));
    all
}

/// Frames in an invalid order.
fn frames(stream: u32) -> Vec<Vec<u8>> {
    let head = |flags: u8| {
        let mut out = Vec::new();
        push_frame(&mut out, Kind::Headers, flag::END_HEADERS | flags, stream, &[0x88]);
        out
    };
    let one = |kind, flags, payload: &[u8]| {
        let mut out = Vec::new();
        push_frame(&mut out, kind, flags, stream, payload);
        out
    };
    let data = one(Kind::Data, 0, HIDDEN.as_bytes());
    let end = one(Kind::Data, flag::END_STREAM, b"");
    vec![
        [data.clone(), head(0), end.clone()].concat(),
        end.clone(),
        [head(0), head(0), end.clone()].concat(),
        [head(flag::END_STREAM), data.clone(), end.clone()].concat(),
        [head(0), data.clone(), end.clone(), data.clone()].concat(),
        [head(0), data.clone(), end.clone(), head(flag::END_STREAM)].concat(),
        [head(0), data.clone(), one(Kind::RstStream, 0, &ErrorCode::NoError.bytes())].concat(),
        [head(0), one(Kind::PushPromise, flag::END_HEADERS, &[0, 0, 0, 2, 0x88])].concat(),
        [head(0), one(Kind::Data, flag::PADDED, &[9, b'x'])].concat(),
        [head(0), one(Kind::Continuation, flag::END_HEADERS, &[0x88]), end.clone()].concat(),
        [one(Kind::Headers, 0, &[0x88]), data.clone(), end.clone()].concat(),
        [one(Kind::Headers, flag::END_HEADERS, &[0xff; 9]), end.clone()].concat(),
        [head(0), one(Kind::WindowUpdate, 0, &[0; 4]), end.clone()].concat(),
        [head(0), one(Kind::WindowUpdate, 0, &[0x7f, 255, 255, 255]), end].concat(),
    ]
}

/// Parses a whole HTTP/1 answer at the beginning of `bytes`, and returns it with the rest; `None`: the bytes end before
/// it does.
#[allow(clippy::type_complexity, reason = "a head, a body, the rest")]
fn read_text(bytes: &[u8]) -> Result<Option<(String, Vec<u8>, &[u8])>, String> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let rest = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|line| line.get(..3)).and_then(|status| status.parse().ok());
    let Some(status @ 100..=999) = status else { return Err(format!("no status line: {line}")) };
    let (mut length, mut chunked) = (None, false);
    for line in lines {
        let Some((name, value)) = line.split_once(": ") else { return Err(format!("no field: {line}")) };
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) || value.contains(['\r', '\n', '\0']) {
            return Err(format!("no field: {}", line.escape_debug()));
        }
        match name {
            "content-length" if length.is_none() && !chunked => length = value.parse::<usize>().ok(),
            "transfer-encoding" if length.is_none() && !chunked && value == "chunked" => chunked = true,
            "content-length" | "transfer-encoding" => return Err("an ambiguous length".to_owned()),
            "x-hidden" => return Err("an answer to nobody".to_owned()),
            _ => {}
        }
    }
    if matches!(status, 100..200 | 204 | 304) {
        return Ok(Some((head, Vec::new(), rest)));
    }
    if !chunked {
        let length = length.ok_or("no length")?;
        return Ok(rest.split_at_checked(length).map(|(body, rest)| (head, body.to_vec(), rest)));
    }
    let (mut body, mut rest) = (Vec::new(), rest);
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or_else(|| format!("no size: {}", rest[..end].escape_ascii()))?;
        rest = &rest[end + 2..];
        if size == 0 {
            let Some(end) = [b"\r\n".to_vec(), rest.to_vec()].concat().windows(4).position(|four| four == b"\r\n\r\n")
            else {
                return Ok(None);
            };
            return Ok(Some((head, body, &rest[end + 2..])));
        }
        let Some((chunk, behind)) = rest.split_at_checked(size + 2) else { return Ok(None) };
        if !chunk.ends_with(b"\r\n") {
            return Err("a chunk goes on".to_owned());
        }
        body.extend_from_slice(&chunk[..size]);
        rest = behind;
    }
}

/// Judges the bytes received by a client that has sent two requests.
fn judge_text(mut bytes: &[u8]) -> Result<(), String> {
    for turn in 0..2 {
        loop {
            let Some((head, body, rest)) = read_text(bytes)? else { return Ok(()) };
            bytes = rest;
            if turn == 1 && head.starts_with("HTTP/1.1 200") && body != b"fine" {
                return Err(format!("another answer: {head}"));
            }
            if !head.starts_with("HTTP/1.1 1") {
                break;
            }
        }
    }
    if bytes.is_empty() { Ok(()) } else { Err(format!("more: {}", bytes.escape_ascii())) }
}

#[test]
fn clients_of_http_1_get_the_answers_of_http_2_or_none() {
    let faults = Rc::new(RefCell::new(Vec::new()));
    let found = Rc::clone(&faults);
    let sections = format!("{SECTIONS}listen l\n bind {WEIR}\n http-reuse always\n server s1 {S1} proto h2\n");
    config(&sections).workers(&[1]).seeds(1..2).run(move |world| {
        let faults = Rc::clone(&found);
        async move {
            Service::at(S1).serve(&world.scope, |peer, _| async move {
                let mut end = End::serve(peer).await;
                loop {
                    let asked = end.messages.iter().find(|(_, message)| message.end == Some(Part::End));
                    let asked = asked.map(|(stream, message)| (*stream, message.head.clone()));
                    match asked {
                        Some((stream, head)) => {
                            end.messages.remove(&stream);
                            match head.split(['/', ' ']).nth(2).and_then(|number| number.parse::<usize>().ok()) {
                                Some(number) => drop(end.peer.try_send(&answers(stream)[number]).await),
                                None => end.answer(stream, b"fine").await,
                            }
                        }
                        None if !end.step().await => return,
                        None => {}
                    }
                }
            });
            let answers = answers(1);
            for (number, frames) in answers.iter().enumerate() {
                let mut client = Peer::connect(WEIR).await;
                client
                    .try_send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\nGET /fine HTTP/1.1\r\nHost: a\r\n\r\n"))
                    .await;
                let (answered, _) = client.try_receive_up_to(1 << 20).await;
                if let Err(fault) = judge_text(&answered) {
                    let answered = answered.escape_ascii();
                    faults.borrow_mut().push(format!("{}\n  {fault}\n  got {answered}", frames.escape_ascii()));
                }
            }
            assert!(answers.len() > 1000);
            world.forget_log();
        }
    });
    report(&faults.take());
}
