//! The prompt on a terminal.

use super::client::Client;
use super::line::Target;
use super::output::Output;
use super::script::Script;
use crate::Outcome;
use crate::stats_socket::Socket;
use std::io::Write;
use std::path::Path;

/// Reads and executes commands until `quit`, Ctrl-D, or the end of the terminal.
///
/// # Errors
/// [`Outcome::Unreachable`]: there is no answer to the first question.
pub fn run(client: &mut Client, output: &mut Output) -> Result<Outcome, Outcome> {
    // A process that does not answer is reported before a command is typed.
    let version = match client.query("show version") {
        Ok((_, text)) => text.lines().next().unwrap_or_default().to_owned(),
        Err(super::exchange::ExchangeError::Unanswered(why)) => return Err(Outcome::Unreachable(why)),
        Err(super::exchange::ExchangeError::Interrupted) => return Ok(Outcome::Done),
    };
    output.line(&format!("{}, version {version}. 'help' lists commands, Ctrl-D ends.", client.socket.shown()));
    client.has_keyboard = true;
    let ask = |mark: &str| {
        let mut out = std::io::stdout().lock();
        let mut line = String::new();
        let _ = write!(out, "{mark}").and_then(|()| out.flush());
        let read = std::io::stdin().read_line(&mut line).unwrap_or(0);
        (read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned())
    };
    while let Some(line) = ask(&mark(client)) {
        let mut ask = || ask("+ ").map(String::into_bytes);
        let mut text = line.as_bytes();
        let mut script =
            Script { text: &mut text, keeps_going: false, prompt_for_payload: Some(&mut ask), payload: None };
        script.run(client, output);
        if client.has_left || output.is_closed {
            break;
        }
    }
    Ok(Outcome::Done)
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
