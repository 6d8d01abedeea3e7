//! The table of HAProxy 3.5's behaviour (`bench/progress.py`): peers that send something at once, and then a piece now
//! and then. Must never contain Weir's own behaviour.

use testkit::{Peer, sleep, within};

use super::EVERY;
use crate::raw_tls::Sealer;
use crate::world::World;

const TABLE: &str = include_str!("haproxy.tsv");

/// Plain bytes, or a TLS record.
#[derive(Clone, Debug)]
struct Unit {
    /// The type of the record; `None`: plain bytes.
    record: Option<u8>,
    /// Whether the record is sent byte by byte.
    slow: bool,
    bytes: Vec<u8>,
}

/// A place that waits, a peer there, and the outcome.
#[derive(Clone, Debug)]
pub struct Row {
    pub place: &'static str,
    pub name: &'static str,
    first: Vec<Unit>,
    pieces: Vec<Unit>,
    /// The outcome in the log.
    pub said: &'static str,
    /// Whether it ended at the timeout.
    pub is_late: bool,
}

/// The rows of a place.
pub fn rows(place: &str) -> Vec<Row> {
    let rows: Vec<Row> = TABLE.lines().skip(1).map(row).filter(|row| row.place == place).collect();
    assert!(!rows.is_empty(), "{place}");
    rows
}

/// The places, each once.
pub fn places() -> Vec<&'static str> {
    let mut places: Vec<&str> = TABLE.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
    places.dedup();
    places
}

/// Whether the peer of a place uses TLS itself.
pub fn is_secure(place: &str) -> bool {
    place.contains("/tls") && !place.starts_with("accepting/") && !place.starts_with("connecting/")
}

fn row(line: &'static str) -> Row {
    let [place, name, first, pieces, outcome] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
    let (said, ended) = outcome.rsplit_once(' ').unwrap();
    let units = |text: &str| match text {
        "-" => Vec::new(),
        text => text.split(' ').map(|text| unit(text, is_secure(place))).collect(),
    };
    Row { place, name, first: units(first), pieces: units(pieces), said, is_late: ended == "late" }
}

fn unit(text: &str, is_record: bool) -> Unit {
    if !is_record {
        return Unit { record: None, slow: false, bytes: unescape(text) };
    }
    let (kind, bytes) = text.split_once(':').unwrap();
    let (kind, slow) = kind.strip_prefix('~').map_or((kind, false), |kind| (kind, true));
    Unit { record: kind.parse().ok(), slow, bytes: unescape(bytes) }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}

impl Row {
    /// Sends the bytes of the row until the other side closes the connection. Returns whether it did.
    pub async fn send(&self, peer: &mut Peer, mut sealer: Option<Sealer>) -> bool {
        let mut seal = |unit: &Unit| match (unit.record, &mut sealer) {
            (Some(kind), Some(sealer)) => sealer.seal(kind, &unit.bytes),
            _ => unit.bytes.clone(),
        };
        let first: Vec<u8> = self.first.iter().flat_map(&mut seal).collect();
        if !peer.try_send(first).await {
            return true;
        }
        for unit in &self.pieces {
            let bytes = seal(unit);
            let size = if unit.slow { 1 } else { bytes.len().max(1) };
            for part in bytes.chunks(size) {
                sleep(EVERY).await;
                if has_ended(peer).await || !peer.try_send(part).await {
                    return true;
                }
            }
        }
        for _ in 0..5 {
            sleep(EVERY).await;
            if has_ended(peer).await {
                return true;
            }
        }
        false
    }

    /// The differences of the log line and its time from the recorded ones.
    pub async fn difference(&self, world: &World) -> Option<String> {
        let lines = world.lines(1).await;
        // For a stream: the termination state, and the duration.
        let (said, took) = match lines[0].split_once("R l ").or_else(|| lines[0].split_once("R l~ ")) {
            Some((_, rest)) => {
                let words: Vec<&str> = rest.split(' ').collect();
                (format!("{} {}", words[0], words[1]), words[2].parse::<u64>().ok())
            }
            None => (lines[0].rsplit_once("l/1: ").map_or(&*lines[0], |line| line.1).to_owned(), None),
        };
        // Handshake records without content are refused at once (RFC 8446, section 5.1).
        let refused = match (self.place, self.name) {
            ("connecting/tls", "empty records") => Some("503 SC--"),
            ("accepting/tls", "empty records") => Some("SSL handshake failure"),
            _ => None,
        };
        // In HAProxy each byte of a slow head restarts `timeout client`: it ends after the row's last byte.
        let is_late = self.is_late || self.place == "head/client";
        let in_time = took.is_none_or(|took| (took < 320) == is_late);
        let right = refused.map_or(said == self.said, |sentence| said.starts_with(sentence));
        (!right || !in_time).then(|| format!("{}, {}: {lines:?}, not {}", self.place, self.name, self.said))
    }
}

/// Whether the other side has closed the connection by now.
async fn has_ended(peer: &mut Peer) -> bool {
    loop {
        match within(std::time::Duration::from_micros(1), peer.receive_some()).await {
            Some(bytes) if bytes.is_empty() => return true,
            Some(_) => {}
            None => return false,
        }
    }
}
