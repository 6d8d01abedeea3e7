//! Parameters of a run: plain data. Must never depend on the command line's syntax.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tls::provider::{Algorithms, Version};
use tls::verify::Authorities;

/// Parameters set by the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Targets with their weights. At least one.
    pub targets: Vec<Target>,
    /// `-c`: concurrent connections over all threads.
    pub connections: u32,
    /// `-t`: threads.
    pub threads: u32,
    /// `-d`: duration for which requests are started.
    pub duration: Option<Duration>,
    /// `-n`: total number of requests.
    pub requests: Option<u64>,
    /// `-r`: requests per connection.
    pub requests_per_connection: Option<u64>,
    /// `-s`: time over which the load rises linearly to its full size.
    pub ramp_up: Duration,
    /// `-T`: pause between a response and the next request of the same connection.
    pub think: Duration,
    /// `-w`: I/O timeout, which ends the connection.
    pub timeout: Option<Duration>,
    /// Pace of requests.
    pub pace: Pace,
    /// The second client with a low rate, in addition to the load.
    pub reference: Option<Reference>,
    /// `-e`: the first failed connection ends the run.
    pub stop_on_error: bool,
    /// `-A`: the first request of a connection is not timed.
    pub first_untimed: bool,
    /// `-F`: the request is sent with the handshake's last segment.
    pub send_with_handshake: bool,
    /// `--h2`, `--h3` and `--streams`.
    pub protocol: Protocol,
    /// TLS of `https://` URLs.
    pub tls: Tls,
    /// `-O`: bytes of network overhead, and the size of the payload that each belongs to; added to the counted bytes.
    pub overhead: Option<(u64, u64)>,
    /// Output formats and destinations.
    pub output: Output,
}

impl Plan {
    /// Returns the TLS settings of connections.
    #[must_use]
    pub fn tls_settings(&self) -> tls::client::Settings {
        let (alpn, versions) = match self.protocol {
            Protocol::Http1 => (Vec::new(), self.tls.algorithms.versions),
            Protocol::Http2 { .. } => (vec![b"h2".to_vec()], self.tls.algorithms.versions),
            // QUIC has no other version (RFC 9001, section 4.2).
            Protocol::Http3 { .. } => (vec![b"h3".to_vec()], (Version::Tls13, Version::Tls13)),
        };
        tls::client::Settings {
            unused: None,
            algorithms: Algorithms { versions, ..self.tls.algorithms.clone() },
            alpn,
            authorities: self.tls.authorities.clone(),
            host: None,
            certificate: None,
            resumes: self.tls.reuse,
            limits: tls::limits::RecordLimits::default(),
            early_data: false,
        }
    }
}

/// Protocol of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 over TCP.
    Http2 {
        /// Maximum number of concurrent requests on each connection.
        streams: u32,
    },
    /// HTTP/3 over QUIC.
    Http3 {
        /// Maximum number of concurrent requests on each connection.
        streams: u32,
    },
}

impl Protocol {
    /// Returns the same protocol with one request at a time.
    #[must_use]
    pub fn with_one_stream(self) -> Self {
        match self {
            Self::Http1 => Self::Http1,
            Self::Http2 { .. } => Self::Http2 { streams: 1 },
            Self::Http3 { .. } => Self::Http3 { streams: 1 },
        }
    }
}

/// One URL with its request.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The URL as written.
    pub url: String,
    /// Address of its connections: one address of the name, the same for the whole run.
    pub address: SocketAddr,
    /// Server name of TLS for SNI and verification (`https://`); `None`: without TLS.
    pub secure: Option<String>,
    /// Share of the requests, relative to the sum of all weights.
    pub weight: u32,
    /// The whole request, head and body, as sent.
    pub request: Vec<u8>,
    /// The same with `Connection: close`: for the last request of a connection, if that is known in advance.
    pub last_request: Vec<u8>,
    /// Whether the response has no body regardless of its head (`HEAD`).
    pub head_only: bool,
}

/// TLS settings of connections.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tls {
    /// `--tls-ver`, `--cipher-list`, `--cipher-suites`.
    pub algorithms: Algorithms,
    /// `--tls-reuse`: sessions are resumed.
    pub reuse: bool,
    /// `--ca`: CA certificates that verify servers; `None`: servers are not verified.
    pub authorities: Option<Arc<Authorities>>,
    /// `--handshakes`: connections only complete a handshake; no request is sent.
    pub handshakes: bool,
}

/// Pace of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each connection sends when it has received its response.
    AsFastAsAnswered,
    /// `-R`: the same, but at most this number of requests are started per second; a late one delays the following
    /// ones.
    AtMost(f64),
    /// Constant rate: this number of requests are due per second, regardless of previous ones; the time of a response
    /// counts from the time when its request was due (coordinated omission is corrected).
    Constant(f64),
}

/// A separate client with its own connections, which measures the latency of a user during the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reference {
    /// Constant rate, in requests per second.
    pub rate: f64,
    /// Number of its connections.
    pub connections: u32,
}

/// Output formats and destinations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// `-l` and `-ll`: 1 and 2.
    pub long: u8,
    /// `-P`: print the percentiles at the end.
    pub percentiles: bool,
    /// `-S`: print the classes of status codes.
    pub statuses: bool,
    /// Number of `-v`.
    pub verbose: u8,
    /// `--json`: one object per line.
    pub json: Option<ReportSink>,
    /// `--csv`: one record per line.
    pub csv: Option<ReportSink>,
    /// `--live`: redraw the terminal each second.
    pub live: bool,
    /// `--summary`: print the summary for terminals at the end, for any output.
    pub summary: bool,
    /// `-q`: print only the end.
    pub quiet: bool,
}

/// Destination of an output format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportSink {
    /// Standard output, instead of the columns.
    Stdout,
    /// A file, in addition to the columns.
    File(PathBuf),
}
