//! The included tools: a load generator, a test origin, a benchmark, a terminal monitor, a client of the runtime API. Owns whether this build has
//! them (cargo's feature `tools`, on by default). Must never run the proxy.

use std::ffi::OsString;
use std::process::ExitCode;

/// The first words that run a tool.
pub const NAMES: [&str; 5] = ["load", "origin", "bench", "top", "ctl"];

/// Runs the tool that the first word names with the remaining words. `None`: the first word is not a tool.
pub fn run(words: &[OsString]) -> Option<ExitCode> {
    let (first, rest) = words.split_first()?;
    let name = first.to_str().filter(|name| NAMES.contains(name))?;
    Some(start(name, rest))
}

/// Returns the name, the purpose and the help page of each tool of this build.
pub fn helps() -> Vec<(&'static str, &'static str, String)> {
    #[cfg(feature = "tools")]
    return tools::TOOLS.iter().map(|tool| (tool.name, tool.doc, (tool.help)())).collect();
    #[cfg(not(feature = "tools"))]
    Vec::new()
}

#[cfg(feature = "tools")]
fn start(name: &str, words: &[OsString]) -> ExitCode {
    tools::find(name).map_or(ExitCode::FAILURE, |tool| (tool.run)(words).finish(tool.name))
}

#[cfg(not(feature = "tools"))]
fn start(name: &str, _: &[OsString]) -> ExitCode {
    let text = format!("this build of Weir was made without its tools: '{name}' needs the feature 'tools'");
    crate::messages::Messages::new(false, false).alert(&text);
    ExitCode::FAILURE
}

#[cfg(all(test, feature = "tools"))]
mod tests {
    use super::NAMES;

    #[test]
    fn the_names_are_those_of_the_tools() {
        assert!(tools::TOOLS.iter().map(|tool| tool.name).eq(NAMES));
    }
}
