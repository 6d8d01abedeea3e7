//! A TLS ClientHello as it lies in the first record (RFC 8446, section 4.1.2), looked at and never answered: whoever it is
//! meant for speaks TLS. Reads within the record alone; every length is checked against what is there.

/// A record's type and version, and its length.
const RECORD: usize = 5;
/// A handshake message's type and length.
const MESSAGE: usize = 4;
/// The record type of handshake messages.
const HANDSHAKE: u8 = 0x16;
/// Version and random of a hello.
const FIXED: usize = 2 + 32;

/// Extensions that are asked for (IANA's registry).
pub mod extension {
    /// `server_name` (RFC 6066).
    pub const SERVER_NAME: u16 = 0;
    /// `supported_groups`, once `elliptic_curves` (RFC 8422).
    pub const SUPPORTED_GROUPS: u16 = 10;
    /// `signature_algorithms` (RFC 8446).
    pub const SIGNATURE_ALGORITHMS: u16 = 13;
    /// `application_layer_protocol_negotiation` (RFC 7301).
    pub const ALPN: u16 = 16;
    /// `session_ticket` (RFC 5077).
    pub const SESSION_TICKET: u16 = 35;
    /// `key_share` (RFC 8446).
    pub const KEY_SHARE: u16 = 51;
}

/// What the first bytes of a connection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<T> {
    /// All of it is there.
    Whole(T),
    /// More has to come.
    Part,
    /// Something else.
    Other,
}

/// The first message of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Its type: 1 from a client, 2 from a server.
    pub kind: u8,
    /// The version that it names, major and minor.
    pub version: (u8, u8),
    /// What follows the message's length.
    body: &'a [u8],
}

/// The parts of a client's hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientHello<'a> {
    /// Numbers of cipher suites, two bytes each.
    pub ciphers: &'a [u8],
    /// The extensions; `None`: the message ends before them.
    extensions: Option<&'a [u8]>,
}

/// The first handshake message of a stream, whole within its record.
pub fn hello(data: &[u8]) -> Found<Hello<'_>> {
    match data.first() {
        None => return Found::Part,
        Some(&HANDSHAKE) => {}
        Some(_) => return Found::Other,
    }
    let Some((record, rest)) = data.split_at_checked(RECORD) else { return Found::Part };
    let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
    if record[1] < 3 || length < MESSAGE {
        return Found::Other;
    }
    let Some(message) = rest.get(..length) else { return Found::Part };
    let declared = u32::from_be_bytes([0, message[1], message[2], message[3]]) as usize;
    match message.get(MESSAGE..MESSAGE + declared) {
        Some(body) if body.len() >= 2 => Found::Whole(Hello { kind: message[0], version: (body[0], body[1]), body }),
        _ => Found::Other,
    }
}

/// The version of an SSLv2 hello, which has no record around it.
pub fn sslv2(data: &[u8]) -> Found<(u8, u8)> {
    if data.first().is_some_and(|first| first & 0x80 == 0) {
        return Found::Other;
    }
    let Some(head) = data.get(..5) else { return Found::Part };
    // Two bytes of length, the type of a client's hello, the version.
    if head[2] != 1 || !matches!((head[3], head[4]), (0, 2) | (3, 0..=4)) {
        return Found::Other;
    }
    let length = usize::from(u16::from_be_bytes([head[0] & 0x7f, head[1]]));
    if data.len() < length + 2 { Found::Part } else { Found::Whole((head[3], head[4])) }
}

/// A list behind its length in `bytes` bytes, and what follows it.
fn list(data: &[u8], bytes: usize) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_at_checked(bytes)?;
    let length = length.iter().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
    rest.split_at_checked(length)
}

impl<'a> Hello<'a> {
    /// Its parts, if it is a client's and they are well formed.
    pub fn client(&self) -> Option<ClientHello<'a>> {
        if self.kind != 1 {
            return None;
        }
        let (_session, rest) = list(self.body.get(FIXED..)?, 1)?;
        let (ciphers, rest) = list(rest, 2)?;
        let (_compression, rest) = list(rest, 1)?;
        let extensions = if rest.is_empty() { None } else { Some(list(rest, 2)?.0) };
        Some(ClientHello { ciphers, extensions })
    }
}

impl<'a> ClientHello<'a> {
    /// Whether it has extensions at all, be the list empty.
    pub fn has_extensions(&self) -> bool {
        self.extensions.is_some()
    }

    /// The data of the first extension of that number.
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

    /// The first protocol of ALPN.
    pub fn first_protocol(&self) -> Option<&'a [u8]> {
        let (protocols, _) = list(self.extension(extension::ALPN)?, 2)?;
        list(protocols, 1).map(|(protocol, _)| protocol)
    }

    /// What an extension lists behind a length of two bytes.
    pub fn numbers(&self, wanted: u16) -> Option<&'a [u8]> {
        list(self.extension(wanted)?, 2).map(|(numbers, _)| numbers)
    }

    /// The groups that keys are offered for, two bytes each.
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

    const EXTENSIONS: &[u8] = b"\0\0\0\x08\0\x06\0\0\x03a.b\0\x10\0\x05\0\x03\x02h2\0\x0a\0\x04\0\x02\0\x1d\
        \0\x33\0\x08\0\x06\0\x1d\0\x02xy\0\x23\0\x01t";

    #[test]
    fn the_parts_of_a_hello() {
        let data = sample(Some(EXTENSIONS));
        let Found::Whole(found) = hello(&data) else { panic!("{:?}", hello(&data)) };
        assert_eq!((found.kind, found.version), (1, (3, 3)));
        let client = found.client().expect("a client's hello");
        assert_eq!(client.ciphers, [0x13, 1, 0xc0, 0x2f]);
        assert_eq!(client.server_name(), Some(&b"a.b"[..]));
        assert_eq!(client.first_protocol(), Some(&b"h2"[..]));
        assert_eq!(client.numbers(extension::SUPPORTED_GROUPS), Some(&[0, 0x1d][..]));
        assert_eq!(client.key_share_groups().collect::<Vec<_>>(), [[0, 0x1d]]);
        assert_eq!(client.extension(extension::SESSION_TICKET), Some(&b"t"[..]));
        assert_eq!(client.extension(extension::SIGNATURE_ALGORITHMS), None);
    }

    #[test]
    fn a_hello_cut_anywhere_waits_and_a_damaged_one_is_no_panic() {
        let data = sample(Some(EXTENSIONS));
        for length in 0..data.len() {
            assert_eq!(hello(&data[..length]), Found::Part, "{length}");
        }
        for at in 0..data.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = data.clone();
                damaged[at] = value;
                if let Found::Whole(found) = hello(&damaged)
                    && let Some(client) = found.client()
                {
                    let _ = (client.server_name(), client.first_protocol(), client.key_share_groups().count());
                }
            }
        }
    }

    #[test]
    fn what_is_none() {
        assert_eq!(hello(b"GET / HTTP/1.1"), Found::Other);
        assert_eq!(hello(&[0x16, 2, 0, 0, 9]), Found::Other);
        let Found::Whole(found) = hello(&[0x16, 3, 3, 0, 8, 2, 0, 0, 4, 3, 3, 0, 0]) else { panic!("a server's") };
        assert!(found.kind == 2 && found.client().is_none());
        let data = sample(None);
        let Found::Whole(found) = hello(&data) else { panic!("whole") };
        assert!(!found.client().expect("a client's hello").has_extensions());
        let mut old = vec![0x80, 46, 1, 0, 2];
        assert_eq!(sslv2(&old), Found::Part);
        old.resize(48, 0);
        assert_eq!((sslv2(&old), sslv2(b"GET /")), (Found::Whole((0, 2)), Found::Other));
    }
}
