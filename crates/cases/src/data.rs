//! Bytes in the notation of cases: `"text with \r\n"`, `| line`, `20000 * "a"`, `page 503`. It must never open
//! anything.

use crate::failure::{Failure, Result};
use crate::lines::Node;
use crate::pages::{self, Author};

/// A sequence of bytes, some of which are known only at run time (`${s1.port}`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Data(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Bytes { bytes: Vec<u8>, times: usize },
    Page { status: u16, author: Author },
}

impl Data {
    /// Parses the data after a command (`send "x"`) and in the lines below it.
    pub(crate) fn parse(inline: &str, children: &[Node]) -> Result<Self> {
        let mut data = Self::default();
        if !inline.is_empty() {
            data.0.push(piece(inline)?);
        }
        for child in children {
            data.0.push(piece(&child.text).map_err(|failure| failure.at(format_args!("line {}", child.number)))?);
        }
        Ok(data)
    }

    /// Returns the bytes, with every `${name}` replaced.
    pub(crate) fn render(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Bytes { bytes: one, times } => bytes.extend(expand(one, lookup)?.repeat(*times)),
                Piece::Page { status, author } => {
                    let capitals = lookup("subject").is_some_and(|subject| subject == "haproxy-2.6");
                    bytes.extend(pages::page(*status, *author, capitals).unwrap_or_default());
                }
            }
        }
        Ok(bytes)
    }
}

/// Replaces every `${name}`.
pub(crate) fn expand(bytes: &[u8], lookup: &dyn Fn(&str) -> Option<String>) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(start) = find(rest, b"${") {
        let Some(length) = find(&rest[start..], b"}") else { break };
        let name = String::from_utf8_lossy(&rest[start + 2..start + length]).into_owned();
        let value = lookup(&name).ok_or_else(|| Failure::new(format!("nothing is called ${{{name}}}")))?;
        out.extend_from_slice(&rest[..start]);
        out.extend_from_slice(value.as_bytes());
        rest = &rest[start + length + 1..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

/// Returns the index of `needle`.
pub(crate) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

fn piece(text: &str) -> Result<Piece> {
    if let Some(line) = text.strip_prefix('|') {
        let mut bytes = unescape(line.strip_prefix(' ').unwrap_or(line))?;
        bytes.extend_from_slice(b"\r\n");
        return Ok(Piece::Bytes { bytes, times: 1 });
    }
    if let Some(rest) = text.strip_prefix("page ") {
        return named_page(rest);
    }
    if let Some((Ok(times), rest)) = text.split_once(" * ").map(|(times, rest)| (times.parse(), rest)) {
        return Ok(Piece::Bytes { bytes: quoted(rest)?, times });
    }
    Ok(Piece::Bytes { bytes: quoted(text)?, times: 1 })
}

fn quoted(text: &str) -> Result<Vec<u8>> {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    unescape(quoted.ok_or_else(|| Failure::new(format!("neither \"text\" nor | line: {text}")))?)
}

fn named_page(words: &str) -> Result<Piece> {
    let (status, author) = words.split_once(' ').unwrap_or((words, "stream"));
    let author = match author {
        "reader" => Author::Reader,
        "stream" => Author::Stream,
        "closing" => Author::StreamClosing,
        other => return Err(Failure::new(format!("a page is of reader, stream or closing, not of {other}"))),
    };
    let known = status.parse().ok().filter(|status| pages::page(*status, author, false).is_some());
    Ok(Piece::Page { status: known.ok_or_else(|| Failure::new(format!("no page {status}")))?, author })
}

/// Decodes the escapes `\r \n \t \0 \\ \" \xHH`.
fn unescape(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let bad = || Failure::new(format!("unknown escape in {text}"));
        let [kind, tail @ ..] = rest else { return Err(bad()) };
        rest = tail;
        out.push(match kind {
            b'r' => b'\r',
            b'n' => b'\n',
            b't' => b'\t',
            b'0' => 0,
            b'\\' | b'"' => *kind,
            b'x' => {
                let (digits, tail) = rest.split_at_checked(2).ok_or_else(bad)?;
                rest = tail;
                let digits = std::str::from_utf8(digits).map_err(|_| bad())?;
                u8::from_str_radix(digits, 16).map_err(|_| bad())?
            }
            _ => return Err(bad()),
        });
    }
    Ok(out)
}

/// Formats bytes for a report: escaped, one line per line of a head, truncated when long.
pub(crate) fn show(bytes: &[u8]) -> String {
    const MOST: usize = 1500;
    let mut text = String::from("\"");
    for byte in bytes.iter().take(MOST) {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            0x20..=0x7e => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\x{other:02x}")),
        }
    }
    text.push('"');
    if bytes.len() > MOST {
        text.push_str(&format!(" … {} bytes in all", bytes.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(inline: &str, block: &str) -> Vec<u8> {
        let children = crate::lines::read(block).unwrap();
        let lookup = |name: &str| (name == "p").then(|| "80".to_owned());
        Data::parse(inline, &children).unwrap().render(&lookup).unwrap()
    }

    #[test]
    fn every_spelling() {
        assert_eq!(rendered(r#""a\r\n\x00\"${p}""#, ""), b"a\r\n\0\"80");
        assert_eq!(
            rendered("", "| GET / HTTP/1.1\n| host: ${p}\n|\n\"body\"\n3 * \"xy\"\n"),
            b"GET / HTTP/1.1\r\nhost: 80\r\n\r\nbodyxyxyxy"
        );
        assert!(rendered("page 503 closing", "").ends_with(b"</body></html>\n"));
    }

    #[test]
    fn mistakes_are_refused() {
        for text in ["x", "\"\\q\"", "\"\\x1\"", "page 299", "page 503 nobody", "many * \"a\""] {
            assert!(Data::parse(text, &[]).is_err(), "{text}");
        }
        assert!(Data::parse("\"${nobody}\"", &[]).unwrap().render(&|_| None).is_err());
    }
}
