//! The benchmark: runs proxies side by side under the load generator, and reports. Must never judge a proxy by anything
//! but measurements of the same run.
//!
//! Stages of a run: [`arguments`] and [`scenario`] define the task, [`prepare`] resolves both into what is run,
//! [`environment`] checks the machine, [`run`] executes the [`steps`] on a [`stage`], [`measure`] measures one round
//! with a [`client`], and everything is stored in [`results`]. From those alone [`report`], [`table`], [`sizing`] and
//! the [`pages`] of the documentation are generated.

pub mod arguments;
pub mod child;
pub mod client;
pub mod environment;
pub mod figures;
pub mod flame;
pub mod machine;
pub mod measure;
pub mod pages;
pub mod port;
pub mod prepare;
pub mod processor_assignment;
pub mod procfs;
pub mod programs;
pub mod progress;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod sizing;
pub mod stage;
pub mod steps;
pub mod stored;
pub mod syscalls;
pub mod table;
mod text;

use crate::Outcome;
use arguments::Task;
use scenario::shipped;
use std::ffi::OsString;

/// Returns the page printed by `--help`.
#[must_use]
pub fn help() -> String {
    arguments::HELP.to_owned()
}

/// Runs the tool with the words after its name.
#[must_use]
pub fn main(words: &[OsString]) -> Outcome {
    match arguments::parse(words) {
        Err(wrong) => Outcome::Misused(wrong),
        Ok(Task::Help) => said(arguments::HELP),
        Ok(Task::List) => said(&list()),
        Ok(Task::Show(name)) => match shipped::find(&name) {
            Some(text) => said(text),
            None => Outcome::Misused(format!("no scenario '{name}' ships; '--list' prints those that do")),
        },
        Ok(Task::Report(place)) => report::redraw(&place),
        Ok(Task::Sizing(places)) => pages::sizing(&places),
        Ok(Task::Into(page, places)) => pages::into(&page, &places),
        Ok(Task::Run(settings)) => run::run(&settings, &command(words)),
    }
}

fn said(text: &str) -> Outcome {
    progress::write(text);
    Outcome::Done
}

/// Returns every shipped scenario with its title, and its unmet prerequisite.
fn list() -> String {
    let row = |(name, text): &(&str, &str)| {
        let read = scenario::read(name, text).map(|source| source.scenario);
        let title = read.as_ref().map_or("", |scenario| &scenario.title);
        let waits = read.as_ref().ok().and_then(|scenario| scenario.waits_for.as_ref());
        let waits = waits.map_or_else(String::new, |what| format!(" (waits for {what})"));
        format!("{name:<24} {title}{waits}\n")
    };
    shipped::SHIPPED.iter().map(row).collect()
}

/// Returns the command line, quoted for a shell.
fn command(words: &[OsString]) -> String {
    let mut out = "weir bench".to_owned();
    for word in words {
        let word = word.to_string_lossy();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+@%".contains(letter);
        if !word.is_empty() && word.chars().all(plain) {
            out.push_str(&format!(" {word}"));
        } else {
            out.push_str(&format!(" '{}'", word.replace('\'', "'\\''")));
        }
    }
    out
}
