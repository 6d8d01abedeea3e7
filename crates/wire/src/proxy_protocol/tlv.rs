//! The TLVs of a version 2 header: type, length, value (section 2.2). Must never hold a list whose lengths do not add
//! up.

/// Registered types (section 2.2).
pub mod kind {
    /// The upper-layer protocol, as an ALPN name.
    pub const ALPN: u8 = 0x01;
    /// The host name that the client requested (SNI).
    pub const AUTHORITY: u8 = 0x02;
    /// Checksum of the whole header.
    pub const CRC32C: u8 = 0x03;
    /// Ignored; for alignment.
    pub const NOOP: u8 = 0x04;
    /// An ID of the connection, up to 128 bytes.
    pub const UNIQUE_ID: u8 = 0x05;
    /// Properties of TLS: see [`super::SslInfo`].
    pub const SSL: u8 = 0x20;
    /// Name of the network namespace.
    pub const NETNS: u8 = 0x30;
}

/// Types within [`kind::SSL`] (section 2.2.6).
pub mod ssl_kind {
    /// Protocol version, such as "TLSv1.3".
    pub const VERSION: u8 = 0x21;
    /// Common name of the client's certificate.
    pub const CN: u8 = 0x22;
    pub const CIPHER: u8 = 0x23;
    /// Signature algorithm of the frontend's certificate.
    pub const SIG_ALG: u8 = 0x24;
    /// Key algorithm of the frontend's certificate.
    pub const KEY_ALG: u8 = 0x25;
    /// The group of the key exchange.
    pub const GROUP: u8 = 0x26;
    /// Signature scheme with which the frontend signed the handshake.
    pub const SIG_SCHEME: u8 = 0x27;
    /// The client's certificate in DER.
    pub const CLIENT_CERT: u8 = 0x28;
}

/// Bits of [`SslInfo::client`] (section 2.2.6).
pub mod ssl_client {
    /// The client connected over TLS.
    pub const SSL: u8 = 0x01;
    /// The client presented a certificate on this connection.
    pub const CERT_CONN: u8 = 0x02;
    /// The client presented a certificate in this TLS session.
    pub const CERT_SESS: u8 = 0x04;
}

/// Length of a TLV's type and length fields in bytes.
const FIXED: usize = 3;

/// Length of [`SslInfo`] before its nested TLVs, in bytes.
const SSL_FIXED: usize = 5;

/// A type-length-value element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    pub kind: u8,
    pub value: &'a [u8],
}

/// A list of TLVs whose lengths add up exactly.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tlvs(Box<[u8]>);

impl Tlvs {
    /// Parses the bytes after the addresses; `None` if the last length exceeds them or bytes are left over.
    pub fn new(bytes: &[u8]) -> Option<Tlvs> {
        well_formed(bytes).then(|| Tlvs(bytes.into()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the TLVs in order.
    pub fn iter(&self) -> impl Iterator<Item = Tlv<'_>> {
        iterate(&self.0)
    }

    /// Returns the value of the first TLV of a type.
    pub fn first(&self, kind: u8) -> Option<&[u8]> {
        self.iter().find(|tlv| tlv.kind == kind).map(|tlv| tlv.value)
    }

    /// Returns the properties of TLS; `None` also if they are malformed.
    pub fn ssl(&self) -> Option<SslInfo<'_>> {
        SslInfo::read(self.first(kind::SSL)?)
    }

    /// The encoded list.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Properties of the client's TLS (section 2.2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SslInfo<'a> {
    /// Bits of [`ssl_client`].
    pub client: u8,
    /// Zero if the client presented a certificate that was verified.
    pub verify: u32,
    list: &'a [u8],
}

impl<'a> SslInfo<'a> {
    fn read(value: &'a [u8]) -> Option<SslInfo<'a>> {
        let (fixed, list) = value.split_first_chunk::<SSL_FIXED>()?;
        let [client, verify @ ..] = *fixed;
        well_formed(list).then(|| SslInfo { client, verify: u32::from_be_bytes(verify), list })
    }

    /// Returns the nested TLVs, of [`ssl_kind`].
    pub fn iter(&self) -> impl Iterator<Item = Tlv<'a>> + use<'a> {
        iterate(self.list)
    }

    /// Returns the value of the first nested TLV of a type.
    pub fn first(&self, kind: u8) -> Option<&'a [u8]> {
        self.iter().find(|tlv| tlv.kind == kind).map(|tlv| tlv.value)
    }
}

/// Splits off the first TLV; returns it and the rest.
fn split(bytes: &[u8]) -> Option<(Tlv<'_>, &[u8])> {
    let ([kind, high, low], rest) = bytes.split_first_chunk::<FIXED>()?;
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let (value, rest) = rest.split_at_checked(length)?;
    Some((Tlv { kind: *kind, value }, rest))
}

fn iterate(mut bytes: &[u8]) -> impl Iterator<Item = Tlv<'_>> {
    std::iter::from_fn(move || {
        let (tlv, rest) = split(bytes)?;
        bytes = rest;
        Some(tlv)
    })
}

fn well_formed(bytes: &[u8]) -> bool {
    let read: usize = iterate(bytes).map(|tlv| FIXED + tlv.value.len()).sum();
    read == bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_to_add_up() {
        for (bytes, fine) in [
            (&b""[..], true),
            (b"\x01\0\0", true),
            (b"\x01\0\x02h2\x04\0\0", true),
            (b"\x01", false),
            (b"\x01\0", false),
            (b"\x01\0\x01", false),
            (b"\x01\0\x02h2\x04", false),
            (b"\x01\xff\xffh2", false),
        ] {
            assert_eq!(Tlvs::new(bytes).is_some(), fine, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn values_are_found_by_type() {
        let tlvs = Tlvs::new(b"\x01\0\x02h2\xe0\0\x01a\xe0\0\x01b").unwrap();
        assert_eq!(tlvs.first(kind::ALPN), Some(&b"h2"[..]));
        assert_eq!(tlvs.first(0xe0), Some(&b"a"[..]));
        assert_eq!(tlvs.first(kind::AUTHORITY), None);
        assert_eq!(tlvs.iter().count(), 3);
    }

    #[test]
    fn a_list_inside_the_list_is_checked_as_well() {
        let whole = Tlvs::new(b"\x20\0\x0f\x05\0\0\0\x01\x21\0\x07TLSv1.3").unwrap();
        let ssl = whole.ssl().unwrap();
        assert_eq!((ssl.client, ssl.verify), (ssl_client::SSL | ssl_client::CERT_SESS, 1));
        assert_eq!(ssl.first(ssl_kind::VERSION), Some(&b"TLSv1.3"[..]));
        for bad in [&b"\x20\0\x04\x05\0\0\0"[..], b"\x20\0\x09\x05\0\0\0\x01\x21\0\x07T"] {
            assert_eq!(Tlvs::new(bad).unwrap().ssl(), None);
        }
    }
}
