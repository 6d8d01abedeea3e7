//! What a run is to do: plain data. Must never know how it was written on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tls::provider::Algorithms;
use tls::verify::Authorities;

/// Everything that the command line asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is asked for, each with its share. At least one.
    pub targets: Vec<Target>,
    /// `-c`: concurrent connections over all threads.
    pub connections: u32,
    /// `-t`: threads.
    pub threads: u32,
    /// `-d`: how long requests are begun.
    pub duration: Option<Duration>,
    /// `-n`: requests in all.
    pub requests: Option<u64>,
    /// `-r`: requests a connection.
    pub requests_per_connection: Option<u64>,
    /// `-s`: the load rises linearly to its full size over that time.
    pub ramp_up: Duration,
    /// `-T`: pause between an answer and the next request of the same connection.
    pub think: Duration,
    /// `-w`: an I/O that takes longer ends its connection.
    pub timeout: Option<Duration>,
    /// How fast requests begin.
    pub pace: Pace,
    /// The second, slow client beside the load.
    pub reference: Option<Reference>,
    /// `-e`: the first failed connection ends the run.
    pub stop_on_error: bool,
    /// `-A`: the first request of a connection is not timed.
    pub first_untimed: bool,
    /// `-F`: the request rides with the handshake's last segment.
    pub send_with_handshake: bool,
    /// `--h2` and `--streams`: requests at a time on each connection of HTTP/2. `None`: HTTP/1.
    pub streams: Option<u32>,
    /// How `https://` URLs are reached.
    pub tls: Tls,
    /// `-O`: bytes of overhead, and the payload that they come with: what the network adds to the bytes that are counted.
    pub overhead: Option<(u64, u64)>,
    /// What is printed, and how.
    pub output: Output,
}

impl Plan {
    /// What connections by TLS use.
    #[must_use]
    pub fn tls_settings(&self) -> tls::client::Settings {
        tls::client::Settings {
            unused: None,
            algorithms: self.tls.algorithms.clone(),
            alpn: self.streams.map(|_| vec![b"h2".to_vec()]).unwrap_or_default(),
            authorities: self.tls.authorities.clone(),
            host: None,
            certificate: None,
            resumes: self.tls.reuse,
            limits: tls::limits::RecordLimits::default(),
            early_data: false,
        }
    }
}

/// One URL with what is sent to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The URL as it was written.
    pub url: String,
    /// Where its connections go: one address of the name, the same for the whole run.
    pub address: SocketAddr,
    /// The name that TLS asks for and verifies (`https://`); `None`: bytes go in clear.
    pub secure: Option<String>,
    /// Out of the sum of all weights.
    pub weight: u32,
    /// The whole request, head and body, as it is sent.
    pub request: Vec<u8>,
    /// The same with `Connection: close`: the last one that a connection carries, where that is known beforehand.
    pub last_request: Vec<u8>,
    /// Whether the answer has no body whatever its head says (`HEAD`).
    pub head_only: bool,
}

/// What connections by TLS use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tls {
    /// `--tls-ver`, `--cipher-list`, `--cipher-suites`.
    pub algorithms: Algorithms,
    /// `--tls-reuse`: sessions are resumed.
    pub reuse: bool,
    /// `--ca`: servers are verified by these; `None`: no server is verified.
    pub authorities: Option<Arc<Authorities>>,
    /// `--handshakes`: connections shake hands and end; nothing is asked for.
    pub handshakes: bool,
}

/// How requests are spaced in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each connection sends when it has its answer.
    AsFastAsAnswered,
    /// `-R`: the same, but no more than so many requests a second begin; a late one delays those behind it.
    AtMost(f64),
    /// Constant rate: so many requests a second are due, whatever happened to those before them; the time of an answer
    /// counts from the moment when its request was due (coordinated omission is corrected).
    Constant(f64),
}

/// A client of its own, on connections of its own, that measures what a user feels beside the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Requests a second, due at a constant rate.
    pub rate: f64,
    /// Its connections.
    pub connections: u32,
}

/// What is printed, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// `-l` and `-ll`: 1 and 2.
    pub long: u8,
    /// `-P`: the percentiles at the end.
    pub percentiles: bool,
    /// `-S`: the classes of status codes.
    pub statuses: bool,
    /// `-v`, how often.
    pub verbose: u8,
    /// `--json`: one object a line.
    pub json: Option<ReportSink>,
    /// `--csv`: one record a line.
    pub csv: Option<ReportSink>,
    /// `--live`: the terminal is drawn anew each second.
    pub live: bool,
    /// `--summary`: what a terminal gets at the end, wherever the output goes.
    pub summary: bool,
    /// `-q`: nothing but the end.
    pub quiet: bool,
}

/// Where a form is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportSink {
    /// Standard output, instead of the columns.
    Stdout,
    /// A file, beside the columns.
    File(PathBuf),
}
