//! `weir diff OLD NEW`: names what differs between two configurations, and whether the running worker can apply it in
//! place. Must never open a socket, nor affect a process.

mod compare;
mod keywords;
mod lines;

use crate::arguments::Settings;
use crate::files;
use crate::load::{self, NotRenewed, PreparedConfiguration, ServedConfiguration};
use crate::messages::{Messages, ReportedError};
use config::document::Document;
use config::spec::Spec;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
USAGE
    weir diff OLD NEW    prints what differs between two configurations, and what a reload does with it

    OLD and NEW are files or folders, as after -f. Each setting that differs is printed with its old and its new value,
    except passwords and keys. Comments, blanks, the place of sections and the order of options make no difference.
    The last line says whether a reload can be done in place, or needs a new worker, and why. Errors of either
    configuration are reported.

STATUS
    0 when nothing differs; 1 when something does; 2 when either cannot be served
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
    let (old, new) = (settings(old), settings(new));
    // Warnings about either are those of `weir -c`.
    messages.hush();
    let (mut before, old_document) = prepare(&old, messages)?;
    let (_, new_document) = prepare(&new, messages)?;
    let written = compare::changes(&old_document, &new_document);
    let (served, obstacle) = effect(&mut before, &new, messages)?;
    // What is only compiled differently, such as the same file name in another folder.
    let changes = if written.is_empty() { &served } else { &written };
    for change in changes {
        crate::print(format!("{change}\n"));
    }
    crate::print(match (obstacle, served.is_empty()) {
        _ if changes.is_empty() => {
            crate::print("Nothing that is served differs.\n");
            return Ok(ExitCode::SUCCESS);
        }
        (None, true) => "A reload changes nothing that is served.\n".to_owned(),
        (None, false) => "A reload can be done in place.\n".to_owned(),
        (Some(why), _) => format!("A reload needs a new worker: {why}.\n"),
    });
    Ok(ExitCode::from(1))
}

/// Returns what a reload changes of the program that is served, and the reason why it needs a new worker.
fn effect(
    before: &mut PreparedConfiguration,
    new: &Settings,
    messages: &mut Messages,
) -> Result<(Vec<String>, Option<String>), ReportedError> {
    // Determines the changes even if only `reload in-place` is missing.
    before.start.supposes_in_place = true;
    let vacant = BTreeSet::new();
    let served =
        ServedConfiguration { start: &before.start, written: &before.spec, program: &before.program, vacant: &vacant };
    match load::renew(new, &served, messages) {
        Ok(renewed) => {
            let is_asked_for = |spec: &Spec| spec.global.lifetime.reload_in_place;
            let missing = match (is_asked_for(&before.spec), is_asked_for(&renewed.spec)) {
                (false, _) => Some(load::NOT_SERVED_IN_PLACE.to_owned()),
                (true, false) => Some(load::NOT_NEW_IN_PLACE.to_owned()),
                (true, true) => None,
            };
            Ok((renewed.changes, missing))
        }
        Err(NotRenewed::Refused) => Err(ReportedError),
        Err(NotRenewed::Classic(why)) => Ok((Vec::new(), Some(why))),
    }
}

/// Reads and compiles a configuration. Returns its words too.
fn prepare(settings: &Settings, messages: &mut Messages) -> Result<(PreparedConfiguration, Document), ReportedError> {
    let found = files::read(&settings.files).map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(&format!("config : {}", error.0)));
        ReportedError
    })?;
    let loaded = load::read(&found, settings, messages);
    let document = loaded.document.clone();
    Ok((load::compile(loaded, settings, messages)?, document))
}
