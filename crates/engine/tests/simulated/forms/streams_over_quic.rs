//! A client of HTTP/3: it sends a request in the form of a row, and returns the answer. Must never judge one.

use testkit::sleep;
use wire::h3::{self, ErrorCode, FrameType};

use super::payload;
use super::rows::{Body, Row, SendMode};
use super::sides::{NEXT, ReceivedMessage, bare, message_head};
use crate::http3_client::{Answer, Client, push_data, request, trailers};

const CLIENT: &str = "10.0.9.1:5000";
/// The address that serves HTTP/3.
pub const QUIC: &str = "10.0.0.1:443";
/// A frame of an unknown type (RFC 9114, section 7.2.8) with four bytes of payload.
const UNKNOWN: &[u8] = &[0x21, 4, 1, 2, 3, 4];

pub async fn connect() -> Client {
    Client::connect(CLIENT, QUIC).await
}

/// Sends the request of a row, and receives its answer.
pub async fn exchange(client: &mut Client, row: &Row) -> ReceivedMessage {
    let head = message_head(&row.ask.replacen("http://a/", "/", 1), row.body);
    if row.body == Body::None {
        let id = client.request(&head).await;
        return message(client.answer(id).await);
    }
    let id = client.open();
    client.write(id, &request(&head)).await;
    if row.way == SendMode::Continue {
        client.until(|client| !client.received(id).heads.is_empty()).await;
    }
    let whole = payload(row.body.length());
    let half = if row.way == SendMode::Early { whole.len() / 2 } else { whole.len() };
    client.write(id, &frames(row.way, &whole[..half])).await;
    if row.way == SendMode::Early {
        client.until(|client| client.received(id).ended).await;
        client.write(id, &frames(row.way, &whole[half..])).await;
    }
    match row.body {
        Body::Cut(_) | Body::CutStream(_) => {
            sleep(20).await;
            client.reset(id, ErrorCode::RequestCancelled.number());
            client.step().await;
            return ReceivedMessage::default();
        }
        Body::Trailers(_) => client.write(id, &trailers(row.body.trailers())).await,
        _ => {}
    }
    client.finish(id);
    let answer = client.answer(id).await;
    // The request may be sent later than its answer is received.
    client.until(|client| client.sent.contains(&id)).await;
    message(answer)
}

/// Sends another request, and returns its answer.
pub async fn after(client: &mut Client) -> ReceivedMessage {
    let id = client.request(&format!("{NEXT}\r\n")).await;
    message(client.answer(id).await)
}

/// The frames of payload.
fn frames(way: SendMode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    match way {
        // HTTP/3 has no padding: an unknown frame has the same purpose.
        SendMode::Padded => payload.chunks(200).for_each(|piece| {
            bytes.extend_from_slice(UNKNOWN);
            push_data(&mut bytes, piece);
        }),
        SendMode::EmptyFrames => payload.chunks(300).for_each(|piece| {
            bytes.extend_from_slice(h3::frame_header(FrameType::Data, 0).as_slice());
            push_data(&mut bytes, piece);
        }),
        _ if payload.is_empty() => bytes.extend_from_slice(h3::frame_header(FrameType::Data, 0).as_slice()),
        _ => push_data(&mut bytes, payload),
    }
    bytes
}

/// An answer in the form of HTTP/1.
fn message(answer: Answer) -> ReceivedMessage {
    let text = |head: &String| format!("{}\r\n", head.replacen("HTTP/3.0", "HTTP/1.1", 1).replace('\n', "\r\n"));
    let mut heads: Vec<_> = answer.heads.iter().map(|head| bare(&text(head))).collect();
    let (head, framing) = heads.pop().unwrap_or_default();
    let is_empty = answer.payload.is_empty() && answer.trailers.is_empty() && answer.ended;
    let framing = match (framing.is_empty(), is_empty) {
        (false, _) => framing,
        (true, true) => "none".to_owned(),
        (true, false) => "stream".to_owned(),
    };
    ReceivedMessage {
        interims: heads.into_iter().map(|(head, _)| head).collect(),
        head,
        framing,
        payload: answer.payload,
        trailers: answer.trailers.iter().map(|line| format!("{line}\r\n")).collect(),
        whole: answer.ended,
    }
}
