//! `normalize-uri` (configuration manual, section 4.4): replaces equivalent notations with a normal form. Must never
//! change scheme or authority.

use base::hex;

/// A normalizer of URIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalizer {
    /// `fragment-encode`.
    FragmentEncode,
    /// `fragment-strip`.
    FragmentStrip,
    /// `path-merge-slashes`.
    MergeSlashes,
    /// `path-strip-dot`.
    StripDot,
    /// `path-strip-dotdot`; true for `full`.
    StripDotDot(bool),
    /// `percent-decode-unreserved`; true for `strict`.
    DecodeUnreserved(bool),
    /// `percent-to-uppercase`; true for `strict`.
    PercentToUppercase(bool),
    /// `query-sort-by-name`.
    SortQuery,
}

/// A percent sign that is not followed by two hexadecimal digits, in strict mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl Normalizer {
    /// Normalizes the part of a target that starts with the path; the part before it is `authority` bytes long.
    ///
    /// # Errors
    /// The target is malformed, in strict mode.
    pub fn apply(self, target: &[u8], authority: usize) -> Result<Vec<u8>, Malformed> {
        let mut out = target[..authority].to_vec();
        out.reserve(target.len());
        let rest = &target[authority..];
        if rest.first() != Some(&b'/') {
            out.extend_from_slice(rest);
            return Ok(out);
        }
        let end_of_path = rest.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(rest.len());
        let (path, query) = rest.split_at(end_of_path);
        match self {
            Self::FragmentEncode => {
                for byte in rest {
                    if *byte == b'#' { out.extend_from_slice(b"%23") } else { out.push(*byte) }
                }
            }
            Self::FragmentStrip => out.extend(rest.iter().take_while(|byte| **byte != b'#')),
            Self::MergeSlashes => {
                for (index, byte) in path.iter().enumerate() {
                    if *byte != b'/' || index == 0 || path[index - 1] != b'/' {
                        out.push(*byte);
                    }
                }
                out.extend_from_slice(query);
            }
            Self::StripDot => {
                strip_dot(path, &mut out);
                out.extend_from_slice(query);
            }
            Self::StripDotDot(full) => {
                strip_dotdot(path, full, &mut out);
                out.extend_from_slice(query);
            }
            Self::DecodeUnreserved(strict) => percent(rest, strict, &mut out, |pair, value, out| {
                if value.is_ascii_alphanumeric() || b"-._~".contains(&value) {
                    out.push(value);
                } else {
                    out.extend_from_slice(&[b'%', pair[0], pair[1]]);
                }
            })?,
            Self::PercentToUppercase(strict) => percent(rest, strict, &mut out, |pair, _, out| {
                out.extend_from_slice(&[b'%', pair[0].to_ascii_uppercase(), pair[1].to_ascii_uppercase()]);
            })?,
            Self::SortQuery => {
                out.extend_from_slice(path);
                sort_query(query, &mut out);
            }
        }
        Ok(out)
    }
}

/// Removes segments of one dot, with the slash after them.
fn strip_dot(path: &[u8], out: &mut Vec<u8>) {
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    out.push(b'/');
    while let Some(segment) = segments.next() {
        if segment == b"." {
            continue;
        }
        out.extend_from_slice(segment);
        if segments.peek().is_some() {
            out.push(b'/');
        }
    }
}

/// Removes segments of two dots, with the segment before them.
fn strip_dotdot(path: &[u8], full: bool, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(b'/');
    // Segments before this offset are not removed: `..` that was kept.
    let mut floor = out.len();
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        if segment == b".." {
            if out.len() > floor {
                out.pop();
                let slash = out[start..].iter().rposition(|byte| *byte == b'/').unwrap_or(0);
                out.truncate((start + slash + 1).max(floor));
            } else if !full {
                out.extend_from_slice(b"../");
                floor = out.len();
            }
            continue;
        }
        out.extend_from_slice(segment);
        if segments.peek().is_some() {
            out.push(b'/');
        }
    }
}

/// Calls `with` for each percent-encoded byte, with its digits and its value; copies all other bytes.
fn percent(
    text: &[u8],
    strict: bool,
    out: &mut Vec<u8>,
    with: impl Fn([u8; 2], u8, &mut Vec<u8>),
) -> Result<(), Malformed> {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let pair = text.get(at + 1).zip(text.get(at + 2)).filter(|_| *byte == b'%');
        let value = pair.and_then(|(high, low)| hex::byte([*high, *low]));
        match (byte, pair, value) {
            (b'%', Some((high, low)), Some(value)) => {
                with([*high, *low], value, out);
                at += 3;
            }
            (b'%', ..) if strict => return Err(Malformed),
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    Ok(())
}

/// Sorts parameters by name; those with the same name keep their order.
fn sort_query(query: &[u8], out: &mut Vec<u8>) {
    let end = query.iter().position(|byte| *byte == b'#').unwrap_or(query.len());
    let (query, fragment) = query.split_at(end);
    if let Some(parameters) = query.strip_prefix(b"?") {
        out.push(b'?');
        // There is no parameter after the last separator.
        let parameters = parameters.strip_suffix(b"&").unwrap_or(parameters);
        let mut parameters: Vec<&[u8]> = parameters.split(|byte| *byte == b'&').collect();
        parameters.sort_by_key(|parameter| parameter.split(|byte| *byte == b'=').next().unwrap_or_default());
        for (index, parameter) in parameters.iter().enumerate() {
            if index > 0 {
                out.push(b'&');
            }
            out.extend_from_slice(parameter);
        }
    }
    out.extend_from_slice(fragment);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(normalizer: Normalizer, rows: &[(&str, Option<&str>)]) {
        for (target, expected) in rows {
            let authority = target.strip_prefix("http://h").map_or(0, |_| 8);
            let found = normalizer.apply(target.as_bytes(), authority).ok();
            let found = found.map(|found| String::from_utf8(found).unwrap());
            assert_eq!(found.as_deref(), *expected, "{normalizer:?} {target}");
        }
    }

    #[test]
    fn fragments() {
        let rows = [("/#foo", Some("/%23foo")), ("/a?b#c#d", Some("/a?b%23c%23d")), ("*", Some("*"))];
        check(Normalizer::FragmentEncode, &rows);
        check(Normalizer::FragmentStrip, &[("/#foo", Some("/")), ("/a?b#c#d", Some("/a?b"))]);
    }

    /// Recorded from HAProxy 3.5.
    #[test]
    fn paths() {
        let rows = [
            ("//", Some("/")),
            ("/foo//bar", Some("/foo/bar")),
            ("/a//b?c//d", Some("/a/b?c//d")),
            ("///a///", Some("/a/")),
            ("http://h/a/../b//c", Some("http://h/a/../b/c")),
        ];
        check(Normalizer::MergeSlashes, &rows);
        let rows = [
            ("/.", Some("/")),
            ("/./bar/", Some("/bar/")),
            ("/a/./a", Some("/a/a")),
            ("/.well-known/", Some("/.well-known/")),
            ("/a/.", Some("/a/")),
            ("/./.", Some("/")),
            ("/a/.?b", Some("/a/?b")),
            ("/./../a", Some("/../a")),
        ];
        check(Normalizer::StripDot, &rows);
        let rows = [
            ("/foo/../", Some("/")),
            ("/foo/../bar/", Some("/bar/")),
            ("/foo/bar/../", Some("/foo/")),
            ("/../bar/", Some("/../bar/")),
            ("/bar/../../", Some("/../")),
            ("/foo//../", Some("/foo/")),
            ("/foo/%2E%2E/", Some("/foo/%2E%2E/")),
            ("/..", Some("/../")),
            ("/a/..", Some("/")),
            ("/a/b/..?x=/../", Some("/a/?x=/../")),
            ("/a/../..", Some("/../")),
            ("/../../", Some("/../../")),
            ("/a/...", Some("/a/...")),
            ("/a//..", Some("/a/")),
            ("http://h/a/../b//c", Some("http://h/b//c")),
            ("/./../a", Some("/a")),
            ("*", Some("*")),
        ];
        check(Normalizer::StripDotDot(false), &rows);
        let rows =
            [("/../bar/", Some("/bar/")), ("/bar/../../", Some("/")), ("/..", Some("/")), ("/../../", Some("/"))];
        check(Normalizer::StripDotDot(true), &rows);
    }

    #[test]
    fn percents() {
        let rows = [
            ("/%61dmin", Some("/admin")),
            ("/foo%3Fbar=baz", Some("/foo%3Fbar=baz")),
            ("/%%36%36", Some("/%66")),
            ("/%ZZ", Some("/%ZZ")),
            ("/%6", Some("/%6")),
            ("/a?%61=%6f", Some("/a?a=o")),
            ("/%2f%2e%7e%5f%2d%41%39", Some("/%2f.~_-A9")),
        ];
        check(Normalizer::DecodeUnreserved(false), &rows);
        check(Normalizer::DecodeUnreserved(true), &[("/%%36%36", None), ("/%ZZ", None), ("/%", None), ("/%6", None)]);
        let rows = [("/%6f", Some("/%6F")), ("/%zz", Some("/%zz")), ("/%2f%2e", Some("/%2F%2E"))];
        check(Normalizer::PercentToUppercase(false), &rows);
        check(Normalizer::PercentToUppercase(true), &[("/%zz", None), ("/%6f", Some("/%6F"))]);
    }

    #[test]
    fn queries() {
        let rows = [
            ("/?c=3&a=1&b=2", Some("/?a=1&b=2&c=3")),
            ("/?aaa=3&a=1&aa=2", Some("/?a=1&aa=2&aaa=3")),
            ("/?a=3&b=4&a=1&b=5&a=2", Some("/?a=3&a=1&a=2&b=4&b=5")),
            ("/?", Some("/?")),
            ("/?b&a", Some("/?a&b")),
            ("/?&b&&a", Some("/?&&a&b")),
            ("/?b&", Some("/?b")),
            ("/?b&&", Some("/?&b")),
            ("/x", Some("/x")),
        ];
        check(Normalizer::SortQuery, &rows);
    }
}
