//! Reason phrases of HAProxy 3.5, used for responses that have none. Must never decide on a status.

/// Returns the reason phrase of a status; unregistered ones have that of their class.
pub fn reason(status: u16) -> &'static str {
    match KNOWN.binary_search_by_key(&status, |known| known.0) {
        Ok(at) => KNOWN[at].1,
        Err(_) => match status / 100 {
            1 => "Informational",
            2 => "Success",
            3 => "Redirection",
            4 => "Client Error",
            5 => "Server Error",
            _ => "Other",
        },
    }
}

const KNOWN: &[(u16, &str)] = &[
    (100, "Continue"),
    (101, "Switching Protocols"),
    (102, "Processing"),
    (200, "OK"),
    (201, "Created"),
    (202, "Accepted"),
    (203, "Non-Authoritative Information"),
    (204, "No Content"),
    (205, "Reset Content"),
    (206, "Partial Content"),
    (207, "Multi-Status"),
    (210, "Content Different"),
    (226, "IM Used"),
    (300, "Multiple Choices"),
    (301, "Moved Permanently"),
    (302, "Found"),
    (303, "See Other"),
    (304, "Not Modified"),
    (305, "Use Proxy"),
    (307, "Temporary Redirect"),
    (308, "Permanent Redirect"),
    (310, "Too many Redirects"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (402, "Payment Required"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (406, "Not Acceptable"),
    (407, "Proxy Authentication Required"),
    (408, "Request Time-out"),
    (409, "Conflict"),
    (410, "Gone"),
    (411, "Length Required"),
    (412, "Precondition Failed"),
    (413, "Request Entity Too Large"),
    (414, "Request-URI Too Long"),
    (415, "Unsupported Media Type"),
    (416, "Requested range unsatisfiable"),
    (417, "Expectation failed"),
    (418, "I'm a teapot"),
    (421, "Misdirected Request"),
    (422, "Unprocessable Content"),
    (423, "Locked"),
    (424, "Method failure"),
    (425, "Too Early"),
    (426, "Upgrade Required"),
    (428, "Precondition Required"),
    (429, "Too Many Requests"),
    (431, "Request Header Fields Too Large"),
    (449, "Retry With"),
    (450, "Blocked by Windows Parental Controls"),
    (451, "Unavailable For Legal Reasons"),
    (456, "Unrecoverable Error"),
    (499, "client has closed connection"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (502, "Bad Gateway or Proxy Error"),
    (503, "Service Unavailable"),
    (504, "Gateway Time-out"),
    (505, "HTTP Version not supported"),
    (506, "Variant also negotiate"),
    (507, "Insufficient storage"),
    (508, "Loop detected"),
    (509, "Bandwidth Limit Exceeded"),
    (510, "Not extended"),
    (511, "Network authentication required"),
    (520, "Web server is returning an unknown error"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(KNOWN.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn known_and_unknown() {
        let cases = [(200, "OK"), (208, "Success"), (103, "Informational"), (599, "Server Error"), (0, "Other")];
        for (status, text) in cases {
            assert_eq!(reason(status), text);
        }
    }
}
