//! The task of a benchmark, parsed from a TOML file: the proxies, the origins, the load, the sweep. Must never start
//! anything.

pub mod list;
pub mod quantity;
pub mod shipped;
pub mod template;
#[cfg(test)]
mod tests;
mod verify;

use list::List;
use quantity::{ProcessorChoice, RampUp, Rate, Seconds, Size};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A whole file. The keys are documented in docs/benchmarks.md.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A short name: lower case letters, digits and `-`.
    pub name: Spanned<String>,
    pub title: String,
    /// The published method that it repeats.
    #[serde(default)]
    pub repeats: String,
    /// Unmet prerequisite in Weir of the whole scenario.
    pub waits_for: Option<String>,
    /// Number of rounds.
    #[serde(default = "five")]
    pub rounds: Spanned<u32>,
    /// Placeholders of the scenario's own; `--set` changes them.
    #[serde(default)]
    pub values: BTreeMap<Spanned<String>, String>,
    /// Files that are written into the folder of every proxy, by name.
    #[serde(default)]
    pub files: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Lists that are written into the folder `{lists}`, by name.
    #[serde(default)]
    pub lists: BTreeMap<Spanned<String>, List>,
    pub load: Load,
    /// Varied parameters.
    #[serde(default)]
    pub sweep: Sweep,
    /// Processors of each role.
    #[serde(default)]
    pub processors: RoleProcessors,
    /// System limits.
    #[serde(default)]
    pub limits: BenchLimits,
    /// The origins; default `weir origin`.
    #[serde(default)]
    pub origin: Vec<Origin>,
    /// The proxies, in the order of comparison.
    pub proxy: Vec<Proxy>,
}

/// The load: options of `weir load`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// `http` or `https`.
    pub scheme: Option<Spanned<String>>,
    /// Path of the requests; `{size}` is the size of the sweep.
    pub path: Spanned<String>,
    /// Default `GET`.
    pub method: Option<Spanned<String>>,
    /// Header fields of the requests.
    #[serde(default)]
    pub headers: BTreeMap<String, Spanned<String>>,
    /// Concurrent connections.
    #[serde(default = "sixty_four")]
    pub connections: Spanned<u32>,
    /// Threads of the load.
    #[serde(default = "one")]
    pub threads: Spanned<u32>,
    /// Duration of the measurement in each round.
    pub duration: Spanned<Seconds>,
    /// Warm-up of a fresh proxy before the measurement, with the same load.
    pub warm_up: Option<Seconds>,
    /// Ramp-up time of the load.
    #[serde(default)]
    pub ramp_up: RampUp,
    /// Requests after which a connection is closed; default: never.
    pub requests_per_connection: Option<Spanned<u64>>,
    /// Constant rate, in requests per second.
    pub rate: Option<Rate>,
    /// Maximum rate, in requests per second.
    pub at_most: Option<Rate>,
    /// Rate of the reference client, in requests per second.
    pub reference: Option<Rate>,
    /// Pause of a connection between a response and its next request.
    pub think: Option<Seconds>,
    /// Further options of `weir load`, passed unchanged.
    #[serde(default)]
    pub options: Vec<String>,
}

/// Varied parameters: every combination of these is measured.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Object sizes.
    #[serde(default)]
    pub sizes: Vec<Size>,
    /// Offered rates.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// Threads of the proxy.
    #[serde(default)]
    pub workers: Vec<Spanned<u32>>,
    /// Connections of the load.
    #[serde(default)]
    pub connections: Vec<Spanned<u32>>,
}

/// Processors of each role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoleProcessors {
    pub proxy: ProcessorChoice,
    pub origin: ProcessorChoice,
    pub load: ProcessorChoice,
}

impl Default for RoleProcessors {
    fn default() -> Self {
        Self { proxy: ProcessorChoice::Workers, origin: ProcessorChoice::Rest, load: ProcessorChoice::Rest }
    }
}

/// System limits.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchLimits {
    /// Maximum number of open files of each process; default: derived from the connections.
    pub descriptors: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    pub command: Vec<Spanned<String>>,
    /// Files that are written into its folder.
    #[serde(default)]
    pub files: BTreeMap<Spanned<String>, Spanned<String>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Name in the results: letters, digits, `.`, `_` and `-`.
    pub name: Spanned<String>,
    pub command: Vec<Spanned<String>>,
    /// Command whose first line of output is the version.
    #[serde(default)]
    pub version: Vec<Spanned<String>>,
    /// Files that are written into its folder.
    #[serde(default)]
    pub files: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Files that it requires besides its program; empty names are ignored.
    #[serde(default)]
    pub needs: Vec<Spanned<String>>,
    /// A feature that its program has to have.
    pub requires: Option<RequiredFeature>,
    /// It is left out if its program, a required file or a required feature is missing.
    #[serde(default)]
    pub optional: bool,
    /// Unmet prerequisite in Weir: the proxy is left out while it is set.
    pub waits_for: Option<String>,
}

/// A feature of a program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequiredFeature {
    /// Command that prints the program's features.
    pub command: Vec<Spanned<String>>,
    /// Text that its output contains if the program has the feature.
    pub text: Spanned<String>,
}

/// A scenario with the text that it was read from.
#[derive(Debug, Clone)]
pub struct Source {
    /// Name of the file, for messages.
    pub file: String,
    pub text: String,
    pub scenario: Scenario,
}

fn five() -> Spanned<u32> {
    Spanned::new(0..0, 5)
}

fn sixty_four() -> Spanned<u32> {
    Spanned::new(0..0, 64)
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

/// Parses a scenario.
///
/// # Errors
/// `FILE:LINE:COLUMN: ` and the expected value.
pub fn read(file: &str, text: &str) -> Result<Source, String> {
    let placed = |span: Option<std::ops::Range<usize>>, what: &str| {
        let (line, column) = place(text, span.map_or(0, |span| span.start));
        format!("{file}:{line}:{column}: {}", what.trim().replace('\n', " "))
    };
    let scenario: Scenario = toml::from_str(text).map_err(|error| placed(error.span(), error.message()))?;
    verify::verify(&scenario).map_err(|wrong| placed(Some(wrong.span), &wrong.what))?;
    Ok(Source { file: file.to_owned(), text: text.to_owned(), scenario })
}

/// Returns line and column, from 1, of a byte of a text.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}
