//! Replies that outlive the bytes that they were decoded from. Must never decode.

use super::Reply;

/// A reply, or an element of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedReply {
    /// A status, such as `OK`.
    Simple(Box<[u8]>),
    /// An error: a code in upper case, and a text.
    Error(Box<[u8]>),
    Integer(i64),
    /// A string of any bytes.
    Bulk(Box<[u8]>),
    /// A string or an array that does not exist.
    Nil,
    Array(Vec<OwnedReply>),
}

impl From<Reply<'_>> for OwnedReply {
    fn from(reply: Reply<'_>) -> Self {
        match reply {
            Reply::Simple(text) => Self::Simple(text.into()),
            Reply::Error(text) => Self::Error(text.into()),
            Reply::Integer(number) => Self::Integer(number),
            Reply::Bulk(bytes) => Self::Bulk(bytes.into()),
            Reply::Nil => Self::Nil,
            Reply::Array(elements) => Self::Array(elements.into_iter().map(Self::from).collect()),
        }
    }
}

impl OwnedReply {
    /// Returns the integer.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the text of an error.
    pub fn error(&self) -> Option<&[u8]> {
        match self {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is an error with that code, such as `NOSCRIPT`.
    pub fn is_error(&self, code: &str) -> bool {
        self.error().is_some_and(|text| text.split(|byte| *byte == b' ').next() == Some(code.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::next_reply;

    #[test]
    fn replies_are_copied() {
        use OwnedReply::*;
        let rows = [
            ("+OK\r\n", Simple(b"OK"[..].into())),
            ("-ERR no\r\n", Error(b"ERR no"[..].into())),
            (":-5\r\n", Integer(-5)),
            ("$-1\r\n", Nil),
            ("*2\r\n:1\r\n*1\r\n$1\r\nx\r\n", Array(vec![Integer(1), Array(vec![Bulk(b"x"[..].into())])])),
        ];
        for (text, expected) in rows {
            let Ok(Ok((reply, _))) = next_reply(text.as_bytes(), 100) else { panic!("{text:?}") };
            assert_eq!(OwnedReply::from(reply), expected, "{text:?}");
        }
    }

    #[test]
    fn errors_are_recognized_by_their_code() {
        let rows = [("NOSCRIPT No script", "NOSCRIPT", true), ("NOSCRIPTS", "NOSCRIPT", false), ("ERR", "ERR", true)];
        for (text, code, is) in rows {
            assert_eq!(OwnedReply::Error(text.as_bytes().into()).is_error(code), is, "{text}");
        }
        assert!(!OwnedReply::Simple(b"ERR"[..].into()).is_error("ERR"));
        assert_eq!(OwnedReply::Integer(7).integer(), Some(7));
    }
}
