//! `weir lint`: reports what a configuration contains that cannot work, though it is accepted. Owns the arguments and
//! the exit status. Must never open a socket, nor affect a process.

use crate::arguments::{self, Command, Settings};
use crate::files;
use crate::help;
use crate::load;
use crate::messages::{Messages, ReportedError};
use config::LoadedConfiguration;
use lint::Configuration;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::rc::Rc;

/// The purpose of the command.
pub const DOC: &str = "reports what a configuration contains that cannot work";

/// The help page.
pub const USAGE: &str = "\
USAGE
    weir lint [OPTIONS] -f FILE [-f FILE]...
    weir lint [OPTIONS] -- FILE...
    weir lint --rules

    Reads the files as 'weir -c' does, with the same flags, and reports lines that are accepted and cannot work. Each finding
    has a file, a line, the name of a rule and a reason. The comment '# lint: allow RULE, RULE' at the end of a line allows
    findings of these rules in that line.

OPTIONS
    -f FILE|FOLDER      loads a file, or every *.cfg file of a folder
    -j                  prints the findings as one JSON object
    --rules             lists the rules
    -h, --help          prints this page

STATUS
    0 without findings; 1 with findings; 2 if the configuration cannot be read, or for a usage error
";

/// Exit status for configurations that cannot be read.
const UNREADABLE: u8 = 2;

/// Runs the command with its arguments.
#[must_use]
pub fn run(words: &[OsString]) -> ExitCode {
    let (own, flags): (Vec<OsString>, Vec<OsString>) = split(words);
    let has = |name: &str| own.iter().any(|word| word == name);
    if has("--help") || has("-h") {
        crate::print(USAGE);
        return ExitCode::SUCCESS;
    }
    if has("--rules") {
        lint::rules().for_each(|rule| crate::print(format!("{:<28} {}\n", rule.name, rule.doc)));
        return ExitCode::SUCCESS;
    }
    match arguments::parse(&flags) {
        Ok(Command::Run(settings)) => examine(Settings { check: true, ..*settings }, has("-j")),
        Ok(_) | Err(arguments::UsageError::NothingToRun) => refuse(&arguments::UsageError::NoConfiguration),
        Err(error) => refuse(&error),
    }
}

/// Separates the words that only this command knows. Words after `--` are files.
fn split(words: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
    let files = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (flags, files) = words.split_at(files);
    let is_own = |word: &OsString| ["-j", "--rules", "--help", "-h"].iter().any(|own| word == own);
    let (own, mut others): (Vec<OsString>, Vec<OsString>) = flags.iter().cloned().partition(is_own);
    others.extend_from_slice(files);
    (own, others)
}

fn refuse(error: &arguments::UsageError) -> ExitCode {
    Messages::new(false, false).alert(&format!("{error}. See 'weir lint --help'."));
    ExitCode::from(UNREADABLE)
}

fn examine(settings: Settings, as_json: bool) -> ExitCode {
    // Warnings of an accepted configuration are those of `weir -c`: only what makes it unusable is printed.
    let said = Kept::default();
    let mut messages = Messages::new(settings.quiet, false);
    messages.speak_through(Box::new(said.clone()));
    let Ok(loaded) = load(&settings, &mut messages) else {
        let _ = std::io::stderr().write_all(&said.0.borrow());
        return ExitCode::from(UNREADABLE);
    };
    let LoadedConfiguration { sources, document, spec, .. } = &loaded;
    let findings = lint::examine(Configuration { sources, document, spec });
    crate::print(if as_json { lint::json(&findings, sources) } else { lint::text(&findings, sources) });
    ExitCode::from(u8::from(!findings.is_empty()))
}

/// Reads a configuration and compiles it as `-c` does.
fn load(settings: &Settings, messages: &mut Messages) -> Result<LoadedConfiguration, ReportedError> {
    load::enter_directory(settings, messages)?;
    let found = files::read(&settings.files).map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(&format!("config : {}", error.0)));
        ReportedError
    })?;
    if found.is_empty() {
        messages.alert(&format!("no configuration file was found in the folders. {}", help::HINT));
        return Err(ReportedError);
    }
    let loaded = load::read(&found, settings, messages);
    load::compile(loaded.clone(), settings, messages)?;
    Ok(loaded)
}

/// Text that is printed later, or never.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
