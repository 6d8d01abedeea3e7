//! Compiled health checks (configuration manual, "option httpchk", "option tcp-check" and others): a script of steps
//! for the servers of a backend, and the parameters of each server. Plain data; the runner of a check opens its
//! connections. Must never do I/O.

mod agent;
mod answer;
mod expect;
mod parse;
mod protocol;

pub use agent::{AgentAnswer, Word};
pub use answer::Answer;
pub use expect::{Expect, ExpectMatch, FieldMatch, Finding, TextMatch};
pub(crate) use parse::{WrittenRequest, http_line, http_rule, implicit_steps, tcp_rule};
pub(crate) use protocol::script;
pub use protocol::{GrpcAnswer, Judgement};

use crate::program::ServerAddress;
use crate::rule::Action;
use config::spec::{InitialState, MuxProtocol};
use expression::Expression;
use expression::log_format::LogFormat;
use live::ObservePlan;
use live::health::Pace;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The check of a backend's servers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Check {
    /// The steps. If empty, only a connection is made.
    pub steps: Box<[CheckStep]>,
    /// They speak HTTP.
    pub is_http: bool,
    /// The steps are rules of `option tcp-check`, which messages about them name.
    pub is_tcp: bool,
    /// `http-check disable-on-404`.
    pub disable_on_404: bool,
    /// `http-check send-state`.
    pub send_state: bool,
    /// `option log-health-checks`.
    pub log: bool,
    /// `timeout check`: timeout of a response after the connection is established.
    pub timeout: Option<Duration>,
    /// `timeout connect`, if `timeout check` is set.
    pub connect: Option<Duration>,
    /// `option external-check`: a program that is run instead of the steps.
    pub program: Option<Box<External>>,
    /// `option udp-check`: the contents of a datagram that is sent instead of the steps. If there are any, an answer is expected.
    pub datagram: Option<Box<[u8]>>,
}

/// A program that checks servers (`external-check`).
#[derive(Debug, Clone, PartialEq)]
pub struct External {
    /// `external-check command`.
    pub command: Box<str>,
    /// `external-check path`: the `PATH` of the program.
    pub path: Box<str>,
    /// `external-check preserve-env`: the program inherits the environment of the process.
    pub preserve_environment: bool,
    /// The process may run programs (`insecure-fork-wanted`).
    pub allowed: bool,
}

impl Check {
    /// Whether the script opens its own connections with `connect` steps.
    pub fn connects_by_itself(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, CheckStep::Connect(_)))
    }
}

/// The check parameters of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCheck {
    /// The address to check; `None` for the server's address.
    pub address: Option<ServerAddress>,
    /// `port`.
    pub port: Option<u16>,
    /// Connections begin with a PROXY header: `check-send-proxy`, or `send-proxy` if the address is the server's.
    pub send_proxy: bool,
    /// `check-via-socks4`.
    pub via_socks4: bool,
    /// The protocol of HTTP checks unless a step specifies one: `check-proto`, else that of the server if they use its
    /// address. `None`: as negotiated in the TLS handshake.
    pub protocol: Option<MuxProtocol>,
    /// The part of the pool key that selects idle connections for checks (`check-reuse-pool`): empty, or derived from a
    /// name (`check-pool-conn-name`). `None`: checks do not reuse connections.
    pub reuse: Option<Box<[u8]>>,
    /// `inter`, `fastinter`, `downinter`.
    pub pace: Pace,
    /// `rise`.
    pub rise: u32,
    /// `fall`.
    pub fall: u32,
    /// `init-state`.
    pub initial: InitialState,
    /// The check that replaces the backend's one (`healthcheck`).
    pub script: Option<Arc<Check>>,
    /// `observe`; `None`: traffic is not observed.
    pub observed: Option<ObservePlan>,
}

/// The parameters of an agent check (`agent-check`).
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCheck {
    /// `agent-addr`; `None` for the server's address.
    pub address: Option<IpAddr>,
    /// `agent-port`.
    pub port: u16,
    /// `agent-inter`.
    pub interval: Duration,
    /// `agent-send`.
    pub send: Box<[u8]>,
    /// `agent-check http`: the target of the request; `None`: the agent does not speak HTTP.
    pub uri: Option<Box<str>>,
}

/// A step of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckStep {
    /// A comment, reported if the next step fails.
    Comment(Box<str>),
    /// Opens a connection.
    Connect(Connect),
    /// Sends bytes.
    Send(Payload),
    /// Sends a request.
    Request(Request),
    /// Waits for something.
    Expect(Box<Expect>),
    /// Sets or removes a variable.
    Variable(Box<Action>),
}

/// The parameters of a new connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Connect {
    /// The port; `None` for that of the server.
    pub port: Option<Port>,
    /// The address; `None` for that of the server.
    pub address: Option<IpAddr>,
    /// Begins with a PROXY header.
    pub send_proxy: bool,
    /// Goes through the server's SOCKS4 proxy.
    pub via_socks4: bool,
    /// Close with FIN instead of RST.
    pub linger: bool,
    /// Use the server's parameters unless overridden.
    pub default: bool,
    /// Use TLS regardless of the server's parameters.
    pub ssl: bool,
    /// The SNI of the handshake.
    pub sni: Option<Box<str>>,
    /// The protocol; `None` for that of the server or of the TLS handshake.
    pub protocol: Option<MuxProtocol>,
    /// The ALPN protocols of the handshake.
    pub alpn: Option<Vec<Vec<u8>>>,
    /// The comment reported on failure.
    pub comment: Option<Box<str>>,
}

/// A port of a `connect` step.
#[derive(Debug, Clone, PartialEq)]
pub enum Port {
    /// A fixed port.
    Fixed(u16),
    /// The value of an expression.
    Evaluated(Box<Expression>),
}

/// The content of a step, constant or evaluated in each check.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A constant.
    Bytes(Box<[u8]>),
    /// A log-format string.
    Text(Box<LogFormat>),
    /// A log-format string that evaluates to hexadecimal digits.
    Hex(Box<LogFormat>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    pub content: Content,
    /// The comment reported on failure.
    pub comment: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The method; default `OPTIONS`.
    pub method: Box<[u8]>,
    /// The URI; default `/`.
    pub target: Content,
    /// The version; default `HTTP/1.0`.
    pub version: Box<[u8]>,
    /// Header fields: names and values.
    pub fields: Vec<(Box<[u8]>, LogFormat)>,
    pub body: Option<Content>,
    /// The comment reported on failure.
    pub comment: Option<Box<str>>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            method: Box::from(*b"OPTIONS"),
            target: Content::Bytes(Box::from(*b"/")),
            version: Box::from(*b"HTTP/1.0"),
            fields: Vec::new(),
            body: None,
            comment: None,
        }
    }
}
