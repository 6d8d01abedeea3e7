//! Counters that several processes share through a file (configuration manual, "shm-stats-file"): the file format, and
//! the exchange of counts. Must never read or write a file.
//!
//! The file is a header of [`RECORD`] bytes and records of [`RECORD`] bytes each, one per object; numbers are
//! little-endian.
//!
//! | Bytes of the header | |
//! |---|---|
//! | 0 to 7 | [`MAGIC`] |
//! | 8 to 11 | [`VERSION`] |
//! | 12 to 15 | bytes of a record |
//! | 16 to 19 | counts of a record |
//!
//! | Bytes of a record | |
//! |---|---|
//! | 0 | 0: the record is free; 1 frontend, 2 listening address, 3 backend, 4 server |
//! | 1 | bytes of the `guid` |
//! | 8 to 15 | a bit for each process that counts the object, by its seat |
//! | 16 to 143 | the `guid`, and zeros |
//! | from 144 | the counts over all processes, 8 bytes each, in the order of [`NAMES`] |

use super::{ContentCounters, Count, Http2Counters, ObjectCounters};

/// Size of a record, and of the header, in bytes.
pub const RECORD: usize = 512;
/// The magic number at the start of the file.
pub const MAGIC: &[u8; 8] = b"weirstat";
/// Incremented when the format changes.
pub const VERSION: u32 = 2;
/// Maximum number of processes that share a file.
pub const SEATS: u32 = 64;

/// Offset of the counts in a record.
const VALUES_AT: usize = 144;
const LONGEST_GUID: usize = 127;
const _: () = assert!(VALUES_AT + VALUES * 8 <= RECORD);

/// Number of counts in a record.
pub const VALUES: usize = NAMES.len();

/// The counts of a record, named by their columns in the statistics if they have one.
pub const NAMES: [&str; 45] = [
    "stot",
    "conn_tot",
    "req_tot",
    "bin",
    "reqbout",
    "bout",
    "resbout",
    "spliced_in",
    "spliced_out",
    "ereq",
    "dcon",
    "dses",
    "dreq",
    "dresp",
    "econ",
    "eresp",
    "eint",
    "wrew",
    "wretr",
    "wredis",
    "cli_abrt",
    "srv_abrt",
    "intercepted",
    "lbtot",
    "connect",
    "reuse",
    "ssl_sess",
    "ssl_reused_sess",
    "ssl_failed_handshake",
    "hrsp_other",
    "hrsp_1xx",
    "hrsp_2xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_5xx",
    // Of the sides of proxies alone.
    "comp_in",
    "comp_out",
    "comp_byp",
    "comp_rsp",
    "cache_lookups",
    "cache_hits",
    "cache_hint_hits",
    "h2sess",
    "h2req",
    // The second of the last session by the machine's clock, counted from 1: not a sum, but the maximum.
    "last_session",
];

/// Number of counts that are sums; the rest are maxima.
const SUMS: usize = VALUES - 1;

pub type Values = [u64; VALUES];

/// The kind of an object with counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedKind {
    Frontend = 1,
    Listener = 2,
    Backend = 3,
    Server = 4,
}

impl SharedKind {
    fn of(number: u8) -> Option<Self> {
        [Self::Frontend, Self::Listener, Self::Backend, Self::Server].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// The record of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The kind of the object.
    pub kind: SharedKind,
    pub guid: Box<str>,
    /// A bit for each process that counts it, by its seat.
    pub seats: u64,
    /// The counts over all processes.
    pub values: Values,
}

/// A record of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// No object.
    Free,
    Taken(Box<Record>),
    /// Bytes that no process of this version has written.
    Damaged,
}

/// Encodes the header of a file.
pub fn header() -> [u8; RECORD] {
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(MAGIC);
    for (at, number) in [(8, VERSION), (12, RECORD as u32), (16, VALUES as u32)] {
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// Returns what is wrong with a header; `None`: it is valid.
pub fn header_fault(bytes: &[u8]) -> Option<String> {
    if bytes.len() < RECORD || bytes[..8] != *MAGIC {
        return Some("it is no stats file of Weir".to_owned());
    }
    let number = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    if number(8) != VERSION {
        return Some(format!("it has version {}, and this program writes version {VERSION}", number(8)));
    }
    let known = number(12) as usize == RECORD && number(16) as usize == VALUES;
    (!known).then(|| format!("its records have {} bytes and {} counts", number(12), number(16)))
}

impl Record {
    pub fn encode(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let guid = &self.guid.as_bytes()[..self.guid.len().min(LONGEST_GUID)];
        (bytes[0], bytes[1]) = (self.kind as u8, guid.len() as u8);
        bytes[8..16].copy_from_slice(&self.seats.to_le_bytes());
        bytes[16..16 + guid.len()].copy_from_slice(guid);
        for (place, value) in bytes[VALUES_AT..].chunks_exact_mut(8).zip(self.values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Decodes a record.
    pub fn decode(bytes: &[u8]) -> Place {
        if bytes.len() < RECORD {
            return Place::Free;
        }
        if bytes[0] == 0 {
            return Place::Free;
        }
        let length = usize::from(bytes[1]);
        let guid = bytes.get(16..16 + length).filter(|_| (1..=LONGEST_GUID).contains(&length));
        let permitted = |byte: &u8| byte.is_ascii_alphanumeric() || b".:-_".contains(byte);
        let guid = guid.filter(|guid| guid.iter().all(permitted)).and_then(|guid| std::str::from_utf8(guid).ok());
        let (Some(kind), Some(guid)) = (SharedKind::of(bytes[0]), guid) else { return Place::Damaged };
        let number = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let values = std::array::from_fn(|index| number(VALUES_AT + 8 * index));
        Place::Taken(Box::new(Self { kind, guid: guid.into(), seats: number(8), values }))
    }
}

/// The counters of one object.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a> {
    /// Those that every object has.
    pub object: &'a ObjectCounters,
    /// Bodies of responses, on a side of a proxy.
    pub content: Option<&'a ContentCounters>,
    /// Connections of HTTP/2, on a side of a proxy.
    pub http2: Option<&'a Http2Counters>,
}

impl<'a> Cells<'a> {
    /// The counters of an address or a server.
    pub fn of(object: &'a ObjectCounters) -> Self {
        Self { object, content: None, http2: None }
    }
}

/// The counters of [`NAMES`], in their order; `None` for those that the object does not have.
fn counts<'a>(of: Cells<'a>) -> [Option<&'a Count>; VALUES] {
    let Cells { object, content, http2 } = of;
    [
        Some(&object.sessions),
        Some(&object.connections),
        Some(&object.requests),
        Some(&object.bytes_in),
        Some(&object.sent),
        Some(&object.received),
        Some(&object.bytes_out),
        Some(&object.spliced_in),
        Some(&object.spliced_out),
        Some(&object.request_errors),
        Some(&object.denied_connections),
        Some(&object.denied_sessions),
        Some(&object.denied_requests),
        Some(&object.denied_responses),
        Some(&object.connect_errors),
        Some(&object.response_errors),
        Some(&object.internal_errors),
        Some(&object.failed_rewrites),
        Some(&object.retries),
        Some(&object.redispatches),
        Some(&object.client_aborts),
        Some(&object.server_aborts),
        Some(&object.intercepted),
        Some(&object.balanced),
        Some(&object.connects),
        Some(&object.reuses),
        Some(&object.tls_sessions),
        Some(&object.tls_resumed),
        Some(&object.tls_failed),
        Some(&object.answers[0]),
        Some(&object.answers[1]),
        Some(&object.answers[2]),
        Some(&object.answers[3]),
        Some(&object.answers[4]),
        Some(&object.answers[5]),
        content.map(|content| &content.compressor_in),
        content.map(|content| &content.compressor_out),
        content.map(|content| &content.compressor_bypassed),
        content.map(|content| &content.compressed),
        content.map(|content| &content.cache_lookups),
        content.map(|content| &content.cache_hits),
        content.map(|content| &content.cache_hint_hits),
        http2.map(|http2| &http2.connections),
        http2.map(|http2| &http2.streams),
        Some(&object.last_session),
    ]
}

/// Sums the counts of one object over the workers of this process.
pub fn counted<'a>(workers: impl Iterator<Item = Cells<'a>>) -> Values {
    workers.map(counts).fold([0; VALUES], |mut sum, counts| {
        for (index, (sum, count)) in sum.iter_mut().zip(counts).enumerate() {
            let count = count.map_or(0, Count::get);
            *sum = if index < SUMS { sum.wrapping_add(count) } else { (*sum).max(count) };
        }
        sum
    })
}

/// Exchanges the counts of an object with its record: adds the counts of this process since the last exchange, and
/// returns those of other processes. `given`: the counts added to the record so far.
pub fn exchange(record: &mut Values, given: &mut Values, own: Values) -> Values {
    let mut others = [0; VALUES];
    for index in 0..VALUES {
        if index < SUMS {
            record[index] = record[index].wrapping_add(own[index].wrapping_sub(given[index]));
            given[index] = own[index];
            others[index] = record[index].wrapping_sub(own[index]);
        } else {
            record[index] = record[index].max(own[index]);
            others[index] = record[index];
        }
    }
    others
}

/// Stores the counts of other processes in their cells. Callers must be serialized.
pub fn show(cells: Cells<'_>, others: &Values) {
    for (count, value) in counts(cells).into_iter().zip(others) {
        if let Some(count) = count {
            count.set(*value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: SharedKind, guid: &str) -> Record {
        Record { kind, guid: guid.into(), seats: 5, values: std::array::from_fn(|index| index as u64 * 1_000_000_007) }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        for (kind, guid) in [(SharedKind::Frontend, "a"), (SharedKind::Server, &*"x".repeat(LONGEST_GUID))] {
            let record = record(kind, guid);
            assert_eq!(Record::decode(&record.encode()), Place::Taken(Box::new(record)));
        }
        assert_eq!(Record::decode(&[0; RECORD]), Place::Free);
        assert_eq!(Record::decode(&[]), Place::Free);
        let good = record(SharedKind::Backend, "be1").encode();
        for (at, byte) in [(0, 5), (0, 255), (1, 0), (1, 128), (16, b' '), (17, 0xff), (18, 0)] {
            let mut bytes = good;
            bytes[at] = byte;
            assert_eq!(Record::decode(&bytes), Place::Damaged, "byte {at}");
        }
    }

    #[test]
    fn headers_of_others_are_refused() {
        assert_eq!(header_fault(&header()), None);
        type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
        let rows: [(Change<'_>, &str); 5] = [
            (&|bytes| bytes.clear(), "no stats file of Weir"),
            (&|bytes| bytes.truncate(100), "no stats file of Weir"),
            (&|bytes| bytes[0] = b'W', "no stats file of Weir"),
            (&|bytes| bytes[8] = 9, "version 9"),
            (&|bytes| bytes[16] = 36, "36 counts"),
        ];
        for (change, expected) in rows {
            let mut bytes = header().to_vec();
            change(&mut bytes);
            let fault = header_fault(&bytes).expect("a fault");
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn two_processes_count_together() {
        let (one, two) = (ObjectCounters::default(), ObjectCounters::default());
        let (mut record, mut given_one, mut given_two) = ([0; VALUES], [0; VALUES], [0; VALUES]);
        let own = |of: &ObjectCounters| counted(std::iter::once(Cells::of(of)));
        one.sessions.add(5);
        one.last_session.set(70);
        assert_eq!(exchange(&mut record, &mut given_one, own(&one))[0], 0);
        two.sessions.add(2);
        two.last_session.set(60);
        let others = exchange(&mut record, &mut given_two, own(&two));
        assert_eq!((others[0], others[SUMS], record[0]), (5, 70, 7));
        one.sessions.add(1);
        assert_eq!(exchange(&mut record, &mut given_one, own(&one))[0], 2);
        // The second one clears all: the counts of both so far are cleared, in both.
        (record, given_two) = ([0; VALUES], [0; VALUES]);
        two.sessions.set(0);
        one.sessions.add(3);
        let others = exchange(&mut record, &mut given_one, own(&one))[0];
        assert_eq!((others.wrapping_add(one.sessions.get()), record[0]), (3, 3));
        assert_eq!(exchange(&mut record, &mut given_two, own(&two))[0], 3);
    }

    #[test]
    fn every_count_has_a_name_and_a_cell_of_its_own() {
        let (object, content, http2) = Default::default();
        let cells = Cells { object: &object, content: Some(&content), http2: Some(&http2) };
        let values: Values = std::array::from_fn(|index| index as u64 + 1);
        show(cells, &values);
        assert_eq!(counted(std::iter::once(cells)), values);
        let counts: std::collections::BTreeSet<_> =
            counts(cells).into_iter().flatten().map(std::ptr::from_ref).collect();
        assert_eq!(counts.len(), VALUES);
        // What an object does not have is left out.
        let alone = ObjectCounters::default();
        show(Cells::of(&alone), &values);
        assert_eq!(counted(std::iter::once(Cells::of(&alone))).iter().filter(|value| **value == 0).count(), 9);
    }
}
