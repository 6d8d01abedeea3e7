//! Tests with a server that records every byte: for all inputs of clients, readers of every kind, strict and lax, find
//! the same requests in the bytes sent by Weir, and as many as were answered.

mod answers;
mod inputs;
mod streams;

use std::cell::RefCell;
use std::rc::Rc;

use testkit::{Peer, READERS, Remainder, RequestSpan, Service, sleep};

use crate::world::*;

/// The bytes received on a connection.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    /// The number of bytes judged so far.
    judged: usize,
}

type Records = Rc<RefCell<Vec<Record>>>;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nX-Origin: 1\r\nContent-Length: 0\r\n\r\n";
const REFUSAL: &str = "HTTP/1.1 405 No\r\nX-Origin: 1\r\nContent-Length: 0\r\n\r\n";

/// The index of the first reader that has to agree: the strict one, or the next if clients may be unusual.
const STRICT: usize = 0;
const PLAIN: usize = 1;

#[test]
fn every_reader_sees_the_requests_that_were_answered() {
    play("", STRICT, 0..2);
}

#[test]
fn so_it_does_where_more_is_accepted() {
    play("option accept-unsafe-violations-in-http-request\n", PLAIN, 0..1);
}

#[test]
fn so_it_does_where_bodies_are_waited_for_and_filtered() {
    play("option http-buffer-request\n filter bwlim-in slow default-limit 1m default-period 1s\n", STRICT, 1..2);
}

/// A request sent in HTTP/2 reaches a server of HTTP/1 as exactly that request, or not at all.
#[test]
fn a_stream_is_one_request_or_none() {
    streams("", STRICT, 0..4);
}

#[test]
fn so_it_is_where_more_is_accepted() {
    streams("option accept-unsafe-violations-in-http-request\n", PLAIN, 0..1);
}

#[test]
fn so_it_is_where_bodies_are_waited_for_and_filtered() {
    streams("option http-buffer-request\n filter bwlim-in slow default-limit 1m default-period 1s\n", STRICT, 1..2);
}

/// Plays all streams; the readers from `first` on have to agree with that one.
fn streams(options: &str, first: usize, seeds: std::ops::Range<u64>) {
    let faults = Rc::new(RefCell::new(Vec::new()));
    let found = Rc::clone(&faults);
    config(&sections(options)).workers(&[1]).seeds(seeds).run(move |world| {
        let faults = Rc::clone(&found);
        async move {
            let records = serve(&world, first);
            let inputs = streams::all(world.seed);
            assert!(inputs.len() > 900, "hundreds of requests");
            for input in inputs {
                let mut client = Peer::connect(WEIR).await;
                client.try_send(&input.bytes).await;
                let (answered, _) = client.try_receive_up_to(1 << 20).await;
                client.close();
                sleep(1).await;
                let answers = answered.windows(10).filter(|window| *window == b"x-origin\x011").count();
                let judged = judge(&mut records.borrow_mut(), first);
                let fault = match judged {
                    Ok(1..) if input.refused => "it reached a server".to_owned(),
                    Ok(2..) => "several requests".to_owned(),
                    // A stream that is reset has no answer.
                    Ok(requests) if answers <= requests => continue,
                    Ok(requests) => format!("{requests} requests, {answers} answers"),
                    Err(fault) => fault,
                };
                faults.borrow_mut().push(format!("{}\n  {fault}", input.bytes.escape_ascii()));
            }
            world.forget_log();
        }
    });
    report(&faults.take());
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults[..faults.len().min(30)].join("\n"));
}

fn sections(options: &str) -> String {
    format!(
        "defaults\n mode http\n timeout client 200ms\n timeout connect 1s\n timeout server 1s\n http-reuse always\n\
         listen l\n bind {WEIR}\n {options} server s1 {S1}\n"
    )
}

/// Plays all inputs; the readers from `first` on have to agree with that one.
fn play(options: &str, first: usize, seeds: std::ops::Range<u64>) {
    let faults = Rc::new(RefCell::new(Vec::new()));
    let found = Rc::clone(&faults);
    config(&sections(options)).workers(&[1]).seeds(seeds).run(move |world| {
        let faults = Rc::clone(&found);
        async move {
            let records = serve(&world, first);
            let inputs = inputs::all();
            assert!(inputs.len() > 900, "hundreds of requests");
            for input in inputs {
                let mut client = Peer::connect(WEIR).await;
                client.try_send(&input).await;
                let (answered, _) = client.try_receive_up_to(1 << 20).await;
                client.close();
                sleep(1).await;
                let answers = answered.windows(11).filter(|window| *window == b"x-origin: 1").count();
                let judged = judge(&mut records.borrow_mut(), first);
                let judged = judged.and_then(|requests| match requests == answers {
                    true => Ok(()),
                    false => Err(format!("{requests} requests, {answers} answers")),
                });
                if let Err(fault) = judged {
                    faults.borrow_mut().push(format!(
                        "{}\n  {fault}\n  got {}",
                        input.escape_ascii(),
                        answered.escape_ascii()
                    ));
                }
            }
            world.forget_log();
        }
    });
    report(&faults.take());
}

/// Answers every request found by the first reader, and records all bytes, one list per connection.
fn serve(world: &World, first: usize) -> Records {
    let records = Records::default();
    let served = Rc::clone(&records);
    Service::at(S1).serve(&world.scope, move |mut peer, number| {
        let records = Rc::clone(&served);
        async move {
            records.borrow_mut().resize_with(number + 1, Record::default);
            let (mut unread, mut ends) = (Vec::new(), false);
            while !ends {
                let bytes = peer.receive_some().await;
                if bytes.is_empty() {
                    return;
                }
                records.borrow_mut()[number].bytes.extend_from_slice(&bytes);
                unread.extend_from_slice(&bytes);
                let (found, rest) = READERS[first].read(&unread);
                for request in &found {
                    // A tunnel would hide the bytes that follow.
                    let refused = unread[request.start..].starts_with(b"CONNECT ");
                    peer.try_send(if refused { REFUSAL } else { ANSWER }).await;
                }
                ends = found.last().is_some_and(|found| found.last) || matches!(rest, Remainder::Junk(_));
                unread.drain(..found.last().map_or(0, |found| found.end));
            }
        }
    });
    records
}

/// Lets every reader parse the bytes received since the last call. Returns the number of requests found.
fn judge(records: &mut [Record], first: usize) -> Result<usize, String> {
    let mut requests = 0;
    for record in records {
        let bytes = &record.bytes[record.judged..];
        if bytes.is_empty() {
            continue;
        }
        record.judged = record.bytes.len();
        let (wanted, rest) = READERS[first].read(bytes);
        if let Remainder::Junk(why) = &rest {
            return Err(format!("no request: {why}\n  sent {}", bytes.escape_ascii()));
        }
        requests += wanted.len();
        for reader in &READERS[first..] {
            let (found, other) = reader.read(bytes);
            // Nothing follows such a request, so no part of its body is taken for another one.
            let old = reader.no_chunks_in_1_0 && found.last().is_some_and(|found| found.last && found.old);
            let agrees = if old { starts(&found) == starts(&wanted) } else { found == wanted && other == rest };
            if !agrees {
                let sent = bytes.escape_ascii();
                return Err(format!(
                    "{} found {found:?}, {other:?}, not {wanted:?}, {rest:?}\n  sent {sent}",
                    reader.name
                ));
            }
        }
    }
    Ok(requests)
}

fn starts(found: &[RequestSpan]) -> Vec<usize> {
    found.iter().map(|found| found.start).collect()
}
