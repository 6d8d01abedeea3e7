//! Tests of every form of a message with all combinations of versions: a row of `rows.rs` is a form, and each side
//! gets what was sent, unless the row contains a difference. Tunnels are in `upgrades.rs`, malformed messages in
//! `recording`.

mod rows;
mod sides;
mod streams_over_quic;

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use testkit::{Service, sleep, text};

use self::rows::{Body, Row, SendMode};
use self::sides::{Client, ReceivedMessage};
use crate::world::*;

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    H1,
    H2,
    H3,
}

impl Version {
    /// Whether a connection has streams.
    fn has_streams(self) -> bool {
        self != Version::H1
    }
}

/// The versions of the client and the server.
type Pair = (Version, Version);

const PAIRS: [Pair; 6] = [
    (Version::H1, Version::H1),
    (Version::H1, Version::H2),
    (Version::H2, Version::H1),
    (Version::H2, Version::H2),
    (Version::H3, Version::H1),
    (Version::H3, Version::H2),
];

/// Differences from the expected results, over all rows.
type Faults = Rc<RefCell<Vec<String>>>;

/// The payload of a message of that length.
fn payload(length: usize) -> Vec<u8> {
    text(length, length as u64)
}

#[test]
fn messages_cross_from_version_to_version() {
    play(rows::FORMS, 0..4);
}

#[test]
fn bodies_of_every_length_cross_from_version_to_version() {
    play(&rows::lengths(), 0..2);
}

fn play(rows: &[Row], seeds: Range<u64>) {
    let faults = Faults::default();
    for &row in rows {
        for pair in PAIRS.into_iter().filter(|pair| row.plays(*pair)) {
            cross(row, pair, (seeds.clone(), &faults));
        }
    }
    let mut faults = faults.take();
    faults.dedup();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Sends the messages of a row, and another request after them on the same connection if possible.
fn cross(row: Row, pair: Pair, (seeds, faults): (Range<u64>, &Faults)) {
    let server = if pair.1 == Version::H2 { "server s1 10.0.1.1:80 proto h2" } else { "server s1 10.0.1.1:80" };
    let quic = format!("bind quic4@{} ssl crt a.pem", streams_over_quic::QUIC);
    listen(&format!("{quic}\n http-reuse always\n {server}")).workers(&[1]).shuffled().seeds(seeds).run(|world| {
        let faults = Rc::clone(faults);
        async move {
            let asked = Rc::new(RefCell::new(Vec::new()));
            let recorded = Rc::clone(&asked);
            Service::at(S1).serve(&world.scope, move |peer, _| sides::serve(pair.1, peer, row, Rc::clone(&recorded)));
            let mut client = Client::connect(pair.0).await;
            let answers = client.exchange(&row).await;
            sleep(50).await;
            let note = |fault: Option<String>| {
                faults.borrow_mut().extend(fault.map(|fault| format!("{} {}: {fault}", row.name, named(pair))));
            };
            note(compare(("the server", pair.1), &expected_request(&row, pair), asked.borrow().first()));
            note(interims(&row, &answers));
            if row.body.is_whole() {
                note(compare(("the client", pair.0), &expected_answer(&row, pair), answers.last()));
            }
            if client.goes_on() {
                let after = client.after().await;
                note((after != "after").then(|| format!("the next request is answered {after:?}")));
            }
            client.close().await;
            world.forget_log();
        }
    });
}

fn named((client, server): Pair) -> String {
    format!("{client:?} -> {server:?}")
}

fn expected_request(row: &Row, pair: Pair) -> ReceivedMessage {
    let written = rows::find(row.at_server, pair);
    let (head, framing) = sides::bare(written.unwrap_or(row.ask));
    let framing = if framing.is_empty() { row.body.framing() } else { framing };
    expected((head, framing), row.body)
}

fn expected_answer(row: &Row, pair: Pair) -> ReceivedMessage {
    let written = rows::find(row.at_client, pair);
    let (head, framing) = sides::bare(written.unwrap_or(row.answer));
    let framing = match row.back {
        _ if !framing.is_empty() => framing,
        Body::Close(_) if pair != (Version::H1, Version::H1) => "stream".to_owned(),
        back => back.framing(),
    };
    expected((head, framing), row.back)
}

fn expected((head, framing): (String, String), body: Body) -> ReceivedMessage {
    let trailers = body.trailers().to_owned();
    ReceivedMessage {
        interims: Vec::new(),
        head,
        framing,
        payload: payload(body.length()),
        trailers,
        whole: body.is_whole(),
    }
}

/// The first difference between the message that a side should get and the one that it got. A part of a truncated
/// message may be lost.
fn compare(
    (side, version): (&str, Version),
    expected: &ReceivedMessage,
    found: Option<&ReceivedMessage>,
) -> Option<String> {
    let Some(found) = found else { return Some(format!("{side} got nothing")) };
    // An error page of the proxy is compared by its first line.
    if !expected.head.contains('\n') {
        return (!found.head.starts_with(&expected.head)).then(|| format!("{side} got {:?}", found.head));
    }
    if found.head != expected.head {
        return Some(format!("{side} got {:?} instead of {:?}", found.head, expected.head));
    }
    // A head may end the stream if nothing follows it.
    let is_empty = version.has_streams()
        && expected.framing == "stream"
        && expected.payload.is_empty()
        && expected.trailers.is_empty();
    if is_empty && found.framing == "none" && found.whole {
        return None;
    }
    let framed = (&found.framing, found.whole, &found.trailers);
    let wanted = (&expected.framing, expected.whole, &expected.trailers);
    if framed != wanted {
        return Some(format!("{side} got {framed:?} instead of {wanted:?}"));
    }
    let is_same =
        if expected.whole { found.payload == expected.payload } else { expected.payload.starts_with(&found.payload) };
    (!is_same)
        .then(|| format!("{side} got {} other bytes than the {} sent", found.payload.len(), expected.payload.len()))
}

/// Compares the interim heads before the answer.
fn interims(row: &Row, answers: &[ReceivedMessage]) -> Option<String> {
    let waits: &[&str] = if row.way == SendMode::Continue { &["HTTP/1.1 100 Continue\r\n"] } else { &[] };
    let wanted: Vec<String> = waits.iter().chain(row.interims).map(|head| sides::bare(head).0).collect();
    let found = answers.last().map(|answer| answer.interims.clone()).unwrap_or_default();
    (found != wanted).then(|| format!("the client got {found:?} first instead of {wanted:?}"))
}
