//! `weir diff OLD NEW`: reports the changes of a reload from one configuration to another, and whether the running
//! worker can apply it in place. Must never open a socket, nor affect a process.

use crate::arguments::Settings;
use crate::files;
use crate::load::{self, NotRenewed, PreparedConfiguration, ServedConfiguration};
use crate::messages::{Messages, ReportedError};
use config::spec::Spec;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
USAGE
    weir diff OLD NEW    tells what a reload from the configuration OLD to NEW would change

    OLD and NEW are files or folders, as behind -f. What is wrong with either is reported. What differs is printed line by
    line, by what it means; then whether a reload can be done in place, or needs a new worker, and why.

STATUS
    0 when it can be done in place; 1 when it needs a new worker; 2 when either cannot be served
";

/// Runs the command with its arguments.
#[must_use]
pub fn run(words: &[OsString]) -> ExitCode {
    let mut messages = Messages::new(false, false);
    match words {
        [word] if word == "--help" || word == "-h" => {
            crate::print(USAGE);
            ExitCode::SUCCESS
        }
        [old, new] => compare(old.into(), new.into(), &mut messages).unwrap_or(ExitCode::from(2)),
        _ => {
            messages.alert("'weir diff' takes two configurations. See 'weir diff --help'.");
            ExitCode::from(2)
        }
    }
}

fn compare(old: PathBuf, new: PathBuf, messages: &mut Messages) -> Result<ExitCode, ReportedError> {
    let settings = |file| Settings { files: vec![file], ..Settings::default() };
    let mut before = prepare(&settings(old), messages)?;
    // Reports the changes even if only `reload in-place` is missing.
    before.start.supposes_in_place = true;
    let vacant = BTreeSet::new();
    let served =
        ServedConfiguration { start: &before.start, written: &before.spec, program: &before.program, vacant: &vacant };
    let (changes, obstacle) = match load::renew(&settings(new), &served, messages) {
        Ok(renewed) => {
            let is_asked_for = |spec: &Spec| spec.global.lifetime.reload_in_place;
            let missing = match (is_asked_for(&before.spec), is_asked_for(&renewed.spec)) {
                (false, _) => Some(load::NOT_SERVED_IN_PLACE.to_owned()),
                (true, false) => Some(load::NOT_NEW_IN_PLACE.to_owned()),
                (true, true) => None,
            };
            (renewed.changes, missing)
        }
        Err(NotRenewed::Refused) => return Err(ReportedError),
        Err(NotRenewed::Classic(why)) => (Vec::new(), Some(why)),
    };
    for change in &changes {
        crate::print(format!("{change}\n"));
    }
    Ok(match obstacle {
        None if changes.is_empty() => {
            crate::print("Nothing that is served differs.\n");
            ExitCode::SUCCESS
        }
        None => {
            crate::print("A reload can be done in place.\n");
            ExitCode::SUCCESS
        }
        Some(why) => {
            crate::print(format!("A reload needs a new worker: {why}.\n"));
            ExitCode::from(1)
        }
    })
}

fn prepare(settings: &Settings, messages: &mut Messages) -> Result<PreparedConfiguration, ReportedError> {
    let found = files::read(&settings.files).map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(&format!("config : {}", error.0)));
        ReportedError
    })?;
    let loaded = load::read(&found, settings, messages);
    load::compile(loaded, settings, messages)
}
