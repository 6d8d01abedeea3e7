//! The header of every message (RFC 4271, section 4.1). Must never look into a body.

use super::{ErrorCode, Notification};

/// Length of a header in octets.
pub const HEADER: usize = 19;
/// Maximum length of a message in octets.
pub const LONGEST: usize = 4_096;

const MARKER: usize = 16;

/// The type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Open = 1,
    Update = 2,
    Notification = 3,
    Keepalive = 4,
    RouteRefresh = 5,
}

impl Kind {
    fn of(octet: u8) -> Option<Self> {
        [Self::Open, Self::Update, Self::Notification, Self::Keepalive, Self::RouteRefresh]
            .into_iter()
            .find(|kind| *kind as u8 == octet)
    }

    /// Whether a message of this type may have that length in octets.
    fn permits(self, length: usize) -> bool {
        match self {
            Self::Open => length >= 29,
            Self::Update => length >= 23,
            Self::Notification => length >= 21,
            Self::Keepalive => length == HEADER,
            Self::RouteRefresh => length == 23,
        }
    }
}

/// A whole message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub kind: Kind,
    pub body: &'a [u8],
    /// Length of the message in octets, header included.
    pub length: usize,
}

/// Returns the first message; `None` if it is incomplete. An invalid header is reported before the message is complete.
///
/// # Errors
/// The message with which the session has to end.
pub fn decode(bytes: &[u8]) -> Result<Option<Frame<'_>>, Notification> {
    if bytes.iter().take(MARKER).any(|octet| *octet != 0xff) {
        return Err(ErrorCode::NOT_SYNCHRONIZED.into());
    }
    let Some(header) = bytes.get(..HEADER) else { return Ok(None) };
    let length = u16::from_be_bytes([header[MARKER], header[MARKER + 1]]);
    let bad_length = || Notification::new(ErrorCode::BAD_LENGTH, &length.to_be_bytes());
    if !(HEADER..=LONGEST).contains(&usize::from(length)) {
        return Err(bad_length());
    }
    let octet = header[MARKER + 2];
    let kind = Kind::of(octet).ok_or_else(|| Notification::new(ErrorCode::BAD_TYPE, &[octet]))?;
    let length = usize::from(length);
    if !kind.permits(length) {
        return Err(bad_length());
    }
    Ok(bytes.get(HEADER..length).map(|body| Frame { kind, body, length }))
}

/// Adds a message to `out`, whose body `write` adds. The body is at most 4,077 octets long.
pub(super) fn encode(out: &mut Vec<u8>, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0xff; MARKER]);
    out.extend([0, 0, kind as u8]);
    write(out);
    debug_assert!(out.len() - start <= LONGEST);
    let length = u16::try_from(out.len() - start).unwrap_or(u16::MAX).to_be_bytes();
    out[start + MARKER..start + MARKER + 2].copy_from_slice(&length);
}

/// Adds a KEEPALIVE message to `out`.
pub fn keepalive(out: &mut Vec<u8>) {
    encode(out, Kind::Keepalive, |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: u16, kind: u8, body: usize) -> Vec<u8> {
        let mut bytes = vec![0xff; MARKER];
        bytes.extend(length.to_be_bytes());
        bytes.push(kind);
        bytes.extend(vec![0; body]);
        bytes
    }

    #[test]
    fn headers_are_checked() {
        let fault = |code, subcode, data: &[u8]| Err(Notification::new(ErrorCode { code, subcode }, data));
        let good = |kind, body, length| Ok(Some((kind, body, length)));
        let rows = [
            (message(19, 4, 0), good(Kind::Keepalive, 0, 19)),
            (message(23, 2, 10), good(Kind::Update, 4, 23)),
            (message(4_096, 2, 4_077), good(Kind::Update, 4_077, 4_096)),
            (message(23, 5, 4), good(Kind::RouteRefresh, 4, 23)),
            (message(29, 1, 9), Ok(None)),
            (message(19, 4, 0)[..18].to_vec(), Ok(None)),
            (Vec::new(), Ok(None)),
            (vec![0xff; 15], Ok(None)),
            (b"HTTP/1.1".to_vec(), fault(1, 1, &[])),
            ([vec![0xff; 15], vec![0]].concat(), fault(1, 1, &[])),
            (message(18, 4, 0), fault(1, 2, &[0, 18])),
            (message(0, 4, 0), fault(1, 2, &[0, 0])),
            (message(4_097, 2, 0), fault(1, 2, &[16, 1])),
            (message(20, 4, 1), fault(1, 2, &[0, 20])),
            (message(28, 1, 9), fault(1, 2, &[0, 28])),
            (message(22, 2, 3), fault(1, 2, &[0, 22])),
            (message(20, 3, 1), fault(1, 2, &[0, 20])),
            (message(24, 5, 5), fault(1, 2, &[0, 24])),
            (message(19, 0, 0), fault(1, 3, &[0])),
            (message(19, 6, 0), fault(1, 3, &[6])),
        ];
        for (bytes, expected) in rows {
            let found = decode(&bytes).map(|frame| frame.map(|frame| (frame.kind, frame.body.len(), frame.length)));
            assert_eq!(found, expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_keepalive_is_a_header() {
        let mut out = Vec::new();
        keepalive(&mut out);
        assert_eq!(out, message(19, 4, 0));
    }
}
