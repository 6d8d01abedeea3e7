//! Messages: classes, types and lengths. Must never accept one that is longer than a buffer.

use super::Malformed;
use super::definition::Definition;
use super::integer::{decode as decode_integer, encode, take, take_word};
use super::update::{Update, UpdateFields};

const CLASS_CONTROL: u8 = 0;
const CLASS_ERROR: u8 = 1;
const CLASS_TABLES: u8 = 10;

const UPDATE: u8 = 128;
const INCREMENTAL: u8 = 129;
const DEFINITION: u8 = 130;
const SWITCH: u8 = 131;
const ACK: u8 = 132;
const UPDATE_TIMED: u8 = 133;
const INCREMENTAL_TIMED: u8 = 134;

/// A control message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Control {
    /// Requests all entries.
    ResyncRequest = 0,
    /// All entries were sent, and the sender was completely synchronized.
    ResyncFinished = 1,
    /// All entries of the sender were sent; another peer may have more.
    ResyncPartial = 2,
    /// Confirms the end of a resynchronization.
    ResyncConfirm = 3,
    /// Keeps the connection alive.
    Heartbeat = 4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// A control message.
    Control(Control),
    /// The peer received an invalid message and closes the connection.
    Error,
    /// An update, for [`Update::decode`]: its optional fields, and its payload.
    Update(UpdateFields, &'a [u8]),
    /// A definition, for [`Definition::decode`].
    Definition(&'a [u8]),
    /// Selects the table of the following updates by its ID.
    Switch(u64),
    /// Acknowledges all updates of a table up to an update ID.
    Ack {
        /// The receiver's ID of the table.
        table: u64,
        /// The acknowledged update ID.
        number: u32,
    },
}

/// A message and its encoded length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub message: Message<'a>,
    /// Length of the encoded message in bytes.
    pub length: usize,
}

/// Parses the message at the start of `bytes`; `None` if it is incomplete.
///
/// # Errors
/// The message is not permitted, or is longer than `limit` bytes.
pub fn decode(bytes: &[u8], limit: usize) -> Result<Option<Frame<'_>>, Malformed> {
    let [class, kind, rest @ ..] = bytes else { return Ok(None) };
    let (mut payload, mut length): (&[u8], _) = (&[], 2);
    if *kind >= 128 {
        let Some((size, width)) = decode_integer(rest)? else { return Ok(None) };
        let size = usize::try_from(size).ok().filter(|size| *size <= limit).ok_or(Malformed::TooLong)?;
        let Some(found) = rest.get(width..width + size) else { return Ok(None) };
        (payload, length) = (found, 2 + width + size);
    }
    let message = match (*class, *kind) {
        (CLASS_CONTROL, 0) => Message::Control(Control::ResyncRequest),
        (CLASS_CONTROL, 1) => Message::Control(Control::ResyncFinished),
        (CLASS_CONTROL, 2) => Message::Control(Control::ResyncPartial),
        (CLASS_CONTROL, 3) => Message::Control(Control::ResyncConfirm),
        (CLASS_CONTROL, 4) => Message::Control(Control::Heartbeat),
        (CLASS_ERROR, _) => Message::Error,
        (CLASS_TABLES, UPDATE) => Message::Update(UpdateFields { number: true, left: false }, payload),
        (CLASS_TABLES, INCREMENTAL) => Message::Update(UpdateFields { number: false, left: false }, payload),
        (CLASS_TABLES, UPDATE_TIMED) => Message::Update(UpdateFields { number: true, left: true }, payload),
        (CLASS_TABLES, INCREMENTAL_TIMED) => Message::Update(UpdateFields { number: false, left: true }, payload),
        (CLASS_TABLES, DEFINITION) => Message::Definition(payload),
        (CLASS_TABLES, SWITCH) => Message::Switch(take(&mut payload)?),
        (CLASS_TABLES, ACK) => Message::Ack { table: take(&mut payload)?, number: take_word(&mut payload)? },
        _ => return Err(Malformed::Unknown),
    };
    Ok(Some(Frame { message, length }))
}

impl Control {
    /// Appends the encoded message.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[CLASS_CONTROL, self as u8]);
    }
}

impl Malformed {
    /// Appends the error message for the peer: protocol error, or size limit.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[CLASS_ERROR, u8::from(self == Self::TooLong)]);
    }
}

fn framed(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let mut payload = Vec::new();
    write(&mut payload);
    out.extend_from_slice(&[CLASS_TABLES, kind]);
    encode(out, payload.len() as u64);
    out.extend_from_slice(&payload);
}

/// Appends the definition of a table.
pub fn definition(out: &mut Vec<u8>, definition: &Definition) {
    framed(out, DEFINITION, |payload| definition.encode(payload));
}

/// Appends a message that selects the table of the following updates, by the sender's ID.
pub fn switch(out: &mut Vec<u8>, table: u64) {
    framed(out, SWITCH, |payload| encode(payload, table));
}

/// Appends an acknowledgement of all updates up to `number`; `table` is the ID that the sender of the updates uses.
pub fn ack(out: &mut Vec<u8>, table: u64, number: u32) {
    framed(out, ACK, |payload| {
        encode(payload, table);
        payload.extend_from_slice(&number.to_be_bytes());
    });
}

/// Appends an update of a table's entry.
pub fn update(out: &mut Vec<u8>, definition: &Definition, update: &Update<'_>) {
    let kind = match (update.number.is_some(), update.left.is_some()) {
        (true, false) => UPDATE,
        (false, false) => INCREMENTAL,
        (true, true) => UPDATE_TIMED,
        (false, true) => INCREMENTAL_TIMED,
    };
    framed(out, kind, |payload| update.encode(definition, payload));
}

#[cfg(test)]
mod tests {
    use super::super::{Datum, KeyKind, Store};
    use super::*;

    fn bytes(digits: &str) -> Vec<u8> {
        let digits: Vec<char> = digits.chars().filter(|digit| !digit.is_whitespace()).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    fn all<'a>(mut bytes: &'a [u8]) -> Vec<Message<'a>> {
        let mut found = Vec::new();
        while let Some(frame) = decode(bytes, 16_384).unwrap() {
            found.push(frame.message);
            bytes = &bytes[frame.length..];
        }
        assert!(bytes.is_empty());
        found
    }

    fn store(kind: u8, elements: u32, period: u32) -> Store {
        Store { kind, elements, period }
    }

    /// Recorded from HAProxy 3.5 with `stick-table type ip size 10k expire 100s store
    /// http_req_cnt,http_req_rate(10s),gpc(2), gpc_rate(2,5s),conn_cur,bytes_in_cnt`, and an entry of it.
    const COUNTERS: &str = "0a82170101740404f0d5835ff0db2f0af0e20317021802f8a901
        0a852100000001000181657f0000010003f6480300fc000300f6480300f090f6fe7e0000";

    #[test]
    fn counters_of_haproxy_are_read_and_written_the_same() {
        let sent = bytes(COUNTERS);
        let [Message::Definition(first), Message::Update(has, second)] = all(&sent)[..] else { panic!("{sent:?}") };
        let table = Definition::decode(first).unwrap();
        let stores = vec![
            store(6, 1, 0),
            store(9, 1, 0),
            store(10, 1, 10_000),
            store(13, 1, 0),
            store(23, 2, 0),
            store(24, 2, 5_000),
        ];
        let name = b"t".to_vec();
        assert_eq!(table, Definition { id: 1, name, key: KeyKind::Ipv4, key_length: 4, stores, expire: 100_000 });
        let entry = Update::decode(second, has, &table).unwrap();
        assert_eq!((entry.number, entry.left, entry.key), (Some(1), Some(0x1_8165), &[127, 0, 0, 1][..]));
        let rate = |age, current, previous| Datum::Rate { age, current, previous };
        let data = [
            (6, 0, Datum::Number(0)),
            (9, 0, Datum::Number(3)),
            (10, 0, rate(1_398, 3, 0)),
            (13, 0, Datum::Number(252)),
            (23, 0, Datum::Number(3)),
            (23, 1, Datum::Number(0)),
            (24, 0, rate(1_398, 3, 0)),
            (24, 1, rate(4_294_949_360, 0, 0)),
        ];
        assert_eq!(entry.data[..7], data[..7]);
        let mut out = Vec::new();
        definition(&mut out, &table);
        update(&mut out, &table, &entry);
        assert_eq!(out, sent);
    }

    #[test]
    fn names_of_servers_are_told_once() {
        let sent = bytes(
            "0a820e0201750629f1918011f0db2f1602 0a801200000007032f7a7a01010004010273310000
             0a800f0000000a032f7a7a01020001010000 0a810a032f78320001000000000a84050200000007",
        );
        let messages = all(&sent);
        let Message::Definition(first) = messages[0] else { panic!("{messages:?}") };
        let table = Definition::decode(first).unwrap();
        assert_eq!((table.key, table.key_length), (KeyKind::Text, 41));
        let mut out = Vec::new();
        definition(&mut out, &table);
        let mut names = Vec::new();
        for message in &messages[1..4] {
            let Message::Update(has, payload) = message else { panic!("{message:?}") };
            let entry = Update::decode(payload, *has, &table).unwrap();
            names.push(entry.data.iter().find(|(kind, _, _)| *kind == 19).unwrap().2);
            update(&mut out, &table, &entry);
        }
        assert_eq!(names, [Datum::Named { number: 1, name: b"s1" }, Datum::Known(1), Datum::Known(0)]);
        assert_eq!(messages[4], Message::Ack { table: 2, number: 7 });
        ack(&mut out, 2, 7);
        assert_eq!(out, sent);
    }

    #[test]
    fn controls_switches_and_errors() {
        let mut out = Vec::new();
        Control::ResyncRequest.encode(&mut out);
        Control::Heartbeat.encode(&mut out);
        switch(&mut out, 300);
        Malformed::TooLong.encode(&mut out);
        let expected = [
            Message::Control(Control::ResyncRequest),
            Message::Control(Control::Heartbeat),
            Message::Switch(300),
            Message::Error,
        ];
        assert_eq!(all(&out), expected);
    }

    #[test]
    fn what_is_cut_waits_and_what_is_wrong_is_told() {
        let sent = bytes(COUNTERS);
        for end in 0..=26 {
            assert_eq!(decode(&sent[..end], 16_384).unwrap().is_some(), end == 26, "{end}");
        }
        for (digits, why) in [
            ("0005", Malformed::Unknown),
            ("0b00", Malformed::Unknown),
            ("0a87 00", Malformed::Unknown),
            ("0a80 f0db2f", Malformed::TooLong),
            ("0a84 02 0100", Malformed::Length),
        ] {
            assert_eq!(decode(&bytes(digits), 16_384), Err(why), "{digits}");
        }
    }

    #[test]
    fn definitions_and_updates_that_do_not_fit_are_refused() {
        for (digits, why) in [
            ("01 00 04 04 00", Malformed::Value),
            ("01 0174 03 04 00", Malformed::Value),
            ("01 0174 04 04 f0f1fefe02", Malformed::Value),
            ("01 0174 04 04 f0d5835f f0db2f 0b f0e203", Malformed::Value),
            ("01 05 74", Malformed::Length),
        ] {
            let found = Definition::decode(&bytes(digits));
            assert_eq!(found, Err(why), "{digits}");
        }
        let table = Definition::decode(&bytes("03 0176 02 04 04 f0db2f")).unwrap();
        for digits in ["00000001 0000012c", "00000001 0000012c 05 06", "00000001 0000012c ffffffffff7f"] {
            assert!(
                Update::decode(&bytes(digits), UpdateFields { number: true, left: false }, &table).is_err(),
                "{digits}"
            );
        }
    }
}
