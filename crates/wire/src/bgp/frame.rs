//! Reads the header of a message (RFC 4271, section 4.1). Must never look into a body.

use super::header::{HEADER, Kind, LONGEST, MARKER};
use super::{ErrorCode, Notification};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bgp::keepalive;

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
