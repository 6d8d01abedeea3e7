//! Parsers of HTTP/1 requests, from a strict one to lenient ones that differ in lines, lengths and chunks: how several
//! servers in a chain may interpret the same bytes. A simple, independent implementation: no code is shared with the
//! program under test.

/// The deviations of a parser from RFC 9112.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader {
    pub name: &'static str,
    /// Every irregularity is an error.
    pub strict: bool,
    /// A bare line feed ends a line.
    pub bare_lf: bool,
    /// A bare carriage return ends a line.
    pub bare_cr: bool,
    /// A line that begins with a blank is a field of its own, not a continuation (obs-fold).
    pub no_folding: bool,
    /// Blanks and control characters around a name are ignored.
    pub lax_names: bool,
    /// NUL ends a value.
    pub nul_ends: bool,
    /// Content-Length takes precedence over Transfer-Encoding.
    pub length_first: bool,
    /// The last of several lengths is used, not the first.
    pub last_length: bool,
    /// Only the leading digits of a length are parsed.
    pub lax_numbers: bool,
    /// A coding counts as chunked if it contains that word anywhere.
    pub lax_codings: bool,
    /// HTTP/1.0 messages are never chunked.
    pub no_chunks_in_1_0: bool,
    /// Only the leading digits of a chunk size are parsed, its line may end with a line feed, and the line end after
    /// its data may be missing.
    pub lax_chunks: bool,
}

/// A request found in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSpan {
    /// Its start.
    pub start: usize,
    /// Its end.
    pub end: usize,
    /// Its version is older than HTTP/1.1.
    pub old: bool,
    /// The connection ends after it.
    pub last: bool,
}

/// The bytes after the last complete request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// Nothing.
    Nothing,
    /// An incomplete request, and its start.
    Part(usize),
    /// Bytes that are not a request.
    Junk(String),
}

/// A head.
struct Heading {
    body: usize,
    old: bool,
    fields: Vec<(String, Vec<u8>)>,
}

/// The result of parsing a possibly incomplete element.
enum Extent<T> {
    Whole(T),
    Part,
    Junk(String),
}

use Extent::{Junk, Part, Whole};

/// All parsers; the strict one is first.
pub const READERS: &[Reader] = {
    const PLAIN: Reader = Reader {
        name: "plain",
        strict: false,
        bare_lf: false,
        bare_cr: false,
        no_folding: false,
        lax_names: false,
        nul_ends: false,
        length_first: false,
        last_length: false,
        lax_numbers: false,
        lax_codings: false,
        no_chunks_in_1_0: false,
        lax_chunks: false,
    };
    &[
        Reader { name: "strict", strict: true, ..PLAIN },
        PLAIN,
        Reader { name: "line feeds", bare_lf: true, ..PLAIN },
        Reader { name: "carriage returns", bare_lf: true, bare_cr: true, ..PLAIN },
        Reader { name: "no folding", bare_lf: true, no_folding: true, lax_names: true, ..PLAIN },
        Reader { name: "lax names", lax_names: true, ..PLAIN },
        Reader { name: "C strings", nul_ends: true, lax_numbers: true, lax_codings: true, ..PLAIN },
        Reader { name: "length first", length_first: true, lax_numbers: true, ..PLAIN },
        Reader { name: "last length", length_first: true, last_length: true, lax_numbers: true, ..PLAIN },
        Reader { name: "lax codings", lax_codings: true, lax_names: true, ..PLAIN },
        Reader { name: "old chunks", no_chunks_in_1_0: true, ..PLAIN },
        Reader { name: "lax chunks", lax_chunks: true, ..PLAIN },
        Reader {
            name: "all at once",
            bare_lf: true,
            lax_names: true,
            nul_ends: true,
            last_length: true,
            lax_numbers: true,
            lax_codings: true,
            lax_chunks: true,
            ..PLAIN
        },
    ]
};

impl Reader {
    /// Returns the requests in `bytes`, and the remainder.
    pub fn read(&self, bytes: &[u8]) -> (Vec<RequestSpan>, Remainder) {
        let (mut found, mut at) = (Vec::new(), 0);
        loop {
            if !self.strict {
                at += bytes[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            }
            if at == bytes.len() {
                return (found, Remainder::Nothing);
            }
            if found.last().is_some_and(|found: &RequestSpan| found.last) {
                return (found, Remainder::Junk("the connection was to end".to_owned()));
            }
            let heading = match self.head(bytes, at) {
                Whole(heading) => heading,
                Part => return (found, Remainder::Part(at)),
                Junk(why) => return (found, Remainder::Junk(why)),
            };
            let end = match self.body(bytes, &heading) {
                Whole(end) => end,
                Part => return (found, Remainder::Part(at)),
                Junk(why) => return (found, Remainder::Junk(why)),
            };
            let says = |word: &str| heading.values("connection").any(|value| contains(value, word));
            let last = says("close") || heading.old && !says("keep-alive");
            found.push(RequestSpan { start: at, end, old: heading.old, last });
            at = end;
        }
    }

    /// Returns the line at `at`, without its end, and the start of the next one.
    fn line<'b>(&self, bytes: &'b [u8], at: usize) -> Extent<(&'b [u8], usize)> {
        let mut end = at;
        while let Some(byte) = bytes.get(end) {
            let next = bytes.get(end + 1);
            match (*byte, next) {
                (b'\r', Some(b'\n')) => return Whole((&bytes[at..end], end + 2)),
                (b'\r', Some(_)) if self.bare_cr => return Whole((&bytes[at..end], end + 1)),
                (b'\n', _) if self.bare_lf => return Whole((&bytes[at..end], end + 1)),
                (b'\r', Some(_)) | (b'\n' | 0, _) if self.strict => {
                    return Junk(format!("{} in a line", byte.escape_ascii()));
                }
                _ => end += 1,
            }
        }
        Part
    }

    fn head(&self, bytes: &[u8], at: usize) -> Extent<Heading> {
        let (line, mut next) = match self.line(bytes, at) {
            Whole(line) => line,
            Part => return Part,
            Junk(why) => return Junk(why),
        };
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let version = words.last().copied().unwrap_or_default();
        if self.strict
            && !(words.len() == 3 && is_token(words[0]) && matches!(version, b"HTTP/0.9" | b"HTTP/1.0" | b"HTTP/1.1"))
        {
            return Junk(format!("no request line: {}", line.escape_ascii()));
        }
        let mut heading = Heading { body: 0, old: version != b"HTTP/1.1", fields: Vec::new() };
        loop {
            let (line, behind) = match self.line(bytes, next) {
                Whole(line) => line,
                Part => return Part,
                Junk(why) => return Junk(why),
            };
            next = behind;
            if line.is_empty() {
                heading.body = next;
                return Whole(heading);
            }
            if let Err(why) = self.field(line, &mut heading.fields) {
                return Junk(why);
            }
        }
    }

    fn field(&self, line: &[u8], fields: &mut Vec<(String, Vec<u8>)>) -> Result<(), String> {
        let folded = matches!(line[0], b' ' | b'\t');
        if folded && !self.no_folding && !self.strict {
            if let Some((_, value)) = fields.last_mut() {
                value.extend_from_slice(line);
            }
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        if self.strict && !is_token(name) {
            return Err(format!("no field: {}", line.escape_ascii()));
        }
        let mut name = String::from_utf8_lossy(name).to_ascii_lowercase();
        if self.lax_names {
            name = name.trim_matches(|letter: char| letter <= ' ').to_owned();
        }
        let value = match value.iter().position(|byte| *byte == 0) {
            Some(at) if self.nul_ends => &value[..at],
            _ => value,
        };
        fields.push((name, value.trim_ascii().to_vec()));
        Ok(())
    }

    /// Returns the end of the body.
    fn body(&self, bytes: &[u8], heading: &Heading) -> Extent<usize> {
        let codings: Vec<&[u8]> = heading.values("transfer-encoding").collect();
        let lengths: Vec<&[u8]> = heading.values("content-length").collect();
        if self.strict {
            let one = codings.len() + lengths.len() <= 1;
            let plain = codings.iter().all(|coding| coding.eq_ignore_ascii_case(b"chunked"))
                && lengths.iter().all(|length| !length.is_empty() && length.iter().all(u8::is_ascii_digit));
            if !one || !plain {
                return Junk("an ambiguous length".to_owned());
            }
        }
        let chunked = codings.last().is_some_and(|coding| {
            let word = coding.rsplit(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
            word.eq_ignore_ascii_case(b"chunked") || self.lax_codings && contains(coding, "chunked")
        });
        let prefers_length = self.length_first && !lengths.is_empty();
        let too_old = self.no_chunks_in_1_0 && heading.old;
        if chunked && !prefers_length && !too_old {
            return self.chunks(bytes, heading.body);
        }
        let length = if self.last_length { lengths.last() } else { lengths.first() };
        let Some(length) = length else { return Whole(heading.body) };
        let digits = length.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&length[..digits]).unwrap_or_default();
        match text.parse::<usize>() {
            Ok(number) if digits == length.len() || self.lax_numbers => reach(bytes, heading.body, number),
            Err(_) if self.lax_numbers => Whole(heading.body),
            _ => Junk(format!("no length: {}", length.escape_ascii())),
        }
    }

    fn chunks(&self, bytes: &[u8], mut at: usize) -> Extent<usize> {
        let lines = Reader { bare_lf: self.bare_lf || self.lax_chunks, ..*self };
        loop {
            let (line, data) = match lines.line(bytes, at) {
                Whole(line) => line,
                Part => return Part,
                Junk(why) => return Junk(why),
            };
            let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            let text = std::str::from_utf8(&line[..digits]).unwrap_or_default();
            let ends_well = matches!(line.get(digits), None | Some(b';')) && (digits == line.len() || !self.strict);
            let size = match usize::from_str_radix(text, 16) {
                Ok(size) if ends_well || self.lax_chunks => size,
                _ if self.lax_chunks => 0,
                _ => return Junk(format!("no chunk size: {}", line.escape_ascii())),
            };
            if size == 0 {
                return lines.trailers(bytes, data);
            }
            let end = match reach(bytes, data, size) {
                Whole(end) => end,
                other => return other,
            };
            at = match bytes.get(end..end + 2) {
                Some(b"\r\n") => end + 2,
                None if bytes.get(end..).is_none_or(|rest| rest.is_empty() || rest == b"\r") => return Part,
                Some([b'\n', _]) if self.lax_chunks => end + 1,
                _ if self.lax_chunks => end,
                _ => return Junk("a chunk goes on".to_owned()),
            };
        }
    }

    fn trailers(&self, bytes: &[u8], mut at: usize) -> Extent<usize> {
        loop {
            match self.line(bytes, at) {
                Whole((b"", next)) => return Whole(next),
                Whole((_, next)) => at = next,
                Part => return Part,
                Junk(why) => return Junk(why),
            }
        }
    }
}

impl Heading {
    fn values(&self, wanted: &str) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().filter(move |(name, _)| name == wanted).map(|(_, value)| value.as_slice())
    }
}

/// Returns the end of an element of `length` bytes.
fn reach(bytes: &[u8], from: usize, length: usize) -> Extent<usize> {
    match from.checked_add(length) {
        Some(end) if end <= bytes.len() => Whole(end),
        _ => Part,
    }
}

fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

fn contains(value: &[u8], word: &str) -> bool {
    String::from_utf8_lossy(value).to_ascii_lowercase().contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(name: &str, bytes: &[u8]) -> (Vec<usize>, Remainder) {
        let reader = READERS.iter().find(|reader| reader.name == name).unwrap();
        let (found, rest) = reader.read(bytes);
        (found.iter().map(|found| found.end).collect(), rest)
    }

    #[test]
    fn all_of_them_agree_on_what_is_plain() {
        let bytes = b"GET / HTTP/1.1\r\nhost: a\r\n\r\nPOST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nab\
            PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nx: y\r\n\r\nGET / HT";
        for reader in READERS {
            let (found, rest) = reader.read(bytes);
            assert_eq!((found.len(), rest), (3, Remainder::Part(bytes.len() - 8)), "{}", reader.name);
        }
    }

    #[test]
    fn each_of_them_differs_where_something_is_odd() {
        let rows: &[(&str, &[u8])] = &[
            ("line feeds", b"GET / HTTP/1.1\na: b\n\nx"),
            ("carriage returns", b"GET / HTTP/1.1\r\na: b\rcontent-length: 3\r\n\r\nabc"),
            ("no folding", b"GET / HTTP/1.1\r\na: b\r\n content-length: 3\r\n\r\nabc"),
            ("lax names", b"GET / HTTP/1.1\r\ncontent-length : 3\r\n\r\nabc"),
            ("C strings", b"GET / HTTP/1.1\r\ncontent-length: 3\0\r\n\r\nabc"),
            ("length first", b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n"),
            ("last length", b"GET / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 3\r\n\r\nabcde"),
            ("lax codings", b"GET / HTTP/1.1\r\ntransfer-encoding: xchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            ("old chunks", b"GET / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            ("lax chunks", b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3 x\nabc0\r\n\r\n"),
        ];
        for (name, bytes) in rows {
            assert_ne!(ends(name, bytes), ends("plain", bytes), "{name}");
        }
        assert!(
            rows[..8]
                .iter()
                .all(|(_, bytes)| matches!(ends("strict", bytes).1, Remainder::Junk(_) | Remainder::Part(_)))
        );
    }
}
