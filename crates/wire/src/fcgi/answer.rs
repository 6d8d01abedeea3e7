//! The head of a CGI/1.1 response (RFC 3875, section 6): the field `Status` sets the status; without it, `Location`
//! causes a redirect. Must never read a body.

use crate::http::{Framing, Head, Method, reason};

/// Status line put before a CGI head, so that it is parsed as strictly as one of HTTP/1.1.
pub const PREFIX: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// Applies the CGI fields of a head. The response to a `method` request has a body that ends with the output, unless
/// its length is known. Returns false if the head is not a valid response.
pub fn apply_cgi_fields(head: &mut Head, method: Method) -> bool {
    // A script that frames its output itself would indicate the end in two ways.
    if head.framing == Framing::Chunked || head.upgrade {
        return false;
    }
    // The last `Status` wins.
    let written = head.all(b"status").last().map(parse);
    match written {
        Some(None) => return false,
        Some(Some((code, phrase))) => {
            let phrase = phrase.unwrap_or_else(|| reason(code).as_bytes()).to_vec();
            head.remove_all(b"status");
            head.set_status(code, &phrase);
        }
        None if head.contains(b"location") => head.set_status(302, reason(302).as_bytes()),
        // Keeps the status of `PREFIX`.
        None => {}
    }
    let code = head.status();
    if method == Method::Head || matches!(code, 204 | 304) {
        head.framing = Framing::None;
    } else if head.framing == Framing::UntilClose {
        // The end of the payload is signalled by the protocol.
        head.framing = Framing::Chunked;
    }
    true
}

/// Parses a final status code and the optional reason phrase after it.
fn parse(value: &[u8]) -> Option<(u16, Option<&[u8]>)> {
    let (digits, rest) = value.split_first_chunk::<3>()?;
    let code = std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_digit))?.parse().ok()?;
    if code < 200 || rest.first().is_some_and(|byte| *byte != b' ') {
        return None;
    }
    Some((code, Some(rest.trim_ascii()).filter(|phrase| !phrase.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::{HeadLimits, Parse, RequestContext, Scan, parse_response};

    fn read(fields: &str, method: Method) -> Option<String> {
        let text = [PREFIX, fields.as_bytes()].concat();
        let context = RequestContext { head: method == Method::Head, connect: false };
        let mut head = Head::new();
        let parsed = parse_response(&text, &HeadLimits::default(), &context, &mut Scan::default(), &mut head);
        assert!(matches!(parsed, Ok(Parse::Complete { .. })) || fields.contains("broken"), "{fields:?}");
        if parsed.is_err() || !apply_cgi_fields(&mut head, method) {
            return None;
        }
        let names: Vec<String> = head.fields().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
        let reason = String::from_utf8_lossy(head.reason()).into_owned();
        Some(format!("{} {reason} {:?} {}", head.status(), head.framing, names.join(",")))
    }

    #[test]
    fn fields_make_the_status_line() {
        let rows: &[(&str, &str)] = &[
            ("\r\n", "200 OK Chunked "),
            ("Content-Type: a\r\n\r\n", "200 OK Chunked content-type"),
            ("Content-Type: a\n\n", "200 OK Chunked content-type"),
            ("Status: 404\r\nX: y\r\n\r\n", "404 Not Found Chunked x"),
            ("Status: 404 Nope\r\n\r\n", "404 Nope Chunked "),
            ("Status: 299 \r\n\r\n", "299 Success Chunked "),
            ("status: 404\r\nStatus: 205\r\n\r\n", "205 Reset Content Chunked "),
            ("Location: /a\r\n\r\n", "302 Found Chunked location"),
            ("Location: /a\r\nStatus: 201\r\n\r\n", "201 Created Chunked location"),
            ("Content-Length: 4\r\n\r\n", "200 OK Length(4) content-length"),
            ("Status: 204\r\n\r\n", "204 No Content None "),
            ("Status: 304\r\n\r\n", "304 Not Modified None "),
            ("Connection: close\r\nX: y\r\n\r\n", "200 OK Chunked x"),
        ];
        for (fields, expected) in rows {
            assert_eq!(read(fields, Method::Get).as_deref(), Some(*expected), "{fields:?}");
        }
        assert_eq!(read("Content-Length: 4\r\n\r\n", Method::Head).as_deref(), Some("200 OK None content-length"));
    }

    #[test]
    fn what_is_no_answer() {
        for status in ["100", "101 x", "199", "1000", "20", "", "abc", "2oo", "404x"] {
            assert_eq!(read(&format!("Status: {status}\r\n\r\n"), Method::Get), None, "{status}");
        }
        for fields in ["Transfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 201 broken\r\n\r\n", "broken\r\n\r\n"] {
            assert_eq!(read(fields, Method::Get), None, "{fields:?}");
        }
    }
}
