//! `option checkcache`: whether a cache between Weir and the client could store a response with its cookie, by the list in the
//! configuration manual (section 4.2). Must never change a message.

use wire::http::{Head, Method};

/// Statuses of responses that caches store by default.
const STORED: &[u16] = &[200, 203, 204, 206, 300, 301, 404, 405, 410, 414, 501];

/// Whether the cookie in a response could be stored.
pub fn exposes_cookie(request: &Head, response: &Head) -> bool {
    if !response.contains(b"set-cookie") {
        return false;
    }
    let directives = || response.all(b"cache-control").flat_map(directives);
    if directives().any(forbids) || response.all(b"pragma").flat_map(self::directives).any(|one| is(one, b"no-cache")) {
        return false;
    }
    let method = request.known_method();
    let asked = matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace);
    (asked && STORED.contains(&response.status())) || directives().any(|one| is(one, b"public"))
}

/// Whether a directive prevents caches from storing the cookie.
fn forbids(directive: &[u8]) -> bool {
    const ALONE: &[&[u8]] = &[b"private", b"no-store", b"no-cache", b"max-age=0", b"s-maxage=0"];
    const NAMED: &[u8] = b"no-cache=\"set-cookie";
    let named = directive.get(..NAMED.len()).is_some_and(|found| is(found, NAMED));
    ALONE.iter().any(|one| is(directive, one)) || (named && matches!(directive.get(NAMED.len()), Some(b'"' | b',')))
}

fn is(found: &[u8], wanted: &[u8]) -> bool {
    found.eq_ignore_ascii_case(wanted)
}

/// Returns the elements of a field, trimmed and split at commas outside of quotes.
fn directives(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let divides = move |byte: &u8| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    };
    value.split(divides).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::exposes_cookie;
    use wire::h1::{HeadLimits, RequestContext, Scan, parse_request, parse_response};
    use wire::http::Head;

    fn exposed(method: &str, status: u16, fields: &str) -> bool {
        let (mut request, mut response) = (Head::new(), Head::new());
        let text = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        let _ = parse_request(text.as_bytes(), &HeadLimits::default(), &mut Scan::default(), &mut request).unwrap();
        let text = format!("HTTP/1.1 {status} x\r\n{fields}\r\n\r\n");
        let (limits, context) = (HeadLimits::default(), RequestContext::default());
        let _ = parse_response(text.as_bytes(), &limits, &context, &mut Scan::default(), &mut response).unwrap();
        exposes_cookie(&request, &response)
    }

    #[test]
    fn only_what_a_cache_would_store_is_exposed() {
        let cookie = "Set-Cookie: a=b\r\n";
        for (method, status, fields, wanted) in [
            ("GET", 200, "X: y", false),
            ("GET", 200, "Set-Cookie: a=b", true),
            ("HEAD", 404, "Set-Cookie: a=b", true),
            ("GET", 302, "Set-Cookie: a=b", false),
            ("POST", 200, "Set-Cookie: a=b", false),
            ("POST", 200, "Set-Cookie: a=b\r\nCache-Control: public", true),
            ("GET", 302, "Set-Cookie: a=b\r\nCache-Control: max-age=5, PUBLIC", true),
        ] {
            assert_eq!(exposed(method, status, fields), wanted, "{method} {status} {fields}");
        }
        for (field, wanted) in [
            ("Pragma: no-cache", false),
            ("Pragma: x", true),
            ("Cache-Control: private", false),
            ("Cache-Control: public, no-store", false),
            ("Cache-Control: max-age=0", false),
            ("Cache-Control: max-age=60", true),
            ("Cache-Control: s-maxage=0", false),
            ("Cache-Control: No-Cache", false),
            ("Cache-Control: no-cache=\"set-cookie\"", false),
            ("Cache-Control: x, no-cache=\"Set-Cookie, other\"", false),
            ("Cache-Control: no-cache=\"other, private\"", true),
            ("Cache-Control: no-cache=\"set-cookie2\"", true),
        ] {
            assert_eq!(exposed("GET", 200, &format!("{cookie}{field}")), wanted, "{field}");
        }
    }
}
