//! NOTIFICATION messages (RFC 4271, section 4.5), with the text of a shutdown (RFC 9003). Must never end a session.

use super::ErrorCode;
use super::header::{self, Kind, LONGEST};

/// Maximum length in octets of the text of a shutdown.
const LONGEST_TEXT: usize = 255;

/// A NOTIFICATION message: the reason why its sender ends the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub error: ErrorCode,
    /// The data that depends on the error.
    pub data: Box<[u8]>,
}

impl Notification {
    /// Creates a message; data beyond the longest message is cut off.
    pub fn new(error: ErrorCode, data: &[u8]) -> Self {
        let most = LONGEST - header::HEADER - 2;
        Self { error, data: data[..data.len().min(most)].into() }
    }

    /// Creates a message that ends a session in order, with a text for the operator of the router.
    pub fn shutdown(text: &str) -> Self {
        let mut ends = (0..=text.len().min(LONGEST_TEXT)).rev();
        let end = ends.find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let text = &text.as_bytes()[..end];
        let mut data = vec![u8::try_from(text.len()).unwrap_or(u8::MAX)];
        data.extend(text);
        Self::new(ErrorCode::SHUTDOWN, &data)
    }

    /// Parses the body of a message. Its length was checked with its header.
    pub fn parse(body: &[u8]) -> Self {
        let (code, subcode) = (body.first().copied().unwrap_or(0), body.get(1).copied().unwrap_or(0));
        Self::new(ErrorCode { code, subcode }, body.get(2..).unwrap_or_default())
    }

    /// Adds the message to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        header::encode(out, Kind::Notification, |out| {
            out.extend([self.error.code, self.error.subcode]);
            out.extend(&*self.data);
        });
    }

    /// Returns the text that the sender of a shutdown or a reset has added, if it is valid.
    pub fn communication(&self) -> Option<&str> {
        if self.error != ErrorCode::SHUTDOWN && self.error != ErrorCode::RESET {
            return None;
        }
        let (length, rest) = self.data.split_first()?;
        let text = rest.get(..usize::from(*length)).filter(|text| !text.is_empty())?;
        std::str::from_utf8(text).ok()
    }
}

impl From<ErrorCode> for Notification {
    fn from(error: ErrorCode) -> Self {
        Self::new(error, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shutdown_carries_a_text() {
        let mut out = Vec::new();
        Notification::shutdown("Weir stops").encode(&mut out);
        let mut expected = vec![0xff; 16];
        expected.extend([0, 32, 3, 6, 2, 10]);
        expected.extend(b"Weir stops");
        assert_eq!(out, expected);
        assert_eq!(Notification::parse(&out[19..]).communication(), Some("Weir stops"));
    }

    #[test]
    fn texts_are_cut_between_characters_and_checked() {
        let long = Notification::shutdown(&format!("{}é", "x".repeat(254)));
        assert_eq!((long.data.len(), long.data[0]), (255, 254));
        let rows: [(&[u8], Option<&str>); 6] = [
            (&[6, 2, 2, b'a', b'b'], Some("ab")),
            (&[6, 4, 1, b'a', b'b'], Some("a")),
            (&[6, 2, 3, b'a', b'b'], None),
            (&[6, 2, 0], None),
            (&[6, 2, 1, 0xff], None),
            (&[6, 3, 1, b'a'], None),
        ];
        for (body, expected) in rows {
            assert_eq!(Notification::parse(body).communication(), expected, "{body:?}");
        }
    }
}
