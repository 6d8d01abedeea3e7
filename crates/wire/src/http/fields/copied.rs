//! Copies of heads that are kept and sent repeatedly. A copy is two blocks of memory, whatever the number of fields.

use super::Fields;
use crate::digits::write_decimal;
use crate::http::head::Span;
use crate::http::{Head, Name, Version};

impl Fields {
    /// Copies another list, keeping the capacity.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.clear();
        self.reserve(other.used);
        let (Some(room), Some(text)) = (self.text.get_mut(..other.used), other.text.get(..other.used)) else {
            self.overflowed = true;
            return;
        };
        room.copy_from_slice(text);
        self.list.extend_from_slice(&other.list);
        (self.used, self.names, self.overflowed) = (other.used, other.names, other.overflowed);
    }
}

impl Head {
    /// Copies another message without its trailers, keeping the capacity.
    pub fn copy_from(&mut self, other: &Self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.copy_from(&other.fields);
        *self = Self { fields, trailers: None, ..*other };
    }

    /// Removes the state of the connection that the message was received on; from now on it is a message of HTTP/1.1.
    pub fn detach(&mut self) {
        if self.version != Version::Http11 {
            self.line = Span::default();
        }
        (self.version, self.version_text) = (Version::Http11, Span::default());
        (self.connection, self.expect_continue, self.upgrade, self.shared) = Default::default();
        self.trailers = None;
    }

    /// Appends a field. `name` must be a token in lower case, and `value` must have no control character.
    pub fn append_plain(&mut self, name: &'static str, value: &[u8]) {
        debug_assert!(crate::byte_class::is_printable(value), "{name}: the caller made it");
        let name = name.as_bytes();
        self.fields.append_checked(Name::from_token(name), name, value);
    }

    /// Appends a field with a decimal number. `name` must be a token in lower case.
    pub fn append_number(&mut self, name: &'static str, number: u64) {
        let mut digits = [0; 20];
        self.append_plain(name, write_decimal(number, &mut digits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::{Edits, HeadLimits, Parse, RequestContext, Scan, encode_response, parse_response};
    use crate::http::Framing;

    fn parsed(text: &str) -> Head {
        let (mut head, context) = (Head::new(), RequestContext { head: false, connect: false });
        let found = parse_response(text.as_bytes(), &HeadLimits::default(), &context, &mut Scan::default(), &mut head);
        assert!(matches!(found, Ok(Parse::Complete { .. })), "{found:?}");
        head
    }

    fn sent(head: &Head) -> String {
        let mut out = Vec::new();
        let edits = Edits { framing: head.framing, version: Version::Http11, ..Edits::default() };
        encode_response(head, &edits, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_copy_goes_out_as_what_it_was_copied_from() {
        let rows = [
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\netag: \"a\"\r\n\r\n",
            "HTTP/1.1 404 Nobody Here\r\ntransfer-encoding: chunked\r\nx: y\r\n\r\n",
        ];
        for text in rows {
            let mut copy = parsed("HTTP/1.1 204 Gone Before\r\nconnection: close\r\na: b\r\nc: d\r\n\r\n");
            copy.copy_from(&parsed(text));
            assert_eq!(sent(&copy), text);
            copy.append_number("age", 17);
            assert_eq!(copy.first(b"age"), Some(&b"17"[..]), "{text}");
            assert_eq!(sent(&copy), text.replace("\r\n\r\n", "\r\nage: 17\r\n\r\n"));
        }
    }

    #[test]
    fn what_is_copied_is_no_longer_the_message_of_a_connection() {
        let mut head = parsed("HTTP/1.0 200 Fine\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        head.remove_all(b"connection");
        head.detach();
        assert!(!head.connection.close && head.keeps_alive() && head.version_text() == b"HTTP/1.1");
        assert_eq!(head.framing, Framing::Length(0));
        assert_eq!(sent(&head), "HTTP/1.1 200 Fine\r\ncontent-length: 0\r\n\r\n");
    }
}
