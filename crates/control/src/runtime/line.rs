//! Syntax of command lines: commands separated by semicolons, words separated by blanks, a backslash to escape a
//! character, and a payload after `<<` (management manual, section 9.3). Must never do anything but parse text.

/// Maximum number of words in a command.
pub const MAX_WORDS: usize = 64;

/// Maximum length of the marker after `<<` in bytes; with a longer one the word is an ordinary word.
const MAX_MARKER: usize = 64;

/// Whether a byte separates words.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// Splits a line, without its line end, at unescaped semicolons. Parts may be empty.
pub fn commands(line: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, &byte) in line.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b';' => {
                found.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&line[start..]);
    found
}

/// A command has more words than [`MAX_WORDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyWords;

/// Splits a command into words and removes escaping backslashes. Bytes that are not UTF-8 are kept as
/// [`config::text::from_bytes`] keeps them.
///
/// # Errors
/// [`TooManyWords`].
pub fn words(command: &[u8]) -> Result<Vec<String>, TooManyWords> {
    let mut found = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = command.iter();
    while let Some(&byte) = bytes.next() {
        let byte = match byte {
            blank if is_blank(blank) => {
                found.extend(word.take());
                continue;
            }
            // A backslash at the end is literal.
            b'\\' => bytes.next().copied().unwrap_or(b'\\'),
            other => other,
        };
        word.get_or_insert_default().push(byte);
    }
    found.extend(word);
    if found.len() > MAX_WORDS {
        return Err(TooManyWords);
    }
    Ok(found.iter().map(|word| config::text::from_bytes(word)).collect())
}

/// Parses the announcement of a payload: returns the line before it, and the line that ends the payload, empty unless a
/// marker is given. `None`: no payload follows.
pub fn announces_payload(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = trim_end(line);
    let start = line.iter().rposition(|byte| is_blank(*byte)).map_or(0, |blank| blank + 1);
    let marker = line[start..].strip_prefix(b"<<")?;
    // `<<` inside a word is not an announcement.
    (marker.len() <= MAX_MARKER).then_some((&line[..start], marker))
}

fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
    &line[..end]
}

/// Finds the end of a payload at the front of `input`: the length of the payload, and the length including its end
/// marker. `None`: incomplete.
pub fn payload_end(input: &[u8], marker: &[u8]) -> Option<(usize, usize)> {
    let mut start = 0;
    while let Some(length) = memchr::memchr(b'\n', &input[start..]) {
        let line = &input[start..start + length];
        if line.strip_suffix(b"\r").unwrap_or(line) == marker {
            return Some((start, start + length + 1));
        }
        start += length + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_cut_commands() {
        let rows: &[(&str, &[&str])] = &[
            ("", &[""]),
            ("show info", &["show info"]),
            ("show info;show stat", &["show info", "show stat"]),
            ("a;;b", &["a", "", "b"]),
            (";", &["", ""]),
            ("a;", &["a", ""]),
            ("echo a\\;b;c", &["echo a\\;b", "c"]),
            ("echo a\\\\;b", &["echo a\\\\", "b"]),
        ];
        for (line, expected) in rows {
            let expected: Vec<&[u8]> = expected.iter().map(|command| command.as_bytes()).collect();
            assert_eq!(commands(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn words_are_cut_at_blanks_and_freed_of_backslashes() {
        let rows: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  show \t version ", &["show", "version"]),
            ("echo c\\;d \\\\ e\\ f", &["echo", "c;d", "\\", "e f"]),
            ("echo \"g  h\"", &["echo", "\"g", "h\""]),
            ("end\\", &["end\\"]),
            ("show version\r", &["show", "version"]),
        ];
        for (line, expected) in rows {
            assert_eq!(words(line.as_bytes()).as_deref(), Ok(&expected.map_to_strings()[..]), "{line}");
        }
        assert_eq!(words("x ".repeat(64).as_bytes()).map(|words| words.len()), Ok(64));
        assert_eq!(words("x ".repeat(65).as_bytes()), Err(TooManyWords));
        assert_eq!(words(b"\xff").as_deref(), Ok(&[config::text::from_bytes(b"\xff")][..]));
    }

    trait MapToStrings {
        fn map_to_strings(&self) -> Vec<String>;
    }

    impl MapToStrings for &[&str] {
        fn map_to_strings(&self) -> Vec<String> {
            self.iter().map(|word| (*word).to_owned()).collect()
        }
    }

    #[test]
    fn payloads_are_announced_by_the_last_word() {
        let long = format!("set <<{}", "x".repeat(65));
        let rows: &[(&str, Option<(&str, &str)>)] = &[
            ("set ssl cert a <<", Some(("set ssl cert a ", ""))),
            ("set ssl cert a << ", Some(("set ssl cert a ", ""))),
            ("set ssl cert a <<%EOF%", Some(("set ssl cert a ", "%EOF%"))),
            ("<<", Some(("", ""))),
            ("set ssl cert a<<", None),
            ("set << a", None),
            ("show info", None),
            ("", None),
            (&long, None),
        ];
        for (line, expected) in rows {
            let expected = expected.map(|(line, marker)| (line.as_bytes(), marker.as_bytes()));
            assert_eq!(announces_payload(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn payloads_end_with_their_marker_on_a_line_of_its_own() {
        let rows = [
            ("", "", None),
            ("\n", "", Some((0, 1))),
            ("a\nb\n\nrest", "", Some((4, 5))),
            ("a\nb\n", "", None),
            ("a\n\nEOF\n", "EOF", Some((3, 7))),
            ("a\nEOF", "EOF", None),
            ("a\r\n\r\n", "", Some((3, 5))),
        ];
        for (input, marker, expected) in rows {
            assert_eq!(payload_end(input.as_bytes(), marker.as_bytes()), expected, "{input:?}");
        }
    }
}
