//! A terminal view of a running process, Weir or HAProxy, through its stats socket (`show info`, `show stat`). Must
//! never require output that differs between both: percentiles are optional.
//!
//! [`options`] parses the command line, [`socket`] sends the query, [`sample`] parses the output, [`condition`] finds
//! what is wrong, [`view`] selects and sorts rows, [`columns`] selects columns, [`detail`] describes one row,
//! [`screen`] draws in the styles of [`palette`], [`app`] handles the keys, and [`terminal`] has the thread that
//! queries.

mod app;
mod columns;
mod condition;
mod detail;
mod format;
mod options;
mod palette;
mod plain;
mod sample;
mod screen;
#[cfg(test)]
mod screens;
mod socket;
mod terminal;
mod view;

use crate::Outcome;
use options::{Options, TopTask};
use sample::Sample;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};

/// Returns the text of `--help`.
#[must_use]
pub fn help() -> String {
    options::PAGE.to_owned()
}

/// Runs the tool with the words after its name.
#[must_use]
pub fn main(words: &[OsString]) -> Outcome {
    match options::parse(words) {
        Ok(TopTask::Help) => {
            // There is no reader if standard output is closed.
            let _ = std::io::stdout().lock().write_all(options::PAGE.as_bytes());
            Outcome::Done
        }
        Ok(TopTask::Run(options)) if options.once => once(&options),
        Ok(TopTask::Run(_)) if !std::io::stdout().is_terminal() => {
            Outcome::Failed("standard output is no terminal: --once prints one table".to_owned())
        }
        Ok(TopTask::Run(options)) => terminal::run(options),
        Err(outcome) => outcome,
    }
}

/// Prints one table.
fn once(options: &Options) -> Outcome {
    let sample = match socket::ask(&options.socket, sample::QUESTION_WITH_LATENCY).map_err(|why| options.failure(&why))
    {
        Ok(text) => Sample::parse(&text),
        Err(outcome) => return outcome,
    };
    match sample {
        Ok(sample) => {
            let _ = std::io::stdout().lock().write_all(plain::table(&sample, options).as_bytes());
            Outcome::Done
        }
        Err(why) => options.failure(&why),
    }
}
