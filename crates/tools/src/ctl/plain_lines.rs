//! Lines as the terminal edits them, without a history. Must never interpret a line.

use super::client::Client;
use super::output::Output;
use super::typed_line::TypedLine;
use crate::Outcome;
use std::io::Write;

/// Remark about keys in the greeting.
pub const HINT: &str = "";

/// Reads lines.
pub struct LineReader(());

impl LineReader {
    #[allow(clippy::unnecessary_wraps, reason = "a reader that edits lines may fail")]
    pub fn new(_: &Client, _: &mut Output) -> Result<Self, Outcome> {
        Ok(Self(()))
    }

    #[allow(clippy::unnecessary_wraps, reason = "a reader that edits lines may fail")]
    pub fn read(&mut self, _: &Client, mark: &str) -> Result<TypedLine, Outcome> {
        Ok(self.line(mark).map_or(TypedLine::End, TypedLine::Text))
    }

    /// Reads a line of a payload. `None`: the terminal has ended.
    pub fn read_payload(&mut self, mark: &str) -> Option<Vec<u8>> {
        self.line(mark).map(String::into_bytes)
    }

    pub fn remember(&mut self, _: &str, _: &mut Output) {}

    fn line(&mut self, mark: &str) -> Option<String> {
        let mut out = std::io::stdout().lock();
        // A closed terminal ends with the read.
        let _ = write!(out, "{mark}").and_then(|()| out.flush());
        drop(out);
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line).unwrap_or(0);
        (read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned())
    }
}
