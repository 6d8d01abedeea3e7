//! Health checks, compiled (configuration manual, "option httpchk", "option tcp-check" and their kin): a script of steps
//! for the servers of a backend, and what each server says of its own. Plain data; the runner of a check opens its
//! connections. Must never do I/O.

mod agent;
mod expect;
mod parse;
mod protocol;

pub use agent::{AgentAnswer, Word};
pub use expect::{Expect, FieldMatch, Finding, TextMatch, Wanted};
pub(crate) use parse::{WrittenRequest, http_line, http_rule, implicit_steps, tcp_rule};
pub(crate) use protocol::script;
pub use protocol::{Answer, GrpcAnswer, Judgement};

use crate::program::ServerAddress;
use crate::rule::Action;
use config::spec::{InitialState, MuxProtocol};
use expression::Expression;
use expression::log_format::LogFormat;
use live::Observed;
use live::health::Pace;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// What the servers of a backend are checked with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Check {
    /// The steps. None: a connection is all.
    pub steps: Box<[CheckStep]>,
    /// They speak HTTP.
    pub is_http: bool,
    /// They are rules of `option tcp-check`: what is said about them names them.
    pub is_tcp: bool,
    /// `http-check disable-on-404`.
    pub disable_on_404: bool,
    /// `http-check send-state`.
    pub send_state: bool,
    /// `option log-health-checks`.
    pub log: bool,
    /// `timeout check`: how long an answer may take behind the connection.
    pub timeout: Option<Duration>,
    /// `timeout connect`, where `timeout check` is set.
    pub connect: Option<Duration>,
    /// `option external-check`: a program is run instead of steps.
    pub program: Option<Box<External>>,
}

/// A program that checks servers (`external-check`).
#[derive(Debug, Clone, PartialEq)]
pub struct External {
    /// `external-check command`.
    pub command: Box<str>,
    /// `external-check path`: its `PATH`.
    pub path: Box<str>,
    /// `external-check preserve-env`: it sees the environment of the process.
    pub preserve_environment: bool,
    /// The process may start programs (`insecure-fork-wanted`).
    pub allowed: bool,
}

impl Check {
    /// Whether it opens its connections by steps of its own.
    pub fn connects_by_itself(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, CheckStep::Connect(_)))
    }
}

/// How one server is checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCheck {
    /// Where, if that is not the server's address.
    pub address: Option<ServerAddress>,
    /// `port`.
    pub port: Option<u16>,
    /// Connections begin with a PROXY header: `check-send-proxy`, or `send-proxy` where the address is the server's.
    pub send_proxy: bool,
    /// `check-via-socks4`.
    pub via_socks4: bool,
    /// What checks of HTTP speak where a step says nothing else: `check-proto`, else what the server speaks where they go to
    /// its address. `None`: as the handshake of TLS says.
    pub protocol: Option<MuxProtocol>,
    /// What tells the idle connections apart that checks may take (`check-reuse-pool`): empty, or made of a name
    /// (`check-pool-conn-name`). `None`: they take none.
    pub reuse: Option<Box<[u8]>>,
    /// `inter`, `fastinter`, `downinter`.
    pub pace: Pace,
    /// `rise`.
    pub rise: u32,
    /// `fall`.
    pub fall: u32,
    /// `init-state`.
    pub initial: InitialState,
    /// What the server is checked with, if that is not what its backend says (`healthcheck`).
    pub script: Option<Arc<Check>>,
    /// `observe`; `None`: traffic says nothing about the server.
    pub observed: Option<Observed>,
}

/// How an agent is asked about its server (`agent-check`).
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCheck {
    /// `agent-addr`; `None`: the server's address.
    pub address: Option<IpAddr>,
    /// `agent-port`.
    pub port: u16,
    /// `agent-inter`.
    pub interval: Duration,
    /// `agent-send`.
    pub send: Box<[u8]>,
}

/// A step of a script.
#[derive(Debug, Clone, PartialEq)]
pub enum CheckStep {
    /// What is said about the next step if it fails.
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

/// A new connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Connect {
    /// The port; `None`: as the server's line says.
    pub port: Option<Port>,
    /// The address; `None`: as the server's line says.
    pub address: Option<IpAddr>,
    /// Begins with a PROXY header.
    pub send_proxy: bool,
    /// Goes through the server's SOCKS4 proxy.
    pub via_socks4: bool,
    /// Is closed in order, not by a reset.
    pub linger: bool,
    /// As the server's line says where nothing else is said.
    pub default: bool,
    /// Goes by TLS, whatever the server's line says.
    pub ssl: bool,
    /// The name that its handshake asks for.
    pub sni: Option<Box<str>>,
    /// What is spoken; `None`: as the server's line or the handshake says.
    pub protocol: Option<MuxProtocol>,
    /// The protocols that its handshake offers.
    pub alpn: Option<Vec<Vec<u8>>>,
    /// What is said if it fails.
    pub comment: Option<Box<str>>,
}

/// A port that a step names.
#[derive(Debug, Clone, PartialEq)]
pub enum Port {
    /// This one.
    Fixed(u16),
    /// The one that an expression gives.
    Evaluated(Box<Expression>),
}

/// Text that is the same in every check, or not.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Always the same.
    Bytes(Box<[u8]>),
    /// Put together each time.
    Text(Box<LogFormat>),
    /// Put together each time from hexadecimal digits.
    Hex(Box<LogFormat>),
}

/// Bytes to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// Which.
    pub content: Content,
    /// What is said if that fails.
    pub comment: Option<Box<str>>,
}

/// A request to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// `OPTIONS` where none was written.
    pub method: Box<[u8]>,
    /// `/` where none was written.
    pub target: Content,
    /// `HTTP/1.0` where none was written.
    pub version: Box<[u8]>,
    /// Names and values.
    pub fields: Vec<(Box<[u8]>, LogFormat)>,
    /// The body.
    pub body: Option<Content>,
    /// What is said if that fails.
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
