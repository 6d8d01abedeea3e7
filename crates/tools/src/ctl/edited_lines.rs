//! Lines with editing, history and completion. Must never write a payload to the history.

use super::client::Client;
use super::complete::Completion;
use super::exchange::reason;
use super::history::{self, HistoryFile};
use super::output::Output;
use super::typed_line::TypedLine;
use crate::Outcome;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{CompletionType, Config, Editor};

/// Remark about keys in the greeting.
pub const HINT: &str = "Tab completes, ";

/// Lines of the history that are kept.
const MOST_LINES: usize = 1000;

/// Reads lines.
pub struct LineReader {
    editor: Editor<Completion, MemHistory>,
    /// `None`: there is none, for a reason that was printed.
    file: Option<HistoryFile>,
}

impl LineReader {
    /// Opens the history.
    ///
    /// # Errors
    /// [`Outcome::Failed`]: the terminal.
    pub fn new(client: &Client, output: &mut Output) -> Result<Self, Outcome> {
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .history_ignore_space(true)
            .max_history_size(MOST_LINES)
            .map_err(failure)?
            .build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(failure)?;
        editor.set_helper(Some(Completion::new(client)));
        let file = history::path().and_then(|path| match HistoryFile::open(&path) {
            Ok((file, lines)) => {
                for line in lines {
                    let _ = editor.add_history_entry(line);
                }
                Some(file)
            }
            Err(error) => {
                output.complain(&format!("no history: {}: {}", path.display(), reason(&error)));
                None
            }
        });
        Ok(Self { editor, file })
    }

    /// Reads a line.
    ///
    /// # Errors
    /// [`Outcome::Failed`]: the terminal.
    pub fn read(&mut self, client: &Client, mark: &str) -> Result<TypedLine, Outcome> {
        if let Some(helper) = self.editor.helper() {
            helper.begin_line(&client.session);
        }
        match self.editor.readline(mark) {
            Ok(line) => Ok(TypedLine::Text(line)),
            Err(ReadlineError::Interrupted) => Ok(TypedLine::Abandoned),
            Err(ReadlineError::Eof) => Ok(TypedLine::End),
            Err(error) => Err(failure(error)),
        }
    }

    /// Reads a line of a payload. `None`: the terminal has ended, or the payload was abandoned.
    pub fn read_payload(&mut self, mark: &str) -> Option<Vec<u8>> {
        self.editor.readline(mark).ok().map(String::into_bytes)
    }

    /// Adds a line to the history, and to its file if it has no secrets.
    pub fn remember(&mut self, line: &str, output: &mut Output) {
        let _ = self.editor.add_history_entry(line);
        if let Some(Err(error)) = self.file.as_ref().map(|file| file.add(line)) {
            output.complain(&format!("the history: {}", reason(&error)));
        }
    }
}

fn failure(error: ReadlineError) -> Outcome {
    Outcome::Failed(format!("the terminal: {error}"))
}
