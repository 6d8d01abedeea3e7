//! Fields of blocks: what their names and values may be, and those behind a body (RFC 9113, section 8). Must never know what
//! kind of message they belong to.

use crate::h1;
use crate::http::{Fields, Name};

/// A message that breaks the rules: its stream is reset with PROTOCOL_ERROR (RFC 9113, section 8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Whether a field says something about a connection of HTTP/1, which no message of HTTP/2 does (RFC 9113, section 8.2.2).
pub(super) fn is_of_connection(name: Name) -> bool {
    matches!(name, Name::Connection | Name::KeepAlive | Name::ProxyConnection | Name::TransferEncoding | Name::Upgrade)
}

/// A token in lower case (RFC 9113, section 8.2.1).
pub(super) fn is_name(name: &[u8]) -> bool {
    h1::is_token(name) && !name.iter().any(u8::is_ascii_uppercase)
}

/// No control character but a tab.
pub(super) fn is_value(value: &[u8]) -> bool {
    !value.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f)
}

/// Reads the fields behind a body (RFC 9113, section 8.1): none of them may be a pseudo-header. Those that say what HTTP/1
/// would act on are left out.
///
/// # Errors
/// They are malformed.
pub fn read_trailers(trailers: &mut Fields, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    let value = value.trim_ascii();
    if !is_name(name) || !is_value(value) {
        return Err(Malformed);
    }
    if Name::from_token(name) == Name::Other {
        trailers.append(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_have_no_say() {
        let mut trailers = Fields::new();
        for (name, value) in [("x-sum", "1"), ("content-length", "5"), ("host", "evil"), ("grpc-status", "0")] {
            read_trailers(&mut trailers, name.as_bytes(), value.as_bytes()).unwrap();
        }
        let names: Vec<&[u8]> = trailers.iter().map(|(name, _)| name).collect();
        assert_eq!(names, [&b"x-sum"[..], b"grpc-status"]);
        for (name, value) in [(":path", "/"), ("X", "1"), ("x", "a\nb")] {
            assert_eq!(read_trailers(&mut trailers, name.as_bytes(), value.as_bytes()), Err(Malformed));
        }
    }
}
