//! The test origin: answers every request as its query specifies. Must never depend on anything but the request.
//!
//! `weir origin -L 8080`, then `curl 'http://127.0.0.1:8080/?s=20k&t=100'`. The parameters are those of haterm and
//! httpterm; `docs/origin.md` documents them and the differences. It speaks HTTP/3 as well, and is a FastCGI
//! application and an SPOP agent.

mod answer;
mod arguments;
mod body;
mod capacity;
pub mod certificate;
mod connection;
mod dispatch;
pub mod offload;
mod pattern;
pub mod quic;
pub mod request;
pub mod serve;
mod streams;
mod worker;

use std::ffi::OsString;
use std::io::Write;

use crate::Outcome;
use arguments::Command;

/// Returns the page printed by `--help`.
#[must_use]
pub fn help() -> String {
    arguments::HELP.to_owned()
}

/// Runs the tool with the words after its name.
#[must_use]
pub fn main(words: &[OsString]) -> Outcome {
    match arguments::parse(words) {
        Ok(Command::Serve(settings)) => serve::run(&settings),
        Ok(Command::Help) => {
            let _ = std::io::stdout().lock().write_all(arguments::HELP.as_bytes());
            Outcome::Done
        }
        Err(misused) => misused,
    }
}
