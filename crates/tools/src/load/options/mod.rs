//! The command line: parses words into a [`Plan`]. One table, [`OPTIONS`], is used by the parser, `--help` and the
//! tests. Must never send anything; files of bodies are read here, and names are resolved to addresses.
//!
//! Source: h1load's usage and manual for its options, each of which has the same meaning here. In addition, options
//! may follow URLs, and a value may directly follow its letter (`-c4`).

mod help;
mod table;
mod value;

pub use help::page;
pub use table::{Group, OPTIONS, Row, Value};

use super::plan::{Output, Pace, Plan, Protocol, ReportSink, Tls};
use super::target::{Body, Resolve, Url, Wanted, Wording, prepare};
use crate::Outcome;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use tls::provider::Version;

/// Maximum number of URLs of a run.
pub const MOST_URLS: usize = 1000;
/// Maximum size of all requests of a run together, in bytes.
pub const LARGEST_REQUESTS: usize = 512 << 20;

/// Task selected by the command line.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadTask {
    /// `-h`, `--help`.
    Help,
    /// A run.
    Run(Box<Plan>),
}

/// State of parsing.
pub(super) struct Draft {
    /// Everything but the targets.
    plan: Plan,
    /// Targets with their URLs.
    wanted: Vec<Wanted>,
    /// Settings of the following URLs.
    method: Option<String>,
    fields: Vec<(String, String)>,
    body: Option<Body>,
    /// Setting of the next URL only.
    weight: Option<u32>,
    /// `-R` and `--constant`.
    at_most: Option<f64>,
    constant: Option<f64>,
    /// `--h2`, `--h3`, and the maximum number of concurrent requests (`--streams`).
    h2: bool,
    h3: bool,
    streams: Option<u32>,
    /// `--sni`.
    sni: Option<String>,
    /// The last TLS option.
    of_tls: Option<&'static str>,
    /// The last request option that no URL has followed yet.
    waiting: Option<&'static str>,
}

/// Parses the words after `weir load`.
///
/// # Errors
/// Words that are not understood, a body that cannot be read, a name without an address.
pub fn parse(words: &[OsString], resolve: Resolve<'_>) -> Result<LoadTask, Outcome> {
    let mut draft = Draft::new();
    let mut words = words.iter().map(OsString::as_os_str);
    let mut only_urls = false;
    while let Some(word) = words.next() {
        match word.as_bytes() {
            b"--" if !only_urls => only_urls = true,
            b"-h" | b"--help" if !only_urls => return Ok(LoadTask::Help),
            [b'-', _, ..] if !only_urls => option(&mut draft, word, &mut words)?,
            _ => draft.url(word)?,
        }
    }
    draft.finish(resolve).map(|plan| LoadTask::Run(Box::new(plan)))
}

/// Applies one option, with its attached value or the next word.
fn option<'a>(draft: &mut Draft, word: &OsStr, words: &mut impl Iterator<Item = &'a OsStr>) -> Result<(), Outcome> {
    let (row, attached) = find(word).ok_or_else(|| misused(format!("unknown option '{}'", word.to_string_lossy())))?;
    let value = match (row.value, attached) {
        (Value::None, Some(_)) => return Err(misused(format!("{} takes no value", row.name))),
        (Value::None | Value::Optional(_), None) => None,
        (Value::Needed(_) | Value::Optional(_), Some(value)) => Some(value),
        (Value::Needed(what), None) => {
            Some(words.next().ok_or_else(|| misused(format!("{} expects a value ({what})", row.name)))?)
        }
    };
    if row.group == Group::Tls {
        draft.of_tls = Some(row.name);
    }
    if row.group == Group::Requests {
        draft.waiting = Some(row.name);
    }
    (row.apply)(draft, row.name, value.unwrap_or_default())
}

/// Returns the row of a word, and the value within the word.
fn find(word: &OsStr) -> Option<(&'static Row, Option<&OsStr>)> {
    let bytes = word.as_bytes();
    let row = |name: &[u8]| OPTIONS.iter().find(|row| row.name.as_bytes() == name);
    if let Some(row) = row(bytes) {
        return Some((row, None));
    }
    if bytes.starts_with(b"--") {
        let equals = bytes.iter().position(|byte| *byte == b'=')?;
        return Some((row(&bytes[..equals])?, Some(OsStr::from_bytes(&bytes[equals + 1..]))));
    }
    let row = row(&bytes[..2]).filter(|row| matches!(row.value, Value::Needed(_)))?;
    Some((row, Some(OsStr::from_bytes(&bytes[2..]))))
}

fn misused(why: String) -> Outcome {
    Outcome::Misused(why)
}

impl Draft {
    fn new() -> Self {
        Self {
            plan: Plan {
                targets: Vec::new(),
                connections: 1,
                threads: 1,
                duration: None,
                requests: None,
                requests_per_connection: None,
                ramp_up: Duration::ZERO,
                think: Duration::ZERO,
                timeout: None,
                pace: Pace::AsFastAsAnswered,
                reference: None,
                stop_on_error: false,
                first_untimed: false,
                send_with_handshake: false,
                protocol: Protocol::Http1,
                tls: Tls::default(),
                overhead: None,
                output: Output::default(),
            },
            wanted: Vec::new(),
            method: None,
            fields: Vec::new(),
            body: None,
            weight: None,
            at_most: None,
            constant: None,
            h2: false,
            h3: false,
            streams: None,
            sni: None,
            of_tls: None,
            waiting: None,
        }
    }

    /// Adds a URL with the current request settings.
    fn url(&mut self, word: &OsStr) -> Result<(), Outcome> {
        let text = word.to_str().ok_or_else(|| misused(format!("the URL '{}' is no text", word.to_string_lossy())))?;
        let url = Url::parse(text).map_err(misused)?;
        if self.wanted.len() == MOST_URLS {
            return Err(misused(format!("more than {MOST_URLS} URLs")));
        }
        let usual = if self.body.is_some() { "POST" } else { "GET" };
        self.wanted.push(Wanted {
            url,
            weight: self.weight.take().unwrap_or(1),
            wording: Wording {
                method: self.method.clone().unwrap_or_else(|| usual.to_owned()),
                fields: self.fields.clone(),
                body: self.body.clone(),
            },
        });
        self.waiting = None;
        Ok(())
    }

    /// Sets the protocol, and checks the options that depend on it.
    fn choose_protocol(&mut self) -> Result<(), Outcome> {
        let streams = self.streams.unwrap_or(1);
        let plan = &mut self.plan;
        plan.protocol = match (self.h2, self.h3) {
            (true, true) => return Err(misused("--h2 and --h3 exclude each other".to_owned())),
            (true, false) => Protocol::Http2 { streams },
            (false, true) => Protocol::Http3 { streams },
            (false, false) => Protocol::Http1,
        };
        let multiplexes = plan.protocol != Protocol::Http1;
        if self.streams.is_some() && !multiplexes {
            return Err(misused(
                "--streams needs --h2 or --h3: a connection of HTTP/1 carries one request at a time".to_owned(),
            ));
        }
        if plan.tls.handshakes && self.h2 {
            return Err(misused("--handshakes and --h2 exclude each other: nothing is asked for".to_owned()));
        }
        if plan.tls.handshakes && self.streams.is_some() {
            return Err(misused("--handshakes and --streams exclude each other: nothing is asked for".to_owned()));
        }
        if !self.h3 {
            return Ok(());
        }
        let algorithms = &plan.tls.algorithms;
        let why = if plan.send_with_handshake {
            "-F is for TCP, and --h3 uses QUIC"
        } else if algorithms.ciphers.is_some() {
            "--cipher-list is for TLS 1.2, and --h3 needs TLS 1.3"
        } else if algorithms.versions.1 < Version::Tls13 {
            "--tls-ver TLS1.2 and --h3 exclude each other: QUIC needs TLS 1.3"
        } else if let Some(clear) = self.wanted.iter().find(|wanted| !wanted.url.secure) {
            return Err(misused(format!("--h3 is for https:// URLs, not '{}'", clear.url.written)));
        } else {
            return Ok(());
        };
        Err(misused(why.to_owned()))
    }

    /// Checks combinations of options, and builds the plan.
    fn finish(mut self, resolve: Resolve<'_>) -> Result<Plan, Outcome> {
        if self.wanted.is_empty() {
            return Err(misused("no URL was given".to_owned()));
        }
        if let Some(name) = self.waiting {
            return Err(misused(format!(
                "{name} stands behind the last URL: write it in front of the URL that it is for"
            )));
        }
        let plan = &mut self.plan;
        if plan.threads > plan.connections {
            let (threads, connections) = (plan.threads, plan.connections);
            return Err(misused(format!("-t {threads} is more threads than there are connections (-c {connections})")));
        }
        plan.pace = match (self.at_most, self.constant) {
            (Some(_), Some(_)) => return Err(misused("-R and --constant exclude each other".to_owned())),
            (_, Some(_)) if !plan.think.is_zero() => {
                return Err(misused(
                    "-T and --constant exclude each other: a constant rate waits for nothing".to_owned(),
                ));
            }
            (_, Some(rate)) => Pace::Constant(rate),
            (Some(rate), None) => Pace::AtMost(rate),
            (None, None) => Pace::AsFastAsAnswered,
        };
        places(&plan.output)?;
        self.choose_protocol()?;
        let plan = &mut self.plan;
        let secure = |wanted: &Wanted| wanted.url.secure;
        let wrong = if plan.tls.handshakes { !self.wanted.iter().all(secure) } else { !self.wanted.iter().any(secure) };
        if let Some(name) = self.of_tls.filter(|_| wrong) {
            return Err(misused(format!("{name} is for https:// URLs")));
        }
        let mut size = 0;
        for wanted in &self.wanted {
            let mut target = prepare(wanted, resolve)?;
            if let Some(name) = self.sni.as_ref().filter(|_| target.secure.is_some()) {
                target.secure = Some(name.clone());
            }
            size += target.request.len();
            if size > LARGEST_REQUESTS {
                return Err(misused(format!("the requests are larger than {LARGEST_REQUESTS} bytes together")));
            }
            plan.targets.push(target);
        }
        Ok(self.plan)
    }
}

/// Checks that standard output has only one format, and each file too.
fn places(output: &Output) -> Result<(), Outcome> {
    let on_stdout = |place: &Option<ReportSink>| *place == Some(ReportSink::Stdout);
    let both = match (&output.json, &output.csv) {
        (Some(ReportSink::Stdout), Some(ReportSink::Stdout)) => {
            Some("--json and --csv cannot both have standard output")
        }
        (Some(ReportSink::File(one)), Some(ReportSink::File(other))) if one == other => {
            Some("--json and --csv name the same file")
        }
        _ if output.live && (on_stdout(&output.json) || on_stdout(&output.csv)) => {
            Some("--live needs standard output for itself: write --json=FILE or --csv=FILE")
        }
        _ if output.live && output.quiet => Some("--live and -q exclude each other"),
        _ => None,
    };
    both.map_or(Ok(()), |why| Err(misused(why.to_owned())))
}

#[cfg(test)]
mod tests;
