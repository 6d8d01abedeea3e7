//! Syntax of the runtime API's lines, as a client writes them (management manual, section 9.3): commands separated by
//! semicolons, prefixes of the master, announced payloads. Must never send anything.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Maximum length of the marker after `<<`, in bytes.
const MAX_MARKER: usize = 64;

/// Process that executes a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// The process that owns the socket.
    #[default]
    Owner,
    /// A worker of a master, as written after `@`: `1`, `!PID`.
    Worker(String),
    /// `@*`: every worker of a master.
    EveryWorker,
}

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The command without its prefix and without the announcement of a payload.
    pub text: Vec<u8>,
    /// Target of its prefix; `None`: no prefix.
    pub target: Option<Target>,
    /// Marker after `<<`; `None`: no payload follows.
    pub marker: Option<Vec<u8>>,
}

impl Command {
    /// Parses a command.
    pub fn parse(text: &[u8]) -> Self {
        let (text, marker) = match announcement(text) {
            Some((before, marker)) => (before, Some(marker.to_vec())),
            None => (text, None),
        };
        let (target, text) = match text.trim_ascii().strip_prefix(b"@") {
            Some(rest) => prefix(rest),
            None => (None, text.trim_ascii()),
        };
        Self { text: text.to_vec(), target, marker }
    }

    /// Returns the words, backslashes removed.
    pub fn words(&self) -> Vec<String> {
        words(&self.text)
    }
}

/// Parses the text after a first `@`. `@` and `@master` alone name the owner of the socket; `@@` is `@` for a whole line.
fn prefix(rest: &[u8]) -> (Option<Target>, &[u8]) {
    let rest = rest.strip_prefix(b"@").unwrap_or(rest);
    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    let target = match &rest[..end] {
        b"" | b"master" => Target::Owner,
        b"*" => Target::EveryWorker,
        other => Target::Worker(String::from_utf8_lossy(other).into_owned()),
    };
    (Some(target), rest[end..].trim_ascii())
}

/// Splits a line at semicolons that no backslash precedes; empty commands are left out. A line that begins with `@@` is
/// one command.
pub fn commands(line: &[u8]) -> Vec<Command> {
    if line.trim_ascii_start().starts_with(b"@@") {
        return vec![Command::parse(line)];
    }
    let (mut found, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, byte) in line.iter().enumerate() {
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
    found.into_iter().filter(|part| !part.trim_ascii().is_empty()).map(Command::parse).collect()
}

/// Splits a command at blanks, and removes the backslashes that escape a character.
pub fn words(text: &[u8]) -> Vec<String> {
    let (mut found, mut word) = (Vec::new(), None::<Vec<u8>>);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\r' => found.extend(word.take()),
            b'\\' => word.get_or_insert_default().push(bytes.next().copied().unwrap_or(b'\\')),
            other => word.get_or_insert_default().push(*other),
        }
    }
    found.extend(word);
    found.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Parses the announcement of a payload: the text before it, and the marker that ends the payload.
fn announcement(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_end();
    let start = text.iter().rposition(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1);
    let marker = text[start..].strip_prefix(b"<<")?;
    (marker.len() <= MAX_MARKER).then_some((text[..start].trim_ascii_end(), marker))
}

/// Returns the text of a command whose words a shell has split. A word that is only a semicolon separates commands; in
/// other words, blanks, semicolons and backslashes are escaped. One word alone is text of the API as it is.
///
/// # Errors
/// The reason why a word cannot be sent.
pub fn join(words: &[OsString]) -> Result<Vec<u8>, String> {
    if let [only] = words {
        return Ok(only.as_bytes().to_vec());
    }
    let mut line = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word.is_empty() {
            return Err("the API has no empty words".to_owned());
        }
        if at > 0 {
            line.push(b' ');
        }
        if word == ";" {
            line.push(b';');
            continue;
        }
        for byte in word.as_bytes() {
            match byte {
                b'\n' => return Err("a word contains the end of a line".to_owned()),
                b' ' | b'\t' | b'\r' | b';' | b'\\' => line.extend([b'\\', *byte]),
                other => line.push(*other),
            }
        }
    }
    Ok(line)
}

/// A payload as it is sent: its lines and its end.
#[derive(Debug, PartialEq, Eq)]
pub struct FramedPayload {
    /// Marker after `<<`; empty: an empty line ends the payload.
    pub marker: Vec<u8>,
    /// Lines, each with its end.
    pub lines: Vec<u8>,
}

impl FramedPayload {
    /// Frames a payload. Empty lines of PEM are left out: they have no meaning, and not every version of the API knows
    /// a marker. Any other payload with an empty line gets a marker that is none of its lines.
    pub fn new(payload: &[u8]) -> Self {
        let is_pem = memchr::memmem::find(payload, b"-----BEGIN ").is_some();
        let mut lines = Vec::with_capacity(payload.len() + 1);
        let (mut has_empty, mut markers) = (false, 0);
        for line in payload.split_inclusive(|byte| *byte == b'\n') {
            let content = line.trim_ascii_end();
            if content.is_empty() && is_pem {
                continue;
            }
            has_empty |= line.strip_suffix(b"\n").unwrap_or(line).trim_ascii().is_empty();
            markers += usize::from(content.starts_with(b"%EOF"));
            lines.extend_from_slice(line);
        }
        if !lines.is_empty() && !lines.ends_with(b"\n") {
            lines.push(b'\n');
        }
        let marker = if has_empty { unused_marker(&lines, markers) } else { Vec::new() };
        Self { marker, lines }
    }
}

/// Returns a marker that is no line. `similar` is the number of lines that begin like one.
fn unused_marker(lines: &[u8], similar: usize) -> Vec<u8> {
    let candidates = (0..=similar).map(|number| match number {
        0 => b"%EOF%".to_vec(),
        _ => format!("%EOF{number}%").into_bytes(),
    });
    let mut unused =
        candidates.filter(|marker| lines.split(|byte| *byte == b'\n').all(|line| line.trim_ascii_end() != marker));
    unused.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str, target: Option<Target>, marker: Option<&str>) -> Command {
        Command { text: text.into(), target, marker: marker.map(|marker| marker.as_bytes().to_vec()) }
    }

    #[test]
    fn lines_have_commands_targets_and_payloads() {
        let worker = |name: &str| Some(Target::Worker(name.to_owned()));
        let rows = [
            ("", vec![]),
            (" ; ", vec![]),
            ("show info;show stat", vec![command("show info", None, None), command("show stat", None, None)]),
            ("echo a\\;b", vec![command("echo a\\;b", None, None)]),
            ("set ssl cert a <<", vec![command("set ssl cert a", None, Some(""))]),
            (
                "set ssl cert a <<%EOF%; commit ssl cert a",
                vec![command("set ssl cert a", None, Some("%EOF%")), command("commit ssl cert a", None, None)],
            ),
            ("set ssl cert a<<", vec![command("set ssl cert a<<", None, None)]),
            (
                "@1 show info; @!7 show stat",
                vec![command("show info", worker("1"), None), command("show stat", worker("!7"), None)],
            ),
            ("@* show info", vec![command("show info", Some(Target::EveryWorker), None)]),
            ("@", vec![command("", Some(Target::Owner), None)]),
            ("@master show proc", vec![command("show proc", Some(Target::Owner), None)]),
            ("@@1 show info; show stat", vec![command("show info; show stat", worker("1"), None)]),
        ];
        for (line, wanted) in rows {
            assert_eq!(commands(line.as_bytes()), wanted, "{line}");
        }
    }

    #[test]
    fn words_of_a_shell_stay_words() {
        let rows: [(&[&str], Result<&str, ()>); 7] = [
            (&["show info;show stat"], Ok("show info;show stat")),
            (&["show", "info"], Ok("show info")),
            (&["set", "map", "m", "a b", "c;d\\"], Ok("set map m a\\ b c\\;d\\\\")),
            (&["show", "info", ";", "show", "stat"], Ok("show info ; show stat")),
            (&["set", "ssl", "cert", "a", "<<"], Ok("set ssl cert a <<")),
            (&["a", ""], Err(())),
            (&["a", "b\nc"], Err(())),
        ];
        for (words, wanted) in rows {
            let given: Vec<OsString> = words.iter().map(OsString::from).collect();
            let found = join(&given);
            assert_eq!(found.as_deref().map_err(|_| ()), wanted.map(str::as_bytes), "{words:?}");
            if let (Ok(line), true) = (&found, words.len() > 1 && !words.contains(&";")) {
                assert_eq!(super::words(line), words, "{words:?}");
            }
        }
    }

    #[test]
    fn payloads_have_an_end_that_they_do_not_contain() {
        let rows = [
            ("a", "", "a\n"),
            ("a\nb\n", "", "a\nb\n"),
            ("", "", ""),
            ("-----BEGIN X-----\n\na\r\n\r\n-----END X-----\n\n", "", "-----BEGIN X-----\na\r\n-----END X-----\n"),
            ("a\n\nb", "%EOF%", "a\n\nb\n"),
            ("a\n\n%EOF%\n", "%EOF1%", "a\n\n%EOF%\n"),
            ("\n%EOF1%\n%EOF%\r\n", "%EOF2%", "\n%EOF1%\n%EOF%\r\n"),
        ];
        for (payload, marker, lines) in rows {
            let wanted = FramedPayload { marker: marker.into(), lines: lines.into() };
            assert_eq!(FramedPayload::new(payload.as_bytes()), wanted, "{payload:?}");
        }
    }
}
