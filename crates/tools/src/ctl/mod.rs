//! A client of the runtime API of a running process, Weir or HAProxy. Must never require what only one of them has.
//!
//! [`options`] parses the command line, [`places`] finds the socket, [`line`] has the syntax of commands, [`session`]
//! the state between commands, [`exchange`] sends one and reads its answer, which [`answer`] judges; [`client`] combines
//! them, [`script`] reads commands from a text and [`prompt`] from a terminal. [`output`] prints, [`json`] converts.

mod answer;
mod client;
#[cfg(feature = "line-editing")]
mod complete;
#[cfg(feature = "line-editing")]
mod edited_lines;
mod exchange;
#[cfg(feature = "line-editing")]
mod history;
mod json;
mod keyboard;
mod line;
#[cfg(feature = "line-editing")]
mod names;
mod options;
mod output;
mod places;
#[cfg(not(feature = "line-editing"))]
mod plain_lines;
mod prompt;
mod script;
mod session;
mod typed_line;
#[cfg(feature = "line-editing")]
mod usage;

use crate::Outcome;
use client::Client;
use options::{CtlTask, Options};
use output::Output;
use script::{LONGEST_PAYLOAD, Script, ScriptResult};
use session::Session;
use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};

/// Returns the text of `--help`.
#[must_use]
pub fn help() -> String {
    options::PAGE.to_owned()
}

/// Runs the tool with the words after its name.
#[must_use]
pub fn main(words: &[OsString]) -> Outcome {
    match options::parse(words) {
        Ok(CtlTask::Help) => {
            // There is no reader if standard output is closed.
            let _ = std::io::stdout().lock().write_all(options::PAGE.as_bytes());
            Outcome::Done
        }
        Ok(CtlTask::Run(options)) => run(&options).unwrap_or_else(|outcome| outcome),
        Err(outcome) => outcome,
    }
}

fn run(options: &Options) -> Result<Outcome, Outcome> {
    let mut client = Client::new(
        places::socket(options)?,
        Session::of_options(options.is_master, options.to_worker),
        options.timeout,
    );
    let mut output = Output::new(options.is_json);
    let result = if !options.command.is_empty() {
        let (text, payload) = command_of(options)?;
        repeat(options, &text, payload, &mut client, &mut output)
    } else if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return prompt::run(&mut client, &mut output);
    } else {
        let mut text = std::io::stdin().lock();
        let mut script =
            Script { text: &mut text, keeps_going: options.keeps_going, prompt_for_payload: None, payload: None };
        script.run(&mut client, &mut output)
    };
    Ok(match result {
        ScriptResult::Accepted => Outcome::Done,
        ScriptResult::Refused => Outcome::Reported(1),
        ScriptResult::Unanswered => Outcome::Reported(2),
    })
}

/// Returns the text of the command line's commands, and the payload that is not in it.
fn command_of(options: &Options) -> Result<(Vec<u8>, Option<Vec<u8>>), Outcome> {
    let mut text = line::join(&options.command).map_err(Outcome::Misused)?;
    let announces = |text: &[u8]| line::commands(text).iter().any(|command| command.marker.is_some());
    let has_lines = text.trim_ascii_end().contains(&b'\n');
    if options.payload.is_some() && (has_lines || !announces(&text)) {
        if has_lines {
            return Err(Outcome::Misused("--payload and a payload in the command exclude each other".to_owned()));
        }
        text.extend_from_slice(b" <<");
    }
    if has_lines || !announces(&text) {
        return Ok((text, None));
    }
    let named = options.payload.as_ref().filter(|path| path.as_os_str() != "-");
    let failure = |place: &str, why: &str| Outcome::Unreachable(format!("{place}: {why}"));
    let mut payload = Vec::new();
    let (place, read) = match named {
        Some(path) => {
            let file = std::fs::File::open(path);
            let read = file.and_then(|file| file.take(LONGEST_PAYLOAD as u64 + 1).read_to_end(&mut payload));
            (path.display().to_string(), read)
        }
        None => {
            if std::io::stdin().is_terminal() {
                let _ =
                    writeln!(std::io::stderr(), "weir ctl: type the payload; Ctrl-D at the start of a line ends it");
            }
            let read = std::io::stdin().lock().take(LONGEST_PAYLOAD as u64 + 1).read_to_end(&mut payload);
            ("standard input".to_owned(), read)
        }
    };
    match read {
        Err(error) => Err(failure(&place, &exchange::reason(&error))),
        Ok(count) if count > LONGEST_PAYLOAD => Err(failure(&place, "the payload is too long")),
        Ok(0) => Err(failure(&place, "the payload is empty")),
        Ok(_) => Ok((text, Some(payload))),
    }
}

/// Executes the commands once, or at the interval of `--watch`.
fn repeat(
    options: &Options,
    text: &[u8],
    payload: Option<Vec<u8>>,
    client: &mut Client,
    output: &mut Output,
) -> ScriptResult {
    let mut left = options.count;
    loop {
        if options.watch.is_some() {
            output.begin_look();
        }
        let payload = payload.clone();
        let mut text = text;
        let mut script =
            Script { text: &mut text, keeps_going: options.keeps_going, prompt_for_payload: None, payload };
        let result = script.run(client, output);
        left = left.map(|left| left - 1);
        let Some(interval) = options.watch else { return result };
        let fails = result != ScriptResult::Accepted && !options.keeps_going;
        if fails || left == Some(0) || output.is_closed {
            return result;
        }
        std::thread::sleep(interval);
    }
}
