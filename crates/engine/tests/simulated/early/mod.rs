//! Tests of every early answer with every framing of a request, followed by another request: that is answered as the
//! next request, or the connection closes. A body is never read as a request, and every answer belongs to a request.

mod framings;
mod rows;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use engine::filter::{Filter, FilterContext, HeadRefused, ScriptFilter};
use engine::service::registry::Services;
use expression::sample::Direction;
use testkit::{Peer, Service, sleep};

use self::framings::{End, Framing, NEXT};
use self::rows::{After, BIG, MANY, Origin, Row};
use crate::services;
use crate::world::*;

/// The number of calls of functions that answer early, in the files of streams. A new one needs a row in `rows.rs`.
// The answer to an ACME challenge is counted without a row, since it requires a challenge in progress
// (`simulated/acme.rs`).
const CALLS: usize = 17;

#[test]
fn what_follows_an_answer_of_rules_is_the_next_request_or_nothing() {
    play(rows::RULES);
}

#[test]
fn so_it_is_where_no_server_is_to_be_had() {
    play(rows::SERVERS);
}

#[test]
fn so_it_is_where_an_answer_takes_the_place_of_a_servers() {
    play(rows::ANSWERS);
}

fn play(rows: &'static [Row]) {
    let faults = Rc::new(RefCell::new(Vec::new()));
    for &row in rows {
        // With and without rules on answers: pages that are not changed take a shorter path.
        for after_rules in ["", " http-after-response set-header x-after 1\n"] {
            let text = format!("{} l\n bind {WEIR}\n{after_rules} {}\n", row.kind, row.config);
            let text = format!(
                "defaults\n mode http\n log global\n option httplog\n timeout client 500ms\n timeout connect 100ms\n timeout server 200ms\n{text}"
            );
            let found = Rc::clone(&faults);
            services::with_streamer(config(&text))
                .scripted(filters)
                .global("    expose-experimental-directives")
                .workers(&[1])
                .seeds(0..1)
                .run(move |world| {
                    let found = Rc::clone(&found);
                    async move {
                        let seen = Rc::new(RefCell::new(Vec::new()));
                        for server in [S1, S2] {
                            serve(&world, server, row.origin, &seen);
                        }
                        let occupant = occupy(row, &seen).await;
                        for framing in framings::all() {
                            for together in [true, false] {
                                if let Err(fault) = converse(&world, row, &framing, together, &seen).await {
                                    found.borrow_mut().push(format!("{}; {}; {fault}", row.name, framing.name));
                                }
                            }
                        }
                        drop(occupant);
                        world.forget_log();
                    }
                });
        }
    }
    let faults = faults.take();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// A filter of a script that ends a stream with an answer, when it gets a head of that direction.
struct EndingFilter(Direction);

impl Filter for EndingFilter {
    fn wants(&self, _: Direction) -> bool {
        false
    }
}

impl ScriptFilter for EndingFilter {
    fn poll_head(
        &mut self,
        _: &mut Context<'_>,
        _: &FilterContext,
        direction: Direction,
    ) -> Poll<Result<(), HeadRefused>> {
        let text = b"HTTP/1.1 418 tea\r\ncontent-length: 3\r\n\r\ntea".to_vec();
        Poll::Ready(if direction == self.0 { Err(HeadRefused::Ended(Some((418, text)))) } else { Ok(()) })
    }
}

fn filters(services: &mut Services) {
    for (name, direction) in [("request", Direction::Request), ("answer", Direction::Response)] {
        assert!(services.add_filter(name, Arc::new(move |_, _, _| Some(Box::new(EndingFilter(direction))))));
    }
}

/// Connects another client whose request takes the server's only slot, if the row needs that.
async fn occupy(row: Row, seen: &Rc<RefCell<Vec<String>>>) -> Option<Peer> {
    if !row.occupied {
        return None;
    }
    let mut client = Peer::connect(WEIR).await;
    client.send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n").await;
    while seen.borrow().is_empty() {
        sleep(1).await;
    }
    Some(client)
}

/// Plays a server; records the first line of every request that it receives.
fn serve(world: &World, address: &str, origin: Origin, seen: &Rc<RefCell<Vec<String>>>) {
    if matches!(origin, Origin::Dead) {
        return;
    }
    let seen = Rc::clone(seen);
    Service::at(address).serve(&world.scope, move |mut peer, _| {
        let seen = Rc::clone(&seen);
        async move {
            while let Some(head) = peer.try_receive_head().await {
                seen.borrow_mut().push(head.lines().next().unwrap_or_default().to_owned());
                match origin {
                    Origin::Dead | Origin::Silent => {}
                    Origin::Answers(answer) => drop(peer.try_send(answer).await),
                    Origin::AnswersAndCloses(answer) => {
                        peer.try_send(answer).await;
                        return;
                    }
                }
                if !read_body(&mut peer, &head).await {
                    return;
                }
            }
        }
    });
}

/// Reads a body as framed by its head. Returns false if it is incomplete.
async fn read_body(peer: &mut Peer, head: &str) -> bool {
    if head.contains("transfer-encoding: chunked") {
        return peer.try_receive_chunked().await.1;
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    peer.try_receive(length.unwrap_or(0)).await
}

/// Sends a request and the next one, which arrives with the end of the first if `together`, and checks the client's
/// answers and the log.
async fn converse(
    world: &World,
    row: Row,
    framing: &Framing,
    together: bool,
    seen: &Rc<RefCell<Vec<String>>>,
) -> Result<(), String> {
    let is_get = row.line.starts_with("GET") && framing.version == "1.0";
    if (is_get || row.line.starts_with("CONNECT")) && framing.has_body {
        // That is not a request.
        return Ok(());
    }
    drop(world.lines(0).await);
    seen.borrow_mut().clear();
    let line = row.line.replace("HTTP/1.1", &format!("HTTP/{}", framing.version));
    let host = if row.line.starts_with("CONNECT") { "a:80" } else { "a" };
    let fields = row.fields.replace(BIG, &"v".repeat(8_000)).replace(MANY, &"a: 1\r\n".repeat(120));
    let mut pieces = vec![(0, format!("{line}\r\nHost: {host}\r\n{fields}{}\r\n{}", framing.fields, framing.body))];
    pieces.extend(framing.later.iter().cloned());
    if framing.end != End::Unknown {
        match pieces.last_mut() {
            Some((_, last)) if together => last.push_str(NEXT),
            _ => pieces.push((60, NEXT.to_owned())),
        }
    }
    let mut client = Peer::connect(WEIR).await;
    for (pause, piece) in pieces {
        sleep(pause).await;
        client.try_send(piece).await;
    }
    let (answered, _) = client.try_receive_up_to(1 << 20).await;
    client.close();
    sleep(1).await;
    let log = world.lines(0).await;
    let answers = answers(&answered);
    let strange = seen.borrow().iter().any(|line| !is_known(line));
    let judged =
        if strange { Err("a server got another request".to_owned()) } else { judge(row, framing, &answers, &log) };
    judged.map_err(|fault| {
        let got = answered.escape_ascii();
        format!(
            "together: {together}; {fault}\n  answers {answers:?}\n  log {log:?}\n  servers {:?}\n  got {got}",
            seen.borrow()
        )
    })
}

fn is_known(line: &str) -> bool {
    !line.contains("/admin") && (line.contains("/first") || line.contains("/next") || line.contains("a:80"))
}

/// An answer: its status, and whether it announces that the connection closes.
type Answer = (u16, bool);

/// The answers in the bytes received by a client, except for interim ones. An invalid one has the status 0.
fn answers(mut bytes: &[u8]) -> Vec<Answer> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            found.push((0, true));
            break;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        bytes = &bytes[end + 4..];
        let mut words = head.split(' ');
        let is_answer = words.next().is_some_and(|word| word.starts_with("http/1."));
        let status = words.next().filter(|_| is_answer).and_then(|word| word.parse().ok()).unwrap_or(0);
        if (100..200).contains(&status) {
            continue;
        }
        let closes = head.contains("\r\nconnection: close");
        found.push((status, closes));
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if head.contains("transfer-encoding: chunked") {
            let end = bytes.windows(5).position(|window| window == b"0\r\n\r\n").map_or(bytes.len(), |at| at + 5);
            bytes = &bytes[end..];
        } else if let Some(length) = length {
            bytes = bytes.get(length..).unwrap_or_default();
        } else {
            break;
        }
    }
    found
}

/// Checks answers and log.
fn judge(row: Row, framing: &Framing, answers: &[Answer], log: &[String]) -> Result<(), String> {
    let require = |holds: bool, fault: &str| if holds { Ok(()) } else { Err(fault.to_owned()) };
    require(answers.iter().all(|(status, _)| *status != 0), "what came is no answer")?;
    require(answers.len() <= 2, "more answers than requests")?;
    require(answers.iter().rev().skip(1).all(|(_, closes)| !closes), "an answer follows one that closes")?;
    require(!log.iter().any(|line| line.contains("/admin")), "a body was read as a request")?;
    let next = log.iter().filter(|line| line.contains("/next")).count();
    require(next <= 1 && (next == 0 || answers.len() == 2), "the log tells of another next request")?;
    let whole = framing.end == End::Known;
    if framing.end == End::Unknown {
        require(answers.len() <= 1, "an answer to what never came")?;
    }
    if framing.is_unasked() && !row.asks && row.after != After::Cut {
        require(matches!(answers, [(_, true)]), "the body may be left out, and the connection goes on")?;
    }
    match row.after {
        // A coding that is invalid in the bytes read with the head is no request for a server.
        After::Cut => require(answers.is_empty() || framing.end == End::Unknown, "an answer where there is none")?,
        After::Closed => require(answers.len() <= 1, "the connection went on")?,
        After::KeptAlive if whole => require(answers.len() == 2, "the connection does not go on")?,
        After::KeptAlive | After::Either => {}
    }
    if whole && row.after != After::Cut {
        let status = answers.first().map_or(0, |answer| answer.0);
        require(status == row.status, "another answer than the row's")?;
    }
    Ok(())
}

/// A new answer needs a row.
#[test]
fn every_caller_is_known() {
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/stream")];
    let mut calls = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // In `answer.rs`, a function of that name makes the text of an answer.
            if !path.ends_with("reply.rs") && !path.ends_with("reply/mod.rs") && !path.ends_with("answer.rs") {
                let arguments = ["(context", "(RequestContext"].into_iter().flat_map(|start| text.match_indices(start));
                calls += arguments.filter(|(at, _)| is_reply(&text[..*at])).count();
            }
        }
    }
    assert_eq!(calls, CALLS, "an early answer came or went: see `rows.rs`");
}

/// Whether the text ends with the name of a function that answers.
fn is_reply(text: &str) -> bool {
    let name = text.rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next();
    name.is_some_and(|name| name == "reply" || name.starts_with("reply_"))
}
