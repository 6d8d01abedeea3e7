//! A scripted name server: answers over UDP, and over TCP at the same port, from a table that its script fills. It must
//! never know its queries in advance.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::failure::{Failure, Result};

/// The interval at which it checks whether the run is over.
const SLICE: Duration = Duration::from_millis(20);
/// Maximum size of a query in bytes.
const LONGEST: usize = 4_096;

/// The response for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The data of records of the requested type.
    Records(Vec<Vec<u8>>),
    /// An error code.
    Code(u8),
    /// No response.
    Silence,
    /// A truncated response over UDP; these records over TCP.
    Truncated(Vec<Vec<u8>>),
    /// Forged responses with these records: wrong ID, another question, compression loops, truncated messages, and
    /// garbage.
    Forged(Vec<Vec<u8>>),
}

type Key = (String, u16);

#[derive(Default)]
struct Table {
    replies: HashMap<Key, Reply>,
    asked: HashMap<Key, usize>,
}

/// A running name server; it stops when it is dropped.
pub(crate) struct NameServer {
    /// Its address.
    pub(crate) address: SocketAddr,
    table: Arc<Mutex<Table>>,
    over: Arc<AtomicBool>,
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NameServer {
    /// Starts one without any names.
    pub(crate) fn start() -> Result<Self> {
        let (datagrams, streams) = both()?;
        let address = datagrams.local_addr()?;
        let (table, over) = (Arc::new(Mutex::new(Table::default())), Arc::new(AtomicBool::new(false)));
        datagrams.set_read_timeout(Some(SLICE))?;
        streams.set_nonblocking(true)?;
        let (of_datagrams, of_streams) =
            ((Arc::clone(&table), Arc::clone(&over)), (Arc::clone(&table), Arc::clone(&over)));
        std::thread::spawn(move || answer_datagrams(&datagrams, &of_datagrams.0, &of_datagrams.1));
        std::thread::spawn(move || answer_streams(&streams, &of_streams.0, &of_streams.1));
        Ok(Self { address, table, over })
    }

    /// Sets a response.
    pub(crate) fn set(&self, name: &str, kind: u16, reply: Reply) {
        lock(&self.table).replies.insert((name.to_owned(), kind), reply);
    }

    /// Returns the number of queries.
    pub(crate) fn asked(&self, name: &str, kind: u16) -> usize {
        lock(&self.table).asked.get(&(name.to_owned(), kind)).copied().unwrap_or(0)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Opens sockets for both transports at one port.
fn both() -> Result<(UdpSocket, TcpListener)> {
    for _ in 0..64 {
        let datagrams = UdpSocket::bind("127.0.0.1:0")?;
        if let Ok(streams) = TcpListener::bind(datagrams.local_addr()?) {
            return Ok((datagrams, streams));
        }
    }
    Err(Failure::new("no port is free for both transports"))
}

fn answer_datagrams(socket: &UdpSocket, table: &Mutex<Table>, over: &AtomicBool) {
    let mut question = [0; LONGEST];
    while !over.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut question) else { continue };
        for answer in answers(&question[..length], table, false) {
            let _ = socket.send_to(&answer, from);
        }
    }
}

fn answer_streams(listener: &TcpListener, table: &Mutex<Table>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => answer_stream(stream, table, over),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Serves one connection: until the client closes it, or the run ends.
fn answer_stream(mut stream: TcpStream, table: &Mutex<Table>, over: &AtomicBool) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(SLICE));
    let mut received = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let mut piece = [0; LONGEST];
        match stream.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => received.extend(&piece[..length]),
            Err(_) => continue,
        }
        let Some(length) = received.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length))) else {
            continue;
        };
        let Some(question) = received.get(2..2 + length) else { continue };
        for answer in answers(question, table, true) {
            let _ = stream.write_all(&[&(answer.len() as u16).to_be_bytes()[..], &answer].concat());
        }
        // One query per connection: the next one is sent on another.
        return;
    }
}

/// Returns the question of a query, and its end.
fn asked(question: &[u8]) -> Option<(Key, usize)> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*question.get(at)?);
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(question.get(at + 1..at + 1 + length)?).to_ascii_lowercase());
        at += 1 + length;
    }
    let kind = u16::from_be_bytes([*question.get(at + 1)?, *question.get(at + 2)?]);
    Some(((labels.join("."), kind), at + 5))
}

fn answers(question: &[u8], table: &Mutex<Table>, over_tcp: bool) -> Vec<Vec<u8>> {
    const NO_SUCH_NAME: u8 = 3;
    const TRUNCATED: u16 = 0x0200;
    let Some((key, end)) = asked(question).filter(|(_, end)| *end <= question.len()) else { return Vec::new() };
    let reply = {
        let mut table = lock(table);
        *table.asked.entry(key.clone()).or_default() += 1;
        table.replies.get(&key).cloned().unwrap_or(Reply::Code(NO_SUCH_NAME))
    };
    let message = |flags: u16, records: &[Vec<u8>]| {
        let mut bytes = question[..2].to_vec();
        for number in [0x8180 | flags, 1, records.len() as u16, 0, 0] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(&question[12..end]);
        for data in records {
            for number in [0xc00c, key.1, 1, 0, 60, data.len() as u16] {
                bytes.extend(number.to_be_bytes());
            }
            bytes.extend(data);
        }
        bytes
    };
    match &reply {
        Reply::Records(records) => vec![message(0, records)],
        Reply::Code(code) => vec![message(u16::from(*code), &[])],
        Reply::Silence => Vec::new(),
        Reply::Truncated(_) if !over_tcp => vec![message(TRUNCATED, &[])],
        Reply::Truncated(records) => vec![message(0, records)],
        Reply::Forged(records) => forged(&message(0, records), end),
    }
}

/// Builds forged responses from a valid one. `end`: the end of its question.
fn forged(good: &[u8], end: usize) -> Vec<Vec<u8>> {
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.to_vec();
        change(&mut bytes);
        bytes
    };
    vec![
        changed(&|bytes| bytes[0] ^= 0x55),
        changed(&|bytes| bytes[13] ^= 1),
        changed(&|bytes| bytes[end..end + 2].copy_from_slice(&[0xc0 | (end >> 8) as u8, end as u8])),
        changed(&|bytes| bytes[2] &= 0x7f),
        changed(&|bytes| bytes.truncate(bytes.len() - 1)),
        vec![0xff; 400],
        Vec::new(),
    ]
}

/// Returns the number of a record type.
pub(crate) fn kind(word: &str) -> Result<u16> {
    match word {
        "A" => Ok(1),
        "AAAA" => Ok(28),
        "SRV" => Ok(33),
        other => Err(Failure::new(format!("no such kind of records: {other}"))),
    }
}

/// Parses a response: `127.0.0.1, 127.0.0.2`, `10 80 a.test, 20 81 b.test` (weight, port, host), `nx`, `refused`,
/// `failed`, `silence`, `truncated DATA`, `forged DATA`.
pub(crate) fn reply(kind: u16, text: &str) -> Result<Reply> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Ok(match word {
        "nx" => Reply::Code(3),
        "refused" => Reply::Code(5),
        "failed" => Reply::Code(2),
        "nothing" => Reply::Records(Vec::new()),
        "silence" => Reply::Silence,
        "truncated" => Reply::Truncated(records(kind, rest)?),
        "forged" => Reply::Forged(records(kind, rest)?),
        _ => Reply::Records(records(kind, text)?),
    })
}

fn records(kind: u16, text: &str) -> Result<Vec<Vec<u8>>> {
    text.split(',').map(|one| record(kind, one.trim())).collect()
}

fn record(kind: u16, text: &str) -> Result<Vec<u8>> {
    let wrong = || Failure::new(format!("no record of that kind: {text}"));
    if kind != 33 {
        return match (text.parse().map_err(|_| wrong())?, kind) {
            (IpAddr::V4(ip), 1) => Ok(ip.octets().to_vec()),
            (IpAddr::V6(ip), 28) => Ok(ip.octets().to_vec()),
            _ => Err(wrong()),
        };
    }
    let mut words = text.split(' ');
    let mut number = || words.next().and_then(|word| word.parse::<u16>().ok()).ok_or_else(wrong);
    let (weight, port) = (number()?, number()?);
    let mut data = vec![0, 1];
    data.extend(weight.to_be_bytes());
    data.extend(port.to_be_bytes());
    for label in words.next().ok_or_else(wrong)?.split('.') {
        data.push(label.len() as u8);
        data.extend(label.bytes());
    }
    data.push(0);
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read() {
        assert_eq!(
            reply(1, "127.0.0.1, 127.0.0.2").unwrap(),
            Reply::Records(vec![vec![127, 0, 0, 1], vec![127, 0, 0, 2]])
        );
        assert_eq!(reply(33, "256 80 a.b").unwrap(), Reply::Records(vec![b"\0\x01\x01\0\0\x50\x01a\x01b\0".to_vec()]));
        assert_eq!(reply(1, "nx").unwrap(), Reply::Code(3));
        assert!(reply(1, "::1").is_err() && reply(33, "80 a").is_err() && kind("MX").is_err());
    }
}
