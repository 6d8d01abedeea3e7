//! Commands from a text: lines with commands, and payloads between them. Must never hold more of the text than a line and
//! a payload.

use super::client::{Client, CommandResult};
use super::line;
use super::output::Output;
use std::io::{self, BufRead};

/// Maximum size of a line, in bytes.
const LONGEST_LINE: usize = 1 << 20;
/// Maximum size of a payload, in bytes. The API has a limit of its own.
pub const LONGEST_PAYLOAD: usize = 64 << 20;

/// A text with commands.
pub struct Script<'a> {
    pub text: &'a mut dyn BufRead,
    /// Continues after a command that failed.
    pub keeps_going: bool,
    /// Asks for a line of a payload after the end of the text.
    pub prompt_for_payload: Option<&'a mut dyn FnMut() -> Option<Vec<u8>>>,
    /// Payload that does not follow in the text: that of the first command that ends in `<<`.
    pub payload: Option<Vec<u8>>,
}

/// Result of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScriptResult {
    /// Every command was accepted.
    Accepted,
    /// At least one was refused.
    Refused,
    /// At least one was not answered.
    Unanswered,
}

impl Script<'_> {
    /// Executes the commands, up to the first that fails. Lines that begin with `#` are comments.
    pub fn run(&mut self, client: &mut Client, output: &mut Output) -> ScriptResult {
        let mut result = ScriptResult::Accepted;
        loop {
            let line = match read_line(self.text, LONGEST_LINE) {
                Ok(Some(line)) if line.trim_ascii_start().starts_with(b"#") => continue,
                Ok(Some(line)) => line,
                Ok(None) => return result,
                Err(error) => return unanswered(output, &format!("cannot read the commands: {error}")),
            };
            for command in line::commands(&line) {
                let payload = match command.marker.as_deref().map(|marker| self.payload(marker)).transpose() {
                    Ok(payload) => payload,
                    Err(why) => return unanswered(output, &why),
                };
                let failed = match client.run(&command, payload.as_deref(), output) {
                    CommandResult::Left => return result,
                    _ if output.is_closed => return result,
                    CommandResult::Accepted => continue,
                    CommandResult::Refused => ScriptResult::Refused,
                    CommandResult::Unanswered(why) => unanswered(output, &why),
                    CommandResult::Interrupted => return unanswered(output, "interrupted"),
                };
                result = result.max(failed);
                if !self.keeps_going {
                    return result;
                }
            }
        }
    }

    /// Returns the payload that a command has announced.
    fn payload(&mut self, marker: &[u8]) -> Result<Vec<u8>, String> {
        if let Some(payload) = self.payload.take() {
            return Ok(payload);
        }
        let mut payload = Vec::new();
        loop {
            let line =
                read_line(self.text, LONGEST_LINE).map_err(|error| format!("cannot read the payload: {error}"))?;
            let line = match (line, &mut self.prompt_for_payload) {
                (None, Some(prompt)) => prompt(),
                (line, _) => line,
            };
            // The end of the text ends the payload too.
            let Some(line) = line.filter(|line| line.strip_suffix(b"\r").unwrap_or(line) != marker) else {
                return Ok(payload);
            };
            if payload.len() + line.len() > LONGEST_PAYLOAD {
                return Err("the payload is too long".to_owned());
            }
            payload.extend_from_slice(&line);
            payload.push(b'\n');
        }
    }
}

fn unanswered(output: &mut Output, why: &str) -> ScriptResult {
    output.complain(why);
    ScriptResult::Unanswered
}

/// Reads a line without its end. `None`: the text has ended.
///
/// # Errors
/// Those of the system, and [`io::ErrorKind::InvalidData`] for a line that is too long.
fn read_line(text: &mut dyn BufRead, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let count = io::Read::take(text, most as u64 + 1).read_until(b'\n', &mut line)?;
    if count == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if count > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long"));
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded() {
        let mut text = &b"ab\n\ncd"[..];
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut text, 2).expect("lines") {
            lines.push(line);
        }
        assert_eq!(lines, [&b"ab"[..], b"", b"cd"]);
        assert_eq!(read_line(&mut &b"abc"[..], 2).expect_err("too long").kind(), io::ErrorKind::InvalidData);
    }
}
