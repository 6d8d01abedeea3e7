//! WebSocket handshakes between versions of HTTP (RFC 6455, section 4.2.2; RFC 8441, section 5): HTTP/1 requires a key and its
//! hash, HTTP/2 does not. Must never touch the data of the tunnel.

use base::base64;
use sha1::{Digest, Sha1};
use wire::http::Head;

/// Suffix of the key before hashing (RFC 6455, section 1.3).
const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Handshake fields.
const KEY: &[u8] = b"sec-websocket-key";
const ACCEPT: &[u8] = b"sec-websocket-accept";

/// Whether a request is a WebSocket handshake.
pub fn is_asked(request: &Head) -> bool {
    let names_it = |value: &[u8]| {
        value.split(|byte| *byte == b',').any(|name| name.trim_ascii().eq_ignore_ascii_case(b"websocket"))
    };
    request.upgrade && request.all(b"upgrade").any(names_it)
}

/// Adds the key that HTTP/1 servers require to a request of HTTP/2.
pub fn add_key(request: &mut Head) {
    if is_asked(request) && !request.contains(KEY) {
        let bytes = [rt::random(), rt::random()].map(u64::to_be_bytes).concat();
        request.append(KEY, base64::encoded(&bytes).as_bytes());
    }
}

/// Returns the value of Sec-WebSocket-Accept for a key.
fn accept(key: &[u8]) -> String {
    base64::encoded(&Sha1::new().chain_update(key).chain_update(SUFFIX).finalize())
}

/// Whether the response of an HTTP/1 server accepts the handshake. For clients of HTTP/1 the value is passed through, because the
/// client checks it.
pub fn is_accepted(request: &Head, answer: &Head, client_judges: bool) -> bool {
    if !is_asked(request) {
        return true;
    }
    match (answer.first(ACCEPT), request.first(KEY)) {
        (Some(_), _) if client_judges => true,
        (Some(said), Some(key)) => said == accept(key).as_bytes(),
        _ => false,
    }
}

/// Converts an accepting response of HTTP/2 to one of HTTP/1.
pub fn complete(request: &Head, answer: &mut Head) {
    let protocol = request.first(b"upgrade").unwrap_or_default();
    answer.switch_protocols(protocol);
    if is_asked(request)
        && let Some(key) = request.first(KEY)
    {
        answer.replace(ACCEPT, accept(key).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(key: Option<&[u8]>) -> Head {
        let mut head = Head::new();
        head.upgrade = true;
        head.append(b"upgrade", b"x, WebSocket");
        if let Some(key) = key {
            head.append(KEY, key);
        }
        head
    }

    /// The key of RFC 6455, section 1.3.
    const SAMPLE: &[u8] = b"dGhlIHNhbXBsZSBub25jZQ==";

    #[test]
    fn keys_and_their_answers_belong_together() {
        let mut answer = Head::new();
        assert!(!is_accepted(&request(Some(SAMPLE)), &answer, true), "there is no answer to the key");
        answer.append(ACCEPT, b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(is_accepted(&request(Some(SAMPLE)), &answer, false));
        assert!(is_accepted(&request(Some(b"other")), &answer, true), "the client finds that out");
        assert!(!is_accepted(&request(Some(b"other")), &answer, false));
        let mut other = request(None);
        other.replace(b"upgrade", b"x");
        assert!(is_accepted(&other, &Head::new(), false), "no websocket");
    }

    #[test]
    fn an_accepted_stream_is_an_accepted_upgrade() {
        let mut answer = Head::new();
        complete(&request(Some(SAMPLE)), &mut answer);
        assert_eq!((answer.status(), answer.upgrade), (101, true));
        assert_eq!(answer.first(ACCEPT), Some(&b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="[..]));
    }
}
