//! A simple, independent implementation of chunked coding: no code is shared with the program under test.

/// Encodes a body in chunks of the given sizes, the last one as large as needed, with trailers.
pub fn encode_chunks(body: &[u8], sizes: &mut impl FnMut() -> usize, trailers: &[(String, String)]) -> Vec<u8> {
    let (mut coded, mut rest) = (Vec::with_capacity(body.len() + 64), body);
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(sizes().clamp(1, rest.len()));
        rest = behind;
        coded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        coded.extend_from_slice(chunk);
        coded.extend_from_slice(b"\r\n");
    }
    coded.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        coded.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    coded.extend_from_slice(b"\r\n");
    coded
}

/// A chunked body being received.
#[derive(Debug, Default)]
pub struct Chunked {
    /// The body decoded so far.
    pub body: Vec<u8>,
    /// The trailers, set at the end.
    pub trailers: Vec<(String, String)>,
}

/// Decodes as much as possible from the front of `coded` and removes it. True: the body is complete.
///
/// # Panics
/// If the data is not chunked.
pub fn decode_chunks(coded: &mut Vec<u8>, into: &mut Chunked) -> bool {
    let mut used = 0;
    let ended = loop {
        let rest = &coded[used..];
        let Some(line) = line_of(rest) else { break false };
        let size = usize::from_str_radix(line, 16).unwrap_or_else(|_| panic!("no chunk size: {line:?}"));
        let begin = line.len() + 2;
        if size == 0 {
            match trailers(&rest[begin..]) {
                Some((found, length)) => {
                    into.trailers = found;
                    used += begin + length;
                    break true;
                }
                None => break false,
            }
        }
        let Some(chunk) = rest.get(begin..begin + size + 2) else { break false };
        assert!(chunk.ends_with(b"\r\n"), "a chunk ends with a line end");
        into.body.extend_from_slice(&chunk[..size]);
        used += begin + size + 2;
    };
    coded.drain(..used);
    ended
}

fn line_of(bytes: &[u8]) -> Option<&str> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some(std::str::from_utf8(&bytes[..end]).unwrap_or("<not text>"))
}

type Trailers = Vec<(String, String)>;

fn trailers(bytes: &[u8]) -> Option<(Trailers, usize)> {
    let (mut found, mut used) = (Vec::new(), 0);
    loop {
        let line = line_of(&bytes[used..])?;
        used += line.len() + 2;
        if line.is_empty() {
            return Some((found, used));
        }
        let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("no trailer: {line:?}"));
        found.push((name.to_owned(), value.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_however_it_comes() {
        let trailers = vec![("x-a".to_owned(), "1".to_owned()), ("x-b".to_owned(), "2 3".to_owned())];
        let coded = encode_chunks(b"hello, world", &mut || 5, &trailers);
        assert_eq!(coded, b"5\r\nhello\r\n5\r\n, wor\r\n2\r\nld\r\n0\r\nx-a: 1\r\nx-b: 2 3\r\n\r\n");
        let (mut there, mut decoded) = (Vec::new(), Chunked::default());
        let ends: Vec<bool> = coded
            .iter()
            .map(|byte| {
                there.push(*byte);
                decode_chunks(&mut there, &mut decoded)
            })
            .collect();
        assert_eq!(ends.iter().position(|end| *end), Some(coded.len() - 1));
        assert_eq!((decoded.body.as_slice(), &decoded.trailers), (&b"hello, world"[..], &trailers));
        assert_eq!(encode_chunks(b"", &mut || 5, &[]), b"0\r\n\r\n");
    }
}
