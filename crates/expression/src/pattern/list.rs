//! Lists of patterns in files (configuration manual, sections 2.7 and 7.1): their names, their lines. Must never open one.

/// A pattern list's name by its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListName<'a> {
    /// A file that must exist.
    File(&'a str),
    /// A file that may be missing.
    Optional(&'a str),
    /// No file: only a name, prefix included.
    Virtual(&'a str),
}

impl<'a> ListName<'a> {
    /// Parses a name with its prefix.
    pub fn parse(text: &'a str) -> Self {
        if let Some(path) = text.strip_prefix("opt@") {
            Self::Optional(path)
        } else if text.starts_with("virt@") {
            Self::Virtual(text)
        } else {
            Self::File(text.strip_prefix("file@").unwrap_or(text))
        }
    }

    /// The name that identifies the list: a file without its prefix, anything else with it.
    pub fn reference(self) -> &'a str {
        match self {
            Self::File(name) | Self::Optional(name) | Self::Virtual(name) => name,
        }
    }
}

/// A line of a list that contains a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLine<'a> {
    /// Line number, from 1.
    pub number: usize,
    /// The pattern: the whole line, or in a map its first word.
    pub key: &'a [u8],
    /// The text after the key in a map.
    pub value: &'a [u8],
}

/// Returns the lines of a list that contain a pattern; `map`: followed by a value.
pub fn lines(content: &[u8], map: bool) -> impl Iterator<Item = ListLine<'_>> {
    content.split(|byte| *byte == b'\n').enumerate().filter_map(move |(index, line)| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let start = line.iter().position(|byte| !is_blank(*byte))?;
        let text = &line[start..];
        // A `#` after a blank is part of the pattern.
        if text[0] == b'#' && start == 0 {
            return None;
        }
        let number = index + 1;
        if !map {
            return Some(ListLine { number, key: text, value: b"" });
        }
        let end = text.iter().position(|byte| is_blank(*byte)).unwrap_or(text.len());
        Some(ListLine { number, key: &text[..end], value: trim(&text[end..]) })
    })
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_blank(*byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_blank(*byte)).map_or(start, |at| at + 1);
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_kinds() {
        let content = b"# no\n\n  a b \r\n\tc\n #d\n2.22.246.0/23 \t United Kingdom  \n";
        let acl: Vec<&[u8]> = lines(content, false).map(|line| line.key).collect();
        assert_eq!(acl, [&b"a b "[..], b"c", b"#d", b"2.22.246.0/23 \t United Kingdom  "]);
        let map: Vec<(&[u8], &[u8])> = lines(content, true).map(|line| (line.key, line.value)).collect();
        assert_eq!(map, [(&b"a"[..], &b"b"[..]), (b"c", b""), (b"#d", b""), (b"2.22.246.0/23", b"United Kingdom")]);
    }
}
