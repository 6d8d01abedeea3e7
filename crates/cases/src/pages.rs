//! HAProxy's own error pages, byte for byte. It must never be used for a page that a case configures itself.

/// The author of the page, which determines the position of the `connection` line, or whether there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The HTTP/1 parser, before there is a request: `connection: close` precedes the content type.
    Reader,
    /// The stream, with the client's connection kept open: no `connection` line.
    Stream,
    /// The stream, with the connection closed: `connection: close` is last.
    StreamClosing,
}

/// (status, reason, sentence)
const PAGES: &[(u16, &str, &str)] = &[
    (200, "OK", "Service ready."),
    (400, "Bad request", "Your browser sent an invalid request."),
    (403, "Forbidden", "Request forbidden by administrative rules."),
    (408, "Request Time-out", "Your browser didn't send a complete request in time."),
    (413, "Payload Too Large", "The request entity exceeds the maximum allowed."),
    (414, "URI Too Long", "The URI provided was too long for the server to process."),
    (431, "Request Header Fields Too Large", "Request Header Fields Too Large."),
    (500, "Internal Server Error", "An internal server error occurred."),
    (501, "Not Implemented", "The server does not support the functionality required to fulfill the request."),
    (502, "Bad Gateway", "The server returned an invalid or incomplete response."),
    (503, "Service Unavailable", "No server is available to handle this request."),
    (504, "Gateway Time-out", "The server didn't respond in time."),
];

/// Returns the whole page, head and body. Before 3.0 the parser capitalized its field names.
pub(crate) fn page(status: u16, author: Author, capitals: bool) -> Option<Vec<u8>> {
    let (_, reason, sentence) = PAGES.iter().find(|(known, ..)| *known == status)?;
    let body = format!("<html><body><h1>{status} {reason}</h1>\n{sentence}\n</body></html>\n");
    let (early, late) = match author {
        Author::Reader => ("connection: close\r\n", ""),
        Author::Stream => ("", ""),
        Author::StreamClosing => ("", "connection: close\r\n"),
    };
    let length = body.len();
    if capitals && author == Author::Reader {
        let fields = "Cache-Control: no-cache\r\nConnection: close\r\nContent-Type: text/html";
        return Some(
            format!("HTTP/1.1 {status} {reason}\r\nContent-length: {length}\r\n{fields}\r\n\r\n{body}").into_bytes(),
        );
    }
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-length: {length}\r\ncache-control: no-cache\r\n{early}content-type: text/html\r\n{late}\r\n"
    );
    Some((head + &body).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_as_observed() {
        for (status, length) in [(400, 90), (408, 110), (414, 110), (431, 105), (502, 107), (503, 107)] {
            let page = String::from_utf8(page(status, Author::Reader, false).unwrap()).unwrap();
            assert!(page.contains(&format!("content-length: {length}\r\n")), "{page}");
        }
    }
}
