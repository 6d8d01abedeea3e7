//! The tools in the box: a load generator, a test origin, a benchmark and a terminal view. They look at a load balancer, this
//! one or another, from outside, and must never know its rules: they stand on `conn` and `rt` alone.
//!
//! Each tool is a command of the program: `weir origin`, `weir load`, `weir bench`, `weir top`. What they print is theirs to print.

pub mod bench;
mod frames;
pub mod load;
pub mod origin;
mod outcome;
pub mod top;

pub use outcome::Outcome;

use std::ffi::OsString;

/// A tool by its name.
pub struct Tool {
    /// The first word of the command line.
    pub name: &'static str,
    /// What it does, one line of the help.
    pub doc: &'static str,
    /// Its `--help`.
    pub help: fn() -> String,
    /// Runs it with the words behind its name, to its end.
    pub run: fn(&[OsString]) -> Outcome,
}

/// Every tool.
pub const TOOLS: &[Tool] = &[
    Tool { name: "load", doc: "sends requests and measures the answers", help: load::help, run: load::main },
    Tool { name: "origin", doc: "answers requests with whatever they ask for", help: origin::help, run: origin::main },
    Tool {
        name: "bench",
        doc: "measures proxies side by side and draws the result",
        help: bench::help,
        run: bench::main,
    },
    Tool { name: "top", doc: "shows what a running process does", help: top::help, run: top::main },
];

/// The tool of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}
