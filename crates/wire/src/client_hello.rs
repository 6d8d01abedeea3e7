//! A TLS ClientHello as the client sent it (RFC 8446, section 4.1.2), inspected and never answered: the server that it is
//! meant for speaks TLS. A message may extend over several records (section 5.1); every length is checked against the bytes
//! that are present, and nothing is copied here.

/// Length of a record header in bytes: type, version and length.
const RECORD: usize = 5;
/// Length of a handshake message's header in bytes: type and length.
const MESSAGE: usize = 4;
/// The record type of handshake messages.
const HANDSHAKE: u8 = 0x16;
/// Length of the version and the random of a hello, in bytes.
const FIXED: usize = 2 + 32;
/// Bytes of a message up to the end of its version field.
const VERSIONED: usize = MESSAGE + 2;

/// Extension types that are read (IANA's registry).
pub mod extension {
    /// `server_name` (RFC 6066).
    pub const SERVER_NAME: u16 = 0;
    /// `supported_groups`, formerly `elliptic_curves` (RFC 8422).
    pub const SUPPORTED_GROUPS: u16 = 10;
    /// `ec_point_formats` (RFC 8422).
    pub const EC_POINT_FORMATS: u16 = 11;
    /// `signature_algorithms` (RFC 8446).
    pub const SIGNATURE_ALGORITHMS: u16 = 13;
    /// `application_layer_protocol_negotiation` (RFC 7301).
    pub const ALPN: u16 = 16;
    /// `session_ticket` (RFC 5077).
    pub const SESSION_TICKET: u16 = 35;
    /// `early_data` (RFC 8446).
    pub const EARLY_DATA: u16 = 42;
    /// `supported_versions` (RFC 8446).
    pub const SUPPORTED_VERSIONS: u16 = 43;
    /// `key_share` (RFC 8446).
    pub const KEY_SHARE: u16 = 51;
}

/// Result of recognizing a message in the first bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognition<T> {
    /// The complete message is present.
    Whole(T),
    /// More bytes are needed.
    Part,
    /// Another protocol or message.
    Other,
}

/// The first handshake message of a stream, complete, with its type and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// The message is contiguous.
    Contiguous(&'a [u8]),
    /// The message extends over several records; the fragments have to be joined first.
    Fragmented(Fragments<'a>),
}

/// The fragments of a message that extends over several records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments<'a> {
    /// The records, from the first header to the end of the message.
    records: &'a [u8],
    /// The length of the message in bytes.
    length: usize,
}

/// The first message of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Its type: 1 from a client, 2 from a server.
    pub kind: u8,
    /// The message after its type and length.
    body: &'a [u8],
}

/// The parts of a client's hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientHello<'a> {
    /// The legacy version field: 0x0303 from TLS 1.2 on.
    pub version: u16,
    /// The client's random, 32 bytes.
    pub random: &'a [u8],
    /// Cipher suites, two bytes each.
    pub ciphers: &'a [u8],
    /// The extensions; `None` if the message ends before or within them.
    extensions: Option<&'a [u8]>,
}

/// Result of [`walk`].
enum Walk<'a> {
    /// The message is complete.
    Whole(Message<'a>),
    /// A record is incomplete, or another one has to follow.
    Part,
    /// The bytes after the first record are not a handshake record.
    Broken,
}

/// Returns the first handshake message of a stream.
///
/// A message is complete when its own bytes are present, whatever length its record announces. If its bytes are
/// followed by something other than a handshake record, it is read as though it were contiguous.
pub fn message(data: &[u8]) -> Recognition<Message<'_>> {
    match data.first() {
        None => return Recognition::Part,
        Some(&HANDSHAKE) => {}
        Some(_) => return Recognition::Other,
    }
    let Some((record, rest)) = data.split_at_checked(RECORD) else { return Recognition::Part };
    if record[1] < 3 || record[3..] == [0, 0] {
        return Recognition::Other;
    }
    match walk(data) {
        Walk::Whole(message) => Recognition::Whole(message),
        Walk::Part => Recognition::Part,
        Walk::Broken => match declared(rest).and_then(|length| rest.get(..length)) {
            Some(message) => Recognition::Whole(Message::Contiguous(message)),
            None => Recognition::Part,
        },
    }
}

/// Returns the version of the hello, major and minor, once the first record is complete; the rest of the message may be
/// missing.
pub fn version(data: &[u8]) -> Recognition<(u8, u8)> {
    let message = message(data);
    if message == Recognition::Other {
        return Recognition::Other;
    }
    let start = data.split_at_checked(RECORD).and_then(|(record, rest)| rest.get(..record_length(record)));
    match start.filter(|start| start.len() >= VERSIONED) {
        Some(start) => Recognition::Whole((start[MESSAGE], start[MESSAGE + 1])),
        None => match message {
            Recognition::Whole(Message::Contiguous(message)) if message.len() >= VERSIONED => {
                Recognition::Whole((message[MESSAGE], message[MESSAGE + 1]))
            }
            Recognition::Whole(Message::Fragmented(fragments)) => {
                let mut bytes = fragments.pieces().flatten().skip(MESSAGE);
                match (bytes.next(), bytes.next()) {
                    (Some(major), Some(minor)) => Recognition::Whole((*major, *minor)),
                    _ => Recognition::Other,
                }
            }
            Recognition::Whole(_) => Recognition::Other,
            _ => Recognition::Part,
        },
    }
}

/// Returns the content length that a record header announces.
fn record_length(header: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([header[3], header[4]]))
}

/// Returns the length of a message including its type and length; `None` if these are incomplete.
fn declared(message: &[u8]) -> Option<usize> {
    let head = message.get(..MESSAGE)?;
    Some(MESSAGE + u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize)
}

/// Walks the records until the message is complete. Terminates because every iteration consumes a record header.
fn walk(data: &[u8]) -> Walk<'_> {
    let (mut head, mut collected, mut at) = ([0; MESSAGE], 0, 0);
    loop {
        let rest = &data[at..];
        if at > 0
            && (rest.first().is_some_and(|kind| *kind != HANDSHAKE) || rest.get(1).is_some_and(|major| *major < 3))
        {
            return Walk::Broken;
        }
        let Some((header, rest)) = rest.split_at_checked(RECORD) else { return Walk::Part };
        let announced = record_length(header);
        if announced == 0 {
            return Walk::Broken;
        }
        let content = &rest[..announced.min(rest.len())];
        if collected < MESSAGE {
            let taken = content.len().min(MESSAGE - collected);
            head[collected..collected + taken].copy_from_slice(&content[..taken]);
        }
        if let Some(length) = declared(&head).filter(|_| collected + content.len() >= MESSAGE)
            && collected + content.len() >= length
        {
            let end = at + RECORD + (length - collected);
            return Walk::Whole(match at {
                0 => Message::Contiguous(&data[RECORD..end]),
                _ => Message::Fragmented(Fragments { records: &data[..end], length }),
            });
        }
        if content.len() < announced {
            return Walk::Part;
        }
        collected += announced;
        at += RECORD + announced;
    }
}

impl<'a> Fragments<'a> {
    /// The total length of the message in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The fragments, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.records;
        std::iter::from_fn(move || {
            let (header, behind) = rest.split_at_checked(RECORD)?;
            let (piece, next) = behind.split_at(record_length(header).min(behind.len()));
            rest = next;
            Some(piece)
        })
    }
}

/// Returns the version of an SSLv2 hello, which is not wrapped in a record.
pub fn sslv2(data: &[u8]) -> Recognition<(u8, u8)> {
    if data.first().is_some_and(|first| first & 0x80 == 0) {
        return Recognition::Other;
    }
    let Some(head) = data.get(..5) else { return Recognition::Part };
    // Two bytes of length, the message type of a ClientHello, the version.
    if head[2] != 1 || !matches!((head[3], head[4]), (0, 2) | (3, 0..=4)) {
        return Recognition::Other;
    }
    let length = usize::from(u16::from_be_bytes([head[0] & 0x7f, head[1]]));
    if data.len() < length + 2 { Recognition::Part } else { Recognition::Whole((head[3], head[4])) }
}

/// Splits off a list with a length prefix of `bytes` bytes. Returns the list and the rest.
fn list(data: &[u8], bytes: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_at_checked(bytes)?;
    let length = length.iter().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
    rest.split_at_checked(length)
}

impl<'a> Hello<'a> {
    /// Parses the hello in a complete message; `None` if it is shorter than a message's type and length.
    pub fn of(message: &'a [u8]) -> Option<Self> {
        let (head, body) = message.split_at_checked(MESSAGE)?;
        Some(Self { kind: head[0], body })
    }

    /// Parses a well-formed ClientHello of TLS or SSLv3; `None` for anything else.
    pub fn client(&self) -> Option<ClientHello<'a>> {
        if self.kind != 1 || self.body.first() != Some(&3) {
            return None;
        }
        let (_session, rest) = list(self.body.get(FIXED..)?, 1)?;
        let (ciphers, rest) = list(rest, 2)?;
        let extensions = list(rest, 1).and_then(|(_compression, rest)| list(rest, 2)).map(|(extensions, _)| extensions);
        let version = u16::from_be_bytes([self.body[0], self.body[1]]);
        Some(ClientHello { version, random: &self.body[2..FIXED], ciphers, extensions })
    }
}

impl<'a> ClientHello<'a> {
    /// Whether the extensions field is present, even if it is empty.
    pub fn has_extensions(&self) -> bool {
        self.extensions.is_some()
    }

    /// Returns the data of the first extension of type `wanted`.
    pub fn extension(&self, wanted: u16) -> Option<&'a [u8]> {
        let mut rest = self.extensions?;
        while let Some((number, behind)) = rest.split_first_chunk::<2>() {
            let (data, next) = list(behind, 2)?;
            if u16::from_be_bytes(*number) == wanted {
                return Some(data);
            }
            rest = next;
        }
        None
    }

    /// The first host name of `server_name`.
    pub fn server_name(&self) -> Option<&'a [u8]> {
        let (names, _) = list(self.extension(extension::SERVER_NAME)?, 2)?;
        let mut rest = names;
        while let Some((kind, behind)) = rest.split_first() {
            let (name, next) = list(behind, 2)?;
            if *kind == 0 {
                return Some(name);
            }
            rest = next;
        }
        None
    }

    /// The protocols that the client offers (ALPN, RFC 7301, section 3.1), in its order.
    pub fn protocols(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest =
            self.extension(extension::ALPN).and_then(|data| list(data, 2)).map_or(&[][..], |(names, _)| names);
        std::iter::from_fn(move || {
            let (protocol, after) = list(rest, 1)?;
            rest = after;
            Some(protocol)
        })
    }

    /// Returns the list of an extension that has a length prefix of two bytes.
    pub fn numbers(&self, wanted: u16) -> Option<&'a [u8]> {
        list(self.extension(wanted)?, 2).map(|(numbers, _)| numbers)
    }

    /// Returns the list of an extension that has a length prefix of one byte.
    pub fn bytes(&self, wanted: u16) -> Option<&'a [u8]> {
        list(self.extension(wanted)?, 1).map(|(bytes, _)| bytes)
    }

    /// The extension types, in order.
    pub fn extension_types(&self) -> impl Iterator<Item = [u8; 2]> + 'a {
        let mut rest = self.extensions.unwrap_or_default();
        std::iter::from_fn(move || {
            let (number, behind) = rest.split_first_chunk::<2>()?;
            rest = list(behind, 2)?.1;
            Some(*number)
        })
    }

    /// The groups of `key_share`, two bytes each.
    pub fn key_share_groups(&self) -> impl Iterator<Item = [u8; 2]> + 'a {
        let mut rest = self.numbers(extension::KEY_SHARE).unwrap_or_default();
        std::iter::from_fn(move || {
            let (group, behind) = rest.split_first_chunk::<2>()?;
            rest = list(behind, 2)?.1;
            Some(*group)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(extensions: Option<&[u8]>) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([2, 1, 2, 0, 4, 0x13, 1, 0xc0, 0x2f, 1, 0]);
        if let Some(extensions) = extensions {
            body.extend((extensions.len() as u16).to_be_bytes());
            body.extend(extensions);
        }
        let mut data = vec![0x16, 3, 1, 0, body.len() as u8 + 4, 1, 0, 0, body.len() as u8];
        data.extend(body);
        data
    }

    /// The hello in a contiguous message.
    fn hello(data: &[u8]) -> Recognition<Hello<'_>> {
        match message(data) {
            Recognition::Whole(Message::Contiguous(message)) => {
                Recognition::Whole(Hello::of(message).expect("a message"))
            }
            Recognition::Whole(Message::Fragmented(fragments)) => panic!("{fragments:?}"),
            Recognition::Part => Recognition::Part,
            Recognition::Other => Recognition::Other,
        }
    }

    /// Splits a message into records of the given lengths; the last one takes the rest.
    fn records(message: &[u8], lengths: &[usize]) -> Vec<u8> {
        let (mut data, mut rest) = (Vec::new(), message);
        for length in lengths.iter().copied().chain([message.len()]) {
            let (piece, behind) = rest.split_at(length.min(rest.len()));
            if !piece.is_empty() {
                data.extend([0x16, 3, 1, 0, piece.len() as u8]);
                data.extend(piece);
            }
            rest = behind;
        }
        data
    }

    const EXTENSIONS: &[u8] = b"\0\0\0\x08\0\x06\0\0\x03a.b\0\x10\0\x05\0\x03\x02h2\0\x0a\0\x04\0\x02\0\x1d\
        \0\x33\0\x08\0\x06\0\x1d\0\x02xy\0\x23\0\x01t";

    #[test]
    fn the_parts_of_a_hello() {
        let data = sample(Some(EXTENSIONS));
        let Recognition::Whole(found) = hello(&data) else { panic!("{:?}", hello(&data)) };
        assert_eq!((found.kind, version(&data)), (1, Recognition::Whole((3, 3))));
        let client = found.client().expect("a client's hello");
        assert_eq!(client.ciphers, [0x13, 1, 0xc0, 0x2f]);
        assert_eq!(client.server_name(), Some(&b"a.b"[..]));
        assert_eq!(client.protocols().next(), Some(&b"h2"[..]));
        assert_eq!(client.numbers(extension::SUPPORTED_GROUPS), Some(&[0, 0x1d][..]));
        assert_eq!(client.key_share_groups().collect::<Vec<_>>(), [[0, 0x1d]]);
        assert_eq!(client.extension(extension::SESSION_TICKET), Some(&b"t"[..]));
        assert_eq!(client.extension(extension::SIGNATURE_ALGORITHMS), None);
    }

    #[test]
    fn a_hello_cut_anywhere_waits_and_a_damaged_one_is_no_panic() {
        let data = sample(Some(EXTENSIONS));
        for length in 0..data.len() {
            assert_eq!(hello(&data[..length]), Recognition::Part, "{length}");
        }
        for at in 0..data.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = data.clone();
                damaged[at] = value;
                if let Recognition::Whole(found) = hello(&damaged)
                    && let Some(client) = found.client()
                {
                    let _ = (client.server_name(), client.protocols().next(), client.key_share_groups().count());
                }
            }
        }
    }

    #[test]
    fn a_hello_in_several_records_is_put_together() {
        let whole = sample(Some(EXTENSIONS));
        let expected = &whole[RECORD..];
        let single: Vec<usize> = vec![1; expected.len()];
        for lengths in [&[1][..], &[3], &[4], &[5, 1, 30], &[60], &[expected.len() - 1], &single] {
            let data = records(expected, lengths);
            for length in 0..data.len() {
                assert_eq!(message(&data[..length]), Recognition::Part, "{lengths:?} {length}");
            }
            let mut longer = data.clone();
            longer.extend(b"more");
            for data in [&data, &longer] {
                let Recognition::Whole(Message::Fragmented(found)) = message(data) else { panic!("{lengths:?}") };
                assert_eq!(
                    (found.pieces().collect::<Vec<_>>().concat(), found.length()),
                    (expected.to_vec(), expected.len())
                );
                assert_eq!(version(data), Recognition::Whole((3, 3)));
            }
        }
    }

    #[test]
    fn the_length_of_a_record_decides_nothing_where_the_message_is_whole() {
        let whole = sample(Some(EXTENSIONS));
        for announced in [0, 1, 60, 200, 255] {
            for high in [0, 0x40, 0xff] {
                let mut data = whole.clone();
                data[3..RECORD].copy_from_slice(&[high, announced]);
                let expected = if (high, announced) == (0, 0) { Recognition::Other } else { hello(&whole) };
                assert_eq!(hello(&data), expected, "{high} {announced}");
            }
        }
        let mut data = records(&whole[RECORD..], &[50]);
        data[RECORD + 50] = 0x17;
        assert!(matches!(message(&data), Recognition::Whole(Message::Contiguous(_))), "no handshake record follows");
    }

    #[test]
    fn the_version_is_known_when_the_first_record_is_whole() {
        let data = records(&sample(Some(EXTENSIONS))[RECORD..], &[VERSIONED]);
        assert_eq!(version(&data[..RECORD + VERSIONED - 1]), Recognition::Part);
        assert_eq!(version(&data[..RECORD + VERSIONED]), Recognition::Whole((3, 3)));
    }

    #[test]
    fn what_is_none() {
        assert_eq!(hello(b"GET / HTTP/1.1"), Recognition::Other);
        assert_eq!(hello(&[0x16, 2, 0, 0, 9]), Recognition::Other);
        let Recognition::Whole(found) = hello(&[0x16, 3, 3, 0, 8, 2, 0, 0, 4, 3, 3, 0, 0]) else {
            panic!("a server's")
        };
        assert!(found.kind == 2 && found.client().is_none());
        let data = sample(None);
        let Recognition::Whole(found) = hello(&data) else { panic!("whole") };
        assert!(!found.client().expect("a client's hello").has_extensions());
        let mut old = vec![0x80, 46, 1, 0, 2];
        assert_eq!(sslv2(&old), Recognition::Part);
        old.resize(48, 0);
        assert_eq!((sslv2(&old), sslv2(b"GET /")), (Recognition::Whole((0, 2)), Recognition::Other));
    }
}
