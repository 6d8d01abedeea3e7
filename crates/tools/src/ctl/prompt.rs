//! The prompt on a terminal: reads lines and executes them. Must never write a payload to the history.
//!
//! With the feature `line-editing`, the line reader edits lines and keeps a history; without it, the terminal edits
//! them.

use super::client::Client;
#[cfg(feature = "line-editing")]
use super::edited_lines::{HINT, LineReader};
use super::exchange::ExchangeError;
use super::line::Target;
use super::output::Output;
#[cfg(not(feature = "line-editing"))]
use super::plain_lines::{HINT, LineReader};
use super::script::Script;
use super::typed_line::TypedLine;
use crate::Outcome;
use crate::stats_socket::Socket;
use std::path::Path;

/// Reads and executes commands until `quit`, Ctrl-D, or the end of the terminal.
///
/// # Errors
/// [`Outcome::Unreachable`]: there is no answer to the first question; [`Outcome::Failed`]: the terminal.
pub fn run(client: &mut Client, output: &mut Output) -> Result<Outcome, Outcome> {
    // A process that does not answer is reported before a command is typed.
    let version = match client.query("show version") {
        Ok((_, text)) => text.lines().next().unwrap_or_default().to_owned(),
        Err(ExchangeError::Unanswered(why)) => return Err(Outcome::Unreachable(why)),
        Err(ExchangeError::Interrupted) => return Ok(Outcome::Done),
    };
    let place = client.socket.shown();
    output.line(&format!("{place}, version {version}. {}'help' lists commands, Ctrl-D ends.", HINT));
    client.has_keyboard = true;
    let mut lines = LineReader::new(client, output)?;
    loop {
        match lines.read(client, &mark(client))? {
            TypedLine::Text(line) => {
                execute(&line, client, output, &mut lines);
                if client.has_left || output.is_closed {
                    return Ok(Outcome::Done);
                }
            }
            TypedLine::Abandoned => {}
            TypedLine::End => return Ok(Outcome::Done),
        }
    }
}

/// Executes a line, and remembers it. A text of several lines, which was pasted, is not remembered.
fn execute(line: &str, client: &mut Client, output: &mut Output, lines: &mut LineReader) {
    if line.trim().is_empty() {
        return;
    }
    if !line.contains(['\n', '\r']) {
        lines.remember(line, output);
    }
    let mut ask = || lines.read_payload("+ ");
    let mut text = line.as_bytes();
    let mut script = Script { text: &mut text, keeps_going: false, prompt_for_payload: Some(&mut ask), payload: None };
    script.run(client, output);
}

/// Returns the prompt: the socket, the target of a master, and the modes.
fn mark(client: &Client) -> String {
    let place = match &client.socket {
        Socket::Unix(path) => Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned()),
        other => Some(other.shown()),
    };
    let target = match &client.session.target {
        Target::Owner => String::new(),
        Target::Worker(name) => format!(" @{name}"),
        Target::EveryWorker => " @*".to_owned(),
    };
    let place = place.unwrap_or_default().replace(char::is_control, "");
    format!("{place}{target}{}> ", client.session.marks())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctl::line::Command;
    use crate::ctl::session::{Owner, Session};

    #[test]
    fn the_prompt_shows_where_commands_go() {
        let mut client =
            Client::new(Socket::Unix("/run/weir/master.sock".into()), Session::new(Owner::Worker, Target::Owner), None);
        assert_eq!(mark(&client), "master.sock> ");
        let mut output = Output::new(false);
        client.run(&Command::parse(b"@!77"), None, &mut output);
        client.session.note(&["expert-mode".to_owned(), "on".to_owned()]);
        assert_eq!(mark(&client), "master.sock @!77(e)> ");
        client.run(&Command::parse(b"@"), None, &mut output);
        assert_eq!(mark(&client), "master.sock(e)> ");
    }
}
