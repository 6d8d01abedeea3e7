//! The load generator: sends requests and measures the responses. Must never depend on the program at the
//! other end.
//!
//! Stages of a run: [`options`] parses the command line into a [`plan::Plan`], the [`drive`] sends it and counts into a
//! [`counters::Counters`] on each worker, and once a second their sum is passed to a [`show::Show`], which prints it.

pub mod counters;
pub mod drive;
pub mod options;
pub mod plan;
pub mod record;
pub mod show;
pub mod target;

use crate::Outcome;
use options::LoadTask;
use std::ffi::OsString;
use std::io::Write;

/// Returns the page printed by `--help`.
#[must_use]
pub fn help() -> String {
    options::page()
}

/// Runs the tool with the words after its name.
#[must_use]
pub fn main(words: &[OsString]) -> Outcome {
    match options::parse(words, &target::resolve) {
        Ok(LoadTask::Help) => {
            // There is no reader if standard output is closed.
            let _ = std::io::stdout().lock().write_all(options::page().as_bytes());
            Outcome::Done
        }
        Ok(LoadTask::Run(plan)) => run(*plan),
        Err(outcome) => outcome,
    }
}

fn run(plan: plan::Plan) -> Outcome {
    match show::open(&plan) {
        Ok(show) => drive::run(plan, show),
        Err(outcome) => outcome,
    }
}
