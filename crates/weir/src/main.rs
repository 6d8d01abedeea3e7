//! The Weir load balancer: the program. Parses its arguments and runs the requested command.

mod acme;
mod arguments;
mod background;
mod cache_files;
mod datagram_group;
mod demo;
mod detected;
mod diff;
mod dump;
mod files;
mod help;
mod host;
mod identity;
mod in_place;
mod kept_counts;
mod libraries;
mod lint;
mod listeners;
mod load;
mod machine;
mod master;
mod material;
mod messages;
mod platform;
mod predecessors;
mod preloaded;
mod process;
mod processors;
mod qlog;
mod reader;
mod reload;
mod report;
mod resolve;
mod rights;
mod saved_state;
mod scripts;
mod serve;
mod shared_counts;
mod shell;
mod signals;
mod standard_error;
mod takeover;
mod tool;
mod topology;
mod version;
mod worker;

use arguments::{Command, UsageError};
use config::condition::{ConditionContext, eval_argument};
use config::environment::Environment;
use config::language::variables::define;
use messages::Messages;
use rt::SocketCalls;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Counts every allocation, so that clients are throttled before memory is exhausted.
#[global_allocator]
static ALLOCATOR: rt::memory::Counting = rt::memory::Counting;

fn main() -> ExitCode {
    identity::began();
    SocketCalls::detected().set();
    let mut words = std::env::args_os();
    words.next();
    let words: Vec<OsString> = words.collect();
    let called_haproxy = identity::is_haproxy();
    identity::name_process();
    if let Some(code) = tool::run(&words) {
        return code;
    }
    if let Some(code) = shell::run(&words) {
        return code;
    }
    match words.split_first() {
        Some((first, rest)) if first == "reload" => return reload::run(rest),
        Some((first, rest)) if first == "diff" => return diff::run(rest),
        Some((first, rest)) if first == "lint" => return lint::run(rest),
        _ => {}
    }
    rt::signal::discard_inherited();
    match arguments::parse(&words) {
        // HAProxy without arguments shows its usage; callers of that name expect it.
        Ok(Command::Demonstrate) if called_haproxy => refuse(&UsageError::NoConfiguration),
        Ok(Command::Demonstrate) => demo::run(),
        Ok(Command::Run(settings)) => process::run(&settings),
        Ok(Command::Evaluate { condition, quiet }) => evaluate(&condition, quiet),
        Ok(Command::Version(form)) => answer(&version::text(form, called_haproxy)),
        Ok(Command::Help) => answer(&help::page()),
        // Under that name there is no demonstration.
        Err(UsageError::NothingToRun) if called_haproxy => refuse(&UsageError::NoConfiguration),
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &UsageError) -> ExitCode {
    Messages::new(false, false).alert(&format!("{error}. {}", help::HINT));
    ExitCode::FAILURE
}

fn answer(text: &str) -> ExitCode {
    print(text);
    ExitCode::SUCCESS
}

/// Writes to standard output. A closed pipe is not an error: `weir --help | head -1` is valid.
fn print(text: impl AsRef<[u8]>) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_ref()).and_then(|()| out.flush());
}

/// Evaluates the condition of `-cc`.
fn evaluate(condition: &str, quiet: bool) -> ExitCode {
    let options = detected::options();
    let mut environment = Environment::of_process();
    define(&mut environment, options.version, &[], &host::name());
    let context = ConditionContext { environment: &environment, options: &options };
    match eval_argument(condition.as_bytes(), &context) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            Messages::new(quiet, false).alert(&error.to_string());
            ExitCode::from(2)
        }
    }
}
