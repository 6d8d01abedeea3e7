//! Texts of answers that need no parsing: those whose heads are already in the form in which they are sent. It is for
//! texts that the proxy has put together itself, so it knows what is in them and no more. Must never take for canonical
//! what would come out otherwise if it were parsed and written anew.

/// Where the head of an answer ends whose lines are already what they would become if they were parsed and written anew;
/// `None`: that is not certain.
pub fn canonical_head(answer: &[u8]) -> Option<usize> {
    /// Fields that it looks at.
    const MOST: usize = 32;
    let line = |from: usize| {
        let end = from + memchr::memchr(b'\r', answer.get(from..)?)?;
        (answer.get(end + 1) == Some(&b'\n')).then_some((&answer[from..end], end + 2))
    };
    let (start, mut at) = line(0)?;
    let (status, reason) = start.strip_prefix(b"HTTP/1.1 ")?.split_at_checked(4)?;
    // Those that have no body are framed in another way.
    let usual =
        matches!(status, [b'2'..=b'5', b'0'..=b'9', b'0'..=b'9', b' ']) && status != b"204 " && status != b"304 ";
    if !usual || !is_canonical_value(reason) {
        return None;
    }
    let mut framed = false;
    for _ in 0..MOST {
        let (field, next) = line(at)?;
        at = next;
        if field.is_empty() {
            return framed.then_some(at);
        }
        let colon = memchr::memchr(b':', field)?;
        let (name, value) = (&field[..colon], field[colon + 1..].strip_prefix(b" ")?);
        if !is_canonical_value(value) {
            return None;
        }
        match name {
            b"content-length" => {
                let digits = value.len() < 10 && value.iter().all(u8::is_ascii_digit);
                if framed || !digits || value.len() > 1 && value.starts_with(b"0") {
                    return None;
                }
                framed = true;
            }
            b"location"
            | b"cache-control"
            | b"content-type"
            | b"set-cookie"
            | b"www-authenticate"
            | b"proxy-authenticate"
            | b"retry-after" => {}
            _ => return None,
        }
    }
    None
}

/// Whether a value stays as it is when its field is parsed and written: visible characters of ASCII and spaces within.
pub fn is_canonical_value(value: &[u8]) -> bool {
    // No way out of the loop: so it looks at many at once.
    !value.is_empty()
        && value.iter().fold(true, |visible, byte| visible & matches!(byte, b' '..=b'~'))
        && !value.starts_with(b" ")
        && !value.ends_with(b" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_certain_is_not_canonical() {
        for head in [
            "HTTP/1.1 302 Found\r\nlocation: /",
            "HTTP/1.0 302 Found\r\ncontent-length: 0",
            "HTTP/1.1 204 None\r\ncontent-length: 0",
            "HTTP/1.1 304 Same\r\ncontent-length: 0",
            "HTTP/1.1 101 Go\r\ncontent-length: 0",
            "HTTP/1.1 302 \r\ncontent-length: 0",
            "HTTP/1.1 302\r\ncontent-length: 0",
            "HTTP/1.1 302  Found\r\ncontent-length: 0",
            "HTTP/1.1 302 Found\r\nContent-Length: 0",
            "HTTP/1.1 302 Found\r\ncontent-length: 00",
            "HTTP/1.1 302 Found\r\ncontent-length: 1x",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\ncontent-length: 0",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: ",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation:/",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /a ",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: \t/",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /\u{7f}",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /\u{e9}",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /\rx: y",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /\nx: y",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nconnection: keep-alive",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\ntransfer-encoding: chunked",
            "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nx-own: 1",
        ] {
            let answer = format!("{head}\r\n\r\n");
            assert_eq!(canonical_head(answer.as_bytes()), None, "{head}");
            assert_eq!(canonical_head(head.as_bytes()), None, "{head}");
        }
        assert_eq!(canonical_head(b""), None);
    }
}
