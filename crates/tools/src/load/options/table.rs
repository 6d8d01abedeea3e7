//! The table of options: each with its value, its group in the help and its effect on the draft. Must never act on one.

use super::value::{count, limit, rate, time};
use super::{Draft, misused};
use crate::Outcome;
use crate::load::plan::{Reference, ReportSink};
use crate::load::target::{LARGEST_BODY, check_field, check_method, read_body};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tls::pem::Wrong;
use tls::provider::{ParsedNames, Version};
use tls::verify::Authorities;

/// Maximum number of connections of a run.
const MOST_CONNECTIONS: u64 = 1_000_000;
/// Maximum number of concurrent requests of a connection.
const MOST_STREAMS: u64 = 100_000;
/// Maximum size of a file of certificates, in bytes.
const LARGEST_AUTHORITIES: u64 = 16 << 20;
/// Maximum number of threads of a run.
const MOST_THREADS: u64 = 1024;
/// Maximum of a limit on requests.
const MOST_REQUESTS: u64 = 1_000_000_000_000_000;
/// Maximum rate, in requests per second.
const MOST_RATE: f64 = 1e9;
/// Maximum rate of the reference client, in requests per second.
const MOST_REFERENCE: f64 = 1e6;
/// Maximum weight.
const MOST_WEIGHT: u64 = 1_000_000;
/// Maximum number of field lines of a request.
const MOST_FIELDS: usize = 256;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Position of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// The option has no value.
    None,
    /// The next word, or attached to the option's letter, or after `=`; the text is its name in the help.
    Needed(&'static str),
    /// After `=`, or missing.
    Optional(&'static str),
}

/// Headings of the help text, in the order in which they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Size, duration, rate.
    Load,
    /// Content of requests. These apply to the URLs after them.
    Requests,
    /// Output.
    Output,
    /// TLS of `https://` URLs.
    Tls,
}

impl Group {
    /// Every group with its heading.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (Self::Load, "Load"),
        (Self::Requests, "Requests: each applies to the URLs after it, until it is repeated"),
        (Self::Output, "Output"),
        (Self::Tls, "TLS: of https:// URLs"),
    ];
}

type Apply = fn(&mut Draft, &'static str, &OsStr) -> Result<(), Outcome>;

pub struct Row {
    /// The option with its dashes.
    pub name: &'static str,
    pub value: Value,
    /// Group in the help.
    pub group: Group,
    /// Description, one sentence.
    pub doc: &'static str,
    /// Applies it to the draft: the arguments are the draft, the option's own name, and its value (empty without one).
    pub(super) apply: Apply,
}

const fn row(name: &'static str, value: Value, group: Group, doc: &'static str, apply: Apply) -> Row {
    Row { name, value, group, doc, apply }
}

/// A row for an option that stores one expression of its value.
macro_rules! set {
    ($name:literal, $value:literal, $group:ident, $doc:literal, $read:expr, $($field:ident).+) => {
        row($name, Value::Needed($value), Group::$group, $doc, |draft, name, value| {
            draft.$($field).+ = expected(name, value, $read)?;
            Ok(())
        })
    };
}

/// A row for an option that sets one boolean.
macro_rules! switch {
    ($name:literal, $group:ident, $doc:literal, $($field:ident).+) => {
        row($name, Value::None, Group::$group, $doc, |draft, _, _| {
            draft.$($field).+ = true;
            Ok(())
        })
    };
}

/// Every option except `-h`, `--help` and `--`, which the parser handles itself.
pub const OPTIONS: &[Row] = &[
    set!("-c", "CONNECTIONS", Load, "concurrent connections, over all threads (1)", connections, plan.connections),
    set!("-t", "THREADS", Load, "threads, no more than connections (1)", threads, plan.threads),
    set!(
        "-d",
        "TIME",
        Load,
        "time during which requests are started, in seconds without a unit (until interrupted)",
        |text| { Ok(Some(time(text, SECOND)?).filter(|time| !time.is_zero())) },
        plan.duration
    ),
    set!("-n", "REQUESTS", Load, "total number of requests (no limit)", requests, plan.requests),
    set!("-r", "REQUESTS", Load, "requests per connection (no limit)", requests, plan.requests_per_connection),
    set!(
        "-s",
        "TIME",
        Load,
        "soft start: time until all connections are open, or the full rate is reached (0 s)",
        |text| time(text, SECOND),
        plan.ramp_up
    ),
    set!(
        "-R",
        "RATE",
        Load,
        "maximum requests per second; late answers delay further requests (no limit)",
        |text| rate(text, MOST_RATE),
        at_most
    ),
    set!(
        "--constant",
        "RATE",
        Load,
        "requests per second that are due; times count from when each was due",
        |text| rate(text, MOST_RATE),
        constant
    ),
    row(
        "--reference",
        Value::Needed("RATE[,CONNS]"),
        Group::Load,
        "additional client that measures at this constant rate (1 connection)",
        |draft, name, value| {
            draft.plan.reference = expected(name, value, reference)?;
            Ok(())
        },
    ),
    set!(
        "-T",
        "TIME",
        Load,
        "pause between an answer and the next request, in ms without a unit (0)",
        |text| time(text, MILLISECOND),
        plan.think
    ),
    set!("-w", "TIME", Load, "timeout, in ms without a unit (no limit)", timeout, plan.timeout),
    switch!("--h2", Load, "speaks HTTP/2: by ALPN over TLS, else by prior knowledge", h2),
    switch!("--h3", Load, "speaks HTTP/3 over QUIC, to https:// URLs", h3),
    set!(
        "--streams",
        "STREAMS",
        Load,
        "requests at a time on each connection of HTTP/2 or HTTP/3 (1)",
        |text| count(text, 1, MOST_STREAMS).map(|number| Some(small(number))),
        streams
    ),
    switch!("-e", Load, "ends the run with the first failed connection", plan.stop_on_error),
    switch!("-F", Load, "sends the request with the last segment of the handshake", plan.send_with_handshake),
    row(
        "-H",
        Value::Needed("'NAME: VALUE'"),
        Group::Requests,
        "adds a field; Host, Content-Length and Connection replace the default ones",
        field,
    ),
    row("-I", Value::None, Group::Requests, "sends HEAD requests", |draft, _, _| {
        draft.method = Some("HEAD".to_owned());
        Ok(())
    }),
    row(
        "-X",
        Value::Needed("METHOD"),
        Group::Requests,
        "sets the method (GET, or POST with a body)",
        |draft, name, value| {
            draft.method = Some(expected(name, value, check_method)?);
            Ok(())
        },
    ),
    row("--data", Value::Needed("TEXT"), Group::Requests, "sends a body", |draft, _, value| {
        draft.body = Some(value.as_encoded_bytes().into());
        Ok(())
    }),
    row(
        "--body",
        Value::Needed("FILE"),
        Group::Requests,
        "sends the content of a file as body, up to 64 MB",
        |draft, _, value| {
            draft.body = Some(read_body(Path::new(value))?);
            Ok(())
        },
    ),
    set!("--weight", "NUMBER", Requests, "share of the next URL only, in the sum of all weights (1)", weight, weight),
    row("-l", Value::None, Group::Output, "long lines: dates and bytes per second; twice as -ll", |draft, _, _| {
        draft.plan.output.long = (draft.plan.output.long + 1).min(2);
        Ok(())
    }),
    row("-ll", Value::None, Group::Output, "the same with plain numbers", |draft, _, _| {
        draft.plan.output.long = 2;
        Ok(())
    }),
    switch!("-S", Output, "adds answers by status class", plan.output.statuses),
    switch!(
        "-P",
        Output,
        "prints percentiles of the times to the first and the last byte at the end",
        plan.output.percentiles
    ),
    switch!("-A", Output, "excludes the first request of each connection from the times", plan.first_untimed),
    row(
        "-O",
        Value::Needed("EXTRA/PAYLOAD"),
        Group::Output,
        "adds EXTRA bytes for each PAYLOAD bytes to the bytes per second",
        |draft, name, value| {
            draft.plan.overhead = Some(expected(name, value, overhead)?);
            Ok(())
        },
    ),
    row(
        "--json",
        Value::Optional("FILE"),
        Group::Output,
        "prints one JSON object per line instead of columns, or to FILE",
        |draft, _, value| {
            draft.plan.output.json = Some(place(value));
            Ok(())
        },
    ),
    row(
        "--csv",
        Value::Optional("FILE"),
        Group::Output,
        "prints comma-separated values instead, or to FILE",
        |draft, _, value| {
            draft.plan.output.csv = Some(place(value));
            Ok(())
        },
    ),
    switch!("--live", Output, "draws the run on the terminal every second", plan.output.live),
    switch!("--summary", Output, "prints a summary at the end, as on a terminal", plan.output.summary),
    switch!("-q", Output, "prints only the final output", plan.output.quiet),
    row("-v", Value::None, Group::Output, "prints what will be sent where; twice: the heads", |draft, _, _| {
        draft.plan.output.verbose = draft.plan.output.verbose.saturating_add(1);
        Ok(())
    }),
    set!(
        "--cipher-list",
        "CIPHERS",
        Tls,
        "cipher suites of TLS 1.2, as OpenSSL names them",
        |text| named(tls::provider::ciphers(text)),
        plan.tls.algorithms.ciphers
    ),
    set!(
        "--cipher-suites",
        "SUITES",
        Tls,
        "cipher suites of TLS 1.3",
        |text| named(tls::provider::ciphersuites(text)),
        plan.tls.algorithms.ciphersuites
    ),
    set!(
        "--tls-ver",
        "VERSION",
        Tls,
        "the only version: TLS1.2 or TLS1.3 (both)",
        version,
        plan.tls.algorithms.versions
    ),
    set!(
        "--curves",
        "GROUPS",
        Tls,
        "groups of the key exchange, the first one's key is sent first",
        |text| named(tls::provider::groups(text)),
        plan.tls.algorithms.groups
    ),
    switch!("--tls-reuse", Tls, "resumes sessions, each connection that of the one before", plan.tls.reuse),
    switch!("--handshakes", Tls, "shakes hands and closes; no request is sent", plan.tls.handshakes),
    set!(
        "--sni",
        "NAME",
        Tls,
        "the name to ask for and to verify (the URL's)",
        |text| Ok(Some(server_name(text)?)),
        sni
    ),
    row(
        "--ca",
        Value::Needed("FILE"),
        Group::Tls,
        "verifies servers by the certificates in FILE (no server is verified)",
        |draft, _, value| {
            draft.plan.tls.authorities = Some(authorities(Path::new(value))?);
            Ok(())
        },
    ),
];

/// Parses a value, or returns a message with the option and the expected value.
fn expected<T>(name: &str, value: &OsStr, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, Outcome> {
    let refuse = |what: String| misused(format!("{name} expects {what}, not '{}'", value.to_string_lossy()));
    value.to_str().ok_or_else(|| "text".to_owned()).and_then(read).map_err(refuse)
}

/// Converts a number that is known to fit.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn connections(text: &str) -> Result<u32, String> {
    count(text, 1, MOST_CONNECTIONS).map(small)
}

fn threads(text: &str) -> Result<u32, String> {
    count(text, 1, MOST_THREADS).map(small)
}

fn requests(text: &str) -> Result<Option<u64>, String> {
    limit(text, MOST_REQUESTS)
}

fn weight(text: &str) -> Result<Option<u32>, String> {
    count(text, 1, MOST_WEIGHT).map(|number| Some(small(number)))
}

/// h1load's default is -1: no timeout.
fn timeout(text: &str) -> Result<Option<Duration>, String> {
    if text == "-1" {
        return Ok(None);
    }
    Ok(Some(time(text, MILLISECOND)?).filter(|time| !time.is_zero()))
}

fn reference(text: &str) -> Result<Option<Reference>, String> {
    let (text, connections) = match text.split_once(',') {
        Some((text, number)) => (text, count(number, 1, MOST_CONNECTIONS).map(small)),
        None => (text, Ok(1)),
    };
    let asked = rate(text, MOST_REFERENCE).ok().zip(connections.ok());
    let (rate, connections) = asked.ok_or_else(|| "a rate such as 100, or 100,4 with its connections".to_owned())?;
    Ok(rate.map(|rate| Reference { rate, connections }))
}

fn version(text: &str) -> Result<(Version, Version), String> {
    match text.to_ascii_uppercase().replace("TLSV", "TLS").as_str() {
        "TLS1.2" => Ok((Version::Tls12, Version::Tls12)),
        "TLS1.3" => Ok((Version::Tls13, Version::Tls13)),
        _ => Err("TLS1.2 or TLS1.3".to_owned()),
    }
}

/// Returns suites or groups; all names must be known.
fn named<T>(named: ParsedNames<T>) -> Result<Option<Vec<T>>, String> {
    match named.unknown.first() {
        Some(name) => Err(format!("names of OpenSSL's ('{name}' is none that is supported)")),
        None if named.found.is_empty() => Err("names of OpenSSL's".to_owned()),
        None => Ok(Some(named.found)),
    }
}

fn server_name(text: &str) -> Result<String, String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    let fits = !text.is_empty() && text.len() <= 253 && text.bytes().all(known);
    fits.then(|| text.to_owned()).ok_or_else(|| "the name of a host".to_owned())
}

/// Reads a file of CA certificates for the verification of servers.
fn authorities(path: &Path) -> Result<Arc<Authorities>, Outcome> {
    let cannot = |why: String| Outcome::Failed(format!("--ca '{}': {why}", path.display()));
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST_AUTHORITIES).read_to_end(&mut text));
    read.map_err(|error| cannot(error.to_string()))?;
    match tls::pem::certificates(&text) {
        Ok(roots) => Ok(Arc::new(Authorities { roots, ..Authorities::default() })),
        Err(Wrong::Nothing) => Err(cannot("it has no certificate".to_owned())),
        Err(Wrong::Broken(why)) => Err(cannot(why)),
    }
}

fn overhead(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str, least| count(text, least, LARGEST_BODY).ok();
    let pair = text.split_once('/').and_then(|(extra, payload)| number(extra, 0).zip(number(payload, 1)));
    pair.ok_or_else(|| "two numbers of bytes such as 66/1448".to_owned())
}

fn field(draft: &mut Draft, name: &'static str, value: &OsStr) -> Result<(), Outcome> {
    if draft.fields.len() == MOST_FIELDS {
        return Err(misused(format!("{name} was written more than {MOST_FIELDS} times")));
    }
    draft.fields.push(expected(name, value, check_field)?);
    Ok(())
}

fn place(value: &OsStr) -> ReportSink {
    if value.is_empty() { ReportSink::Stdout } else { ReportSink::File(PathBuf::from(value)) }
}
