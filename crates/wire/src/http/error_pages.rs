//! The built-in error responses, byte for byte those of HAProxy 3.5. Must never choose the page for an error, nor apply
//! a configuration's replacements.

/// A built-in page for one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorPage {
    pub status: u16,
    pub reason: &'static str,
    /// The sentence in the page's body.
    pub sentence: &'static str,
    /// HAProxy's message has `connection: close` before its last field. As a response within a session the page gets
    /// its Connection field at the end, like any other response.
    pub closes: bool,
}

impl ErrorPage {
    /// Returns the body.
    pub fn body(&self) -> Vec<u8> {
        let ErrorPage { status, reason, sentence, .. } = self;
        format!("<html><body><h1>{status} {reason}</h1>\n{sentence}\n</body></html>\n").into_bytes()
    }

    /// Returns head and body, as sent in response to bytes that are not a valid request. Only the pages with `closes`
    /// have a Connection field.
    pub fn message(&self) -> Vec<u8> {
        let ErrorPage { status, reason, .. } = self;
        let body = self.body();
        let length = body.len();
        let close = if self.closes { "connection: close\r\n" } else { "" };
        let mut message = format!(
            "HTTP/1.1 {status} {reason}\r\ncontent-length: {length}\r\ncache-control: no-cache\r\n{close}content-type: text/html\r\n\r\n"
        )
        .into_bytes();
        message.extend_from_slice(&body);
        message
    }
}

/// Returns the page for a status, or `None` if HAProxy has none.
pub fn page(status: u16) -> Option<&'static ErrorPage> {
    PAGES.binary_search_by_key(&status, |page| page.status).ok().map(|at| &PAGES[at])
}

/// All pages, by status.
pub const PAGES: &[ErrorPage] = &[
    page_of(200, "OK", "Service ready."),
    closing(page_of(400, "Bad request", "Your browser sent an invalid request.")),
    page_of(401, "Unauthorized", "You need a valid user and password to access this content."),
    page_of(403, "Forbidden", "Request forbidden by administrative rules."),
    page_of(404, "Not Found", "The resource could not be found."),
    page_of(
        405,
        "Method Not Allowed",
        "A request was made of a resource using a request method not supported by that resource.",
    ),
    page_of(407, "Unauthorized", "You need a valid user and password to access this content."),
    closing(page_of(408, "Request Time-out", "Your browser didn't send a complete request in time.")),
    page_of(410, "Gone", "The resource is no longer available and will not be available again."),
    page_of(413, "Payload Too Large", "The request entity exceeds the maximum allowed."),
    page_of(414, "URI Too Long", "The URI provided was too long for the server to process."),
    page_of(421, "Misdirected Request", "Request sent to a non-authoritative server."),
    page_of(422, "Unprocessable Content", "The server cannot process the contained instructions."),
    page_of(425, "Too Early", "Your browser sent early data."),
    page_of(429, "Too Many Requests", "You have sent too many requests in a given amount of time."),
    page_of(431, "Request Header Fields Too Large", "Request Header Fields Too Large."),
    page_of(500, "Internal Server Error", "An internal server error occurred."),
    page_of(501, "Not Implemented", "The server does not support the functionality required to fulfill the request."),
    page_of(502, "Bad Gateway", "The server returned an invalid or incomplete response."),
    page_of(503, "Service Unavailable", "No server is available to handle this request."),
    page_of(504, "Gateway Time-out", "The server didn't respond in time."),
];

const fn page_of(status: u16, reason: &'static str, sentence: &'static str) -> ErrorPage {
    ErrorPage { status, reason, sentence, closes: false }
}

const fn closing(page: ErrorPage) -> ErrorPage {
    ErrorPage { closes: true, ..page }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_sorted() {
        assert!(PAGES.windows(2).all(|pair| pair[0].status < pair[1].status));
        assert!(page(302).is_none());
    }

    #[test]
    fn messages_as_measured() {
        let text = |status| String::from_utf8(page(status).unwrap().message()).unwrap();
        assert_eq!(
            text(400),
            "HTTP/1.1 400 Bad request\r\ncontent-length: 90\r\ncache-control: no-cache\r\nconnection: close\r\n\
             content-type: text/html\r\n\r\n<html><body><h1>400 Bad request</h1>\nYour browser sent an invalid \
             request.\n</body></html>\n"
        );
        assert_eq!(
            text(503),
            "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 107\r\ncache-control: no-cache\r\n\
             content-type: text/html\r\n\r\n<html><body><h1>503 Service Unavailable</h1>\nNo server is available to \
             handle this request.\n</body></html>\n"
        );
    }

    /// The content-length of each page as HAProxy 3.5 sent it.
    #[test]
    fn every_page_has_the_measured_length() {
        let lengths = [
            (200, 58),
            (400, 90),
            (401, 112),
            (403, 93),
            (404, 83),
            (405, 147),
            (407, 112),
            (408, 110),
            (410, 114),
            (413, 106),
            (414, 110),
            (421, 104),
            (422, 116),
            (425, 80),
            (429, 117),
            (431, 105),
            (500, 97),
            (501, 135),
            (502, 107),
            (503, 107),
            (504, 92),
        ];
        assert_eq!(PAGES.len(), lengths.len());
        for (status, length) in lengths {
            assert_eq!(page(status).unwrap().body().len(), length, "{status}");
        }
    }
}
