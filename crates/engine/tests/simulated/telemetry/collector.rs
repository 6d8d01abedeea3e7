//! A collector: receives OTLP requests over HTTP, parses their spans with a decoder of its own, and answers as its test
//! defines. Must never use the encoder under test.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use testkit::{Peer, Service, sleep};

use crate::world::World;

/// The address of the collector.
pub const COLLECTOR: &str = "10.0.9.1:4318";

/// A field of a Protocol Buffers message.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, in their order.
pub fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                break;
            }
        }
        number
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag % 8 {
            0 => Field::Number(varint(&mut bytes)),
            kind @ (1 | 5) => {
                let length = if kind == 1 { 8 } else { 4 };
                let mut number = [0; 8];
                number[..length].copy_from_slice(&bytes[..length]);
                bytes = &bytes[length..];
                Field::Number(u64::from_le_bytes(number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let taken = bytes[..length].to_vec();
                bytes = &bytes[length..];
                Field::Bytes(taken)
            }
            other => panic!("wire type {other}"),
        };
        found.push((tag / 8, field));
    }
    found
}

/// The fields with that number that are messages, bytes or text.
pub fn messages(bytes: &[u8], number: u64) -> Vec<Vec<u8>> {
    let own = fields(bytes).into_iter().filter(|(found, _)| *found == number);
    own.filter_map(|(_, field)| if let Field::Bytes(bytes) = field { Some(bytes) } else { None }).collect()
}

fn text(bytes: &[u8], number: u64) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    messages(bytes, number).first().map_or_else(String::new, |found| match number {
        1 | 2 | 4 => hex(found),
        _ => String::from_utf8(found.clone()).expect("UTF-8"),
    })
}

/// A text field; empty if there is none.
pub fn text_of(bytes: &[u8], number: u64) -> String {
    let found = messages(bytes, number).into_iter().next();
    found.map_or_else(String::new, |text| String::from_utf8(text).expect("UTF-8"))
}

fn number(bytes: &[u8], number: u64) -> u64 {
    let own = fields(bytes).into_iter().find(|(found, _)| *found == number);
    if let Some((_, Field::Number(found))) = own { found } else { 0 }
}

/// Attributes as text.
pub fn attributes(bytes: &[u8], at: u64) -> BTreeMap<String, String> {
    let pairs = messages(bytes, at).into_iter().map(|pair| {
        let key = String::from_utf8(messages(&pair, 1).remove(0)).expect("UTF-8");
        let value = match &fields(&messages(&pair, 2).remove(0))[..] {
            [(1, Field::Bytes(text))] => String::from_utf8(text.clone()).expect("UTF-8"),
            [(2, Field::Number(flag))] => (*flag == 1).to_string(),
            [(3, Field::Number(number))] => (*number as i64).to_string(),
            other => panic!("a value: {other:?}"),
        };
        (key, value)
    });
    pairs.collect()
}

#[derive(Debug, Clone)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub state: String,
    pub name: String,
    /// 1: internal, 2: server, 3: client.
    pub kind: u64,
    pub start: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, String>,
    /// Names of events, and their attributes.
    pub events: Vec<(String, BTreeMap<String, String>)>,
    /// Traces and spans of links, in hexadecimal digits.
    pub links: Vec<String>,
    /// 0: unset, 1: ok, 2: error.
    pub status: u64,
    pub description: String,
}

impl Span {
    fn of(bytes: &[u8]) -> Span {
        let status = messages(bytes, 15).into_iter().next().unwrap_or_default();
        let named = |bytes: &Vec<u8>| (String::from_utf8(messages(bytes, 2).remove(0)).unwrap(), attributes(bytes, 3));
        Span {
            trace: text(bytes, 1),
            id: text(bytes, 2),
            state: text(bytes, 3),
            parent: text(bytes, 4),
            name: text(bytes, 5),
            kind: number(bytes, 6),
            start: number(bytes, 7),
            end: number(bytes, 8),
            attributes: attributes(bytes, 9),
            events: messages(bytes, 11).iter().map(named).collect(),
            links: messages(bytes, 13).iter().map(|link| text(link, 1) + "-" + &text(link, 2)).collect(),
            description: messages(&status, 2).pop().map_or_else(String::new, |text| String::from_utf8(text).unwrap()),
            status: number(&status, 3),
        }
    }

    /// An attribute; empty if there is none.
    pub fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

/// The data received by a collector.
#[derive(Default)]
pub struct Got {
    pub spans: RefCell<Vec<Span>>,
    /// Attributes of the resource in the last request.
    pub resource: RefCell<BTreeMap<String, String>>,
    /// The head of the last request.
    pub head: RefCell<String>,
    /// The number of requests so far.
    pub requests: Cell<usize>,
    /// Paths and bodies of requests other than traces.
    pub others: RefCell<Vec<(String, Vec<u8>)>>,
}

impl Got {
    fn take(&self, head: String, body: &[u8]) {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        self.head.replace(head);
        if !path.ends_with("/v1/traces") {
            return self.others.borrow_mut().push((path, body.to_vec()));
        }
        for resource in messages(body, 1) {
            self.resource.replace(attributes(&messages(&resource, 1).remove(0), 1));
            for scope in messages(&resource, 2) {
                self.spans.borrow_mut().extend(messages(&scope, 2).iter().map(|span| Span::of(span)));
            }
        }
    }

    /// Waits for that number of spans, and takes all.
    pub async fn spans(&self, count: usize) -> Vec<Span> {
        for _ in 0..100_000 {
            if self.spans.borrow().len() >= count {
                break;
            }
            sleep(1).await;
        }
        let spans = self.spans.take();
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }
}

/// Starts a collector whose answer depends on the index of the request; `None`: it never answers.
pub fn collect(world: &World, answer: impl Fn(usize) -> Option<&'static str> + 'static) -> Rc<Got> {
    collect_at(world, COLLECTOR, answer)
}

/// The same at another address.
pub fn collect_at(world: &World, address: &str, answer: impl Fn(usize) -> Option<&'static str> + 'static) -> Rc<Got> {
    let got = Rc::new(Got::default());
    let (taken, answer) = (Rc::clone(&got), Rc::new(answer));
    Service::at(address).serve(&world.scope, move |mut peer: Peer, _| {
        let (taken, answer) = (Rc::clone(&taken), Rc::clone(&answer));
        async move {
            let Some(head) = peer.receive_head().await else { return };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            let body = peer.receive(length.expect("a length")).await;
            let number = taken.requests.replace(taken.requests.get() + 1);
            match answer(number) {
                Some(text) => {
                    if text.starts_with("HTTP/1.1 200") {
                        taken.take(head, &body);
                    }
                    peer.try_send(text).await;
                    peer.expect_end().await;
                }
                None => peer.expect_end().await,
            }
        }
    });
    got
}

/// The answer of a collector that accepts everything.
pub const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// For [`collect`]: accepts everything.
pub fn take_all(_: usize) -> Option<&'static str> {
    Some(TAKEN)
}
