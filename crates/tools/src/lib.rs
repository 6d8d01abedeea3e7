//! The included tools: a load generator, a test origin, a benchmark, a terminal view and a client of the runtime API. They
//! observe a load balancer, this one or another, from outside, and must never depend on its rules: they use `conn` and
//! `rt`, and `config` only to find a socket.
//!
//! Each tool is a command of the program: `weir origin`, `weir load`, `weir bench`, `weir top`,
//! `weir ctl`. Each prints its own
//! output.

pub mod bench;
pub mod ctl;
mod frames;
pub mod load;
pub mod origin;
mod outcome;
mod stats_socket;
pub mod top;

pub use outcome::Outcome;

use std::ffi::OsString;

/// A tool.
pub struct Tool {
    /// The first word of the command line.
    pub name: &'static str,
    /// Description, one line of the help.
    pub doc: &'static str,
    /// Returns its `--help`.
    pub help: fn() -> String,
    /// Runs the tool with the words after its name, to its end.
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
    Tool { name: "ctl", doc: "sends commands to a running process", help: ctl::help, run: ctl::main },
];

/// Returns the tool of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}
