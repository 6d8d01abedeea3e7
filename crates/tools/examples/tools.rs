//! The tools without the load balancer: builds in seconds, for work on the tools themselves.
//!
//! ```text
//! cargo run --release -p weir-tools --example tools -- load http://127.0.0.1:8080/
//! ```
#![allow(clippy::print_stderr, reason = "an example")]

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let tool = words.first().and_then(|name| name.to_str()).and_then(weir_tools::find);
    let Some(tool) = tool else {
        eprintln!("usage: tools load|origin|bench …");
        return ExitCode::from(2);
    };
    (tool.run)(&words[1..]).finish(tool.name)
}
