//! What a benchmark is to do, read from a TOML file: the proxies, the origins, the load, what is varied. Must never start
//! anything.

pub mod list;
pub mod quantity;
pub mod shipped;
pub mod template;
#[cfg(test)]
mod tests;
mod verify;

use list::List;
use quantity::{RampUp, Rate, Seat, Seconds, Size};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A whole file. See docs/benchmarks.md for what each key means.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A short name: small letters, digits and `-`.
    pub name: Spanned<String>,
    /// One line.
    pub title: String,
    /// The published method that it repeats.
    #[serde(default)]
    pub repeats: String,
    /// What Weir lacks for all of it.
    pub waits_for: Option<String>,
    /// How often everything is measured.
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
    /// The load.
    pub load: Load,
    /// What is varied.
    #[serde(default)]
    pub sweep: Sweep,
    /// Where everything runs.
    #[serde(default)]
    pub processors: Seats,
    /// What is asked of the system.
    #[serde(default)]
    pub limits: BenchLimits,
    /// The origins; `weir origin` where there is none.
    #[serde(default)]
    pub origin: Vec<Origin>,
    /// The proxies, in the order in which they are compared.
    pub proxy: Vec<Proxy>,
}

/// The load: options of `weir load`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// `http` or `https`.
    pub scheme: Option<Spanned<String>>,
    /// What is asked for; `{size}` is the size of the sweep.
    pub path: Spanned<String>,
    /// `GET` where it is not written.
    pub method: Option<Spanned<String>>,
    /// Fields of the request.
    #[serde(default)]
    pub headers: BTreeMap<String, Spanned<String>>,
    /// Concurrent connections.
    #[serde(default = "sixty_four")]
    pub connections: Spanned<u32>,
    /// Threads of the load.
    #[serde(default = "one")]
    pub threads: Spanned<u32>,
    /// How long each round is measured.
    pub duration: Spanned<Seconds>,
    /// How long a fresh proxy is warmed up before that, with the same load.
    pub warm_up: Option<Seconds>,
    /// How long the load rises.
    #[serde(default)]
    pub ramp_up: RampUp,
    /// Requests after which a connection is closed; never where it is not written.
    pub requests_per_connection: Option<Spanned<u64>>,
    /// Requests that are due each second, at a constant rate.
    pub rate: Option<Rate>,
    /// Requests a second that are not exceeded.
    pub at_most: Option<Rate>,
    /// Requests a second of the reference client.
    pub reference: Option<Rate>,
    /// Pause of a connection between an answer and its next request.
    pub think: Option<Seconds>,
    /// Further options of `weir load`, as they are.
    #[serde(default)]
    pub options: Vec<String>,
}

/// What is varied: every combination of these is measured.
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

/// Which processors each part runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seats {
    /// The proxy.
    pub proxy: Seat,
    /// The origins.
    pub origin: Seat,
    /// The load.
    pub load: Seat,
}

impl Default for Seats {
    fn default() -> Self {
        Self { proxy: Seat::Workers, origin: Seat::Rest, load: Seat::Rest }
    }
}

/// What is asked of the system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BenchLimits {
    /// Open files of each process; what the connections need where it is not written.
    pub descriptors: Option<u64>,
}

/// An origin.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Its command line.
    pub command: Vec<Spanned<String>>,
    /// Files that are written into its folder.
    #[serde(default)]
    pub files: BTreeMap<Spanned<String>, Spanned<String>>,
}

/// A proxy.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Its name in the results: letters, digits, `.`, `_` and `-`.
    pub name: Spanned<String>,
    /// Its command line.
    pub command: Vec<Spanned<String>>,
    /// The command whose first line tells its version.
    #[serde(default)]
    pub version: Vec<Spanned<String>>,
    /// Files that are written into its folder.
    #[serde(default)]
    pub files: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Files beside its program that it cannot do without; empty names count for nothing.
    #[serde(default)]
    pub needs: Vec<Spanned<String>>,
    /// It is left out where its program is missing, or what it needs.
    #[serde(default)]
    pub optional: bool,
    /// What Weir lacks for it: until then it is left out.
    pub waits_for: Option<String>,
}

/// A scenario with the text that it was read from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file's name, for messages.
    pub file: String,
    /// Its content.
    pub text: String,
    /// What it says.
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

/// Reads a scenario.
///
/// # Errors
/// `FILE:LINE:COLUMN: ` and what was expected there.
pub fn read(file: &str, text: &str) -> Result<Source, String> {
    let placed = |span: Option<std::ops::Range<usize>>, what: &str| {
        let (line, column) = place(text, span.map_or(0, |span| span.start));
        format!("{file}:{line}:{column}: {}", what.trim().replace('\n', " "))
    };
    let scenario: Scenario = toml::from_str(text).map_err(|error| placed(error.span(), error.message()))?;
    verify::verify(&scenario).map_err(|wrong| placed(Some(wrong.span), &wrong.what))?;
    Ok(Source { file: file.to_owned(), text: text.to_owned(), scenario })
}

/// Line and column, from 1, of a byte of a text.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}
