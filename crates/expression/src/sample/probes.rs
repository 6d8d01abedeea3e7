//! Data that an expression requests on demand, because it costs a system call, a lock or a search. Must never be called
//! while a configuration is being parsed.

use super::{ConnectionError, CounterSource, TrackedEntry, Value};
use crate::record::{Record, Timings};
use base::moment::{WallTime, ZoneName};
use std::any::Any;
use std::cell::{Cell, Ref};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tls::HandshakeInfo;
use wire::proxy_protocol::Header;

/// The environment of an evaluation.
pub trait Probes {
    /// The client's current source address for rules (`src`); `None` for a UNIX socket.
    fn source(&self) -> Option<SocketAddr>;

    /// The current destination address for rules (`dst`).
    fn destination(&self) -> Option<SocketAddr>;

    /// The current wall-clock time.
    fn wall(&self) -> WallTime;

    /// A random number.
    fn random(&self) -> u64;

    /// Returns a property of one of the connections, from the transport layer.
    fn transport(&self, fact: Transport) -> Option<Value<'static>>;

    /// UTC offset of local time in seconds, at a time in seconds since the epoch.
    fn local_offset(&self, _seconds: i64) -> i32 {
        0
    }

    /// The abbreviation of the local time zone at that time.
    fn zone_name(&self, _seconds: i64) -> ZoneName {
        ZoneName::UTC
    }

    /// Passes the record of a log line as of now, if there is one: for the aliases of a format.
    fn lend_record(&self, _take: &mut dyn FnMut(&Record<'_>)) {}

    /// The unique identifier of the request (`unique-id-format`); generated on first use.
    fn unique_id(&self) -> Option<&[u8]> {
        None
    }

    /// The TLS handshake with the server; `None`: not encrypted, or no connection.
    fn server_tls(&self) -> Option<Arc<HandshakeInfo>> {
        None
    }

    /// Passes the SYN packet of the client's connection, if its listening socket saves it (`tcp-ss`) and it was not
    /// requested before.
    fn lend_saved_syn(&self, _take: &mut dyn FnMut(&[u8])) {}

    /// The cost of serving the stream so far; `None` without a stream.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// CPU usage in the last event-loop iteration, in percent.
    fn usage(&self, _of: UsageOf) -> Option<u32> {
        None
    }

    /// State that scripts store with the stream; `None` without a stream.
    fn kept_by_scripts(&self) -> Option<&Cell<Option<Box<dyn Any>>>> {
        None
    }

    /// Writes a line of the converter `debug`.
    fn tell(&self, _sink: Sink, _line: &[u8]) {}

    /// Whether an address is local to this machine; `None`: unknown.
    fn is_local(&self, _address: IpAddr) -> Option<bool> {
        None
    }

    fn process(&self) -> ProcessFacts<'_> {
        ProcessFacts::default()
    }

    /// Returns an environment variable, as of when the configuration was parsed.
    fn environment(&self, _name: &[u8]) -> Option<&[u8]> {
        None
    }

    /// The counters, for rows that downcast them.
    fn counters(&self) -> Option<&dyn CounterSource> {
        None
    }

    fn session(&self) -> Option<SessionFacts<'_>> {
        None
    }

    /// The stick-table entry that the stream tracks under that number, or else its session, for rows that downcast it.
    fn tracked(&self, _number: u8) -> Option<Ref<'_, dyn TrackedEntry>> {
        None
    }

    /// Charges the time since the last call to the evaluation. `long`: a long step may follow. False: the budget is
    /// exhausted.
    fn account(&self, _long: bool) -> bool {
        true
    }

    /// The stream; `None` before it exists.
    fn stream(&self) -> Option<StreamFacts> {
        None
    }
}

/// The cost of serving a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Calls of its task since it began, including the current one.
    pub calls: u32,
    /// Time spent in completed calls; zero without `profiling.tasks on`.
    pub busy: Duration,
    /// Time from the wake-ups of its task to the calls; zero without `profiling.tasks on`.
    pub late: Duration,
}

/// Whose CPU usage is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageOf {
    /// The worker of the evaluation.
    Worker,
    /// All workers, on average.
    Process,
}

/// The destination of debug lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    /// A descriptor: 1 or 2.
    Descriptor(i32),
    /// A ring, by its index in the program.
    Ring(usize),
}

/// The state of the process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessFacts<'a> {
    /// The process id.
    pub pid: u32,
    /// The worker of the evaluation, from 0.
    pub thread: usize,
    /// A soft stop was requested.
    pub stopping: bool,
    /// Seconds since the start.
    pub uptime: u64,
    /// The host's name.
    pub hostname: &'a str,
    /// QUIC addresses receive datagrams (`tune.quic.listen`).
    pub quic: bool,
}

/// The state of a client's connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFacts<'a> {
    /// Index of its `bind` line.
    pub bind: usize,
    /// When it was accepted.
    pub accept_date: WallTime,
    /// The PROXY header received.
    pub header: Option<&'a Header>,
    /// The error before anything was served.
    pub error: ConnectionError,
    /// The TLS handshake; `None`: not encrypted.
    pub tls: Option<&'a HandshakeInfo>,
    /// Whether the listening address uses TLS.
    pub is_secure: bool,
    /// The state of its protocol.
    pub protocol: ProtocolFacts,
}

/// The protocol state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolFacts {
    /// The major version of HTTP on the wire.
    pub major: u32,
    /// Protocol glitches of the peer.
    pub glitches: u32,
    /// Open streams.
    pub streams: u32,
    /// Maximum number of open streams.
    pub limit: u32,
}

impl Default for ProtocolFacts {
    /// HTTP/1.
    fn default() -> Self {
        Self { major: 1, glitches: 0, streams: 1, limit: 1 }
    }
}

/// The current state of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamFacts {
    /// Points in time.
    pub timings: Timings,
    /// Wall-clock time of their start.
    pub start_date: WallTime,
    /// The termination state, final or current: the first two characters of the log.
    pub termination: [u8; 2],
    /// Failed connection attempts before the last one.
    pub retries: u32,
    /// The last attempt was redispatched to another server.
    pub redispatched: bool,
    /// Its priority class and offset.
    pub priority: (i16, i32),
    /// Requests processed before it in the server's queue.
    pub server_queue: u32,
    /// Requests processed before it in the backend's queue.
    pub backend_queue: u32,
    /// No error so far, in the sense of `option dontlog-normal`.
    pub is_normal: bool,
    /// Bytes from the client.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// Bytes sent to the server.
    pub sent: u64,
    /// Bytes received from the server.
    pub received: u64,
    /// Number of the process's streams before it.
    pub number: u32,
    /// Number of its connection's requests before it.
    pub client_streams: u32,
    /// The connection to the server; `None` before the first attempt.
    pub link: Option<LinkFacts>,
    /// Limits set by rules for this stream.
    pub own: OwnLimits,
    /// The rule that last ended an evaluation: file and line.
    pub last_rule: Option<RulePlace>,
    /// The rule that processing waited for.
    pub waiting_rule: Option<RulePlace>,
}

/// The position of a rule: the number of its file, from 0, and its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RulePlace {
    /// The file's index in the configuration.
    pub file: u32,
    pub line: u32,
}

/// The state of a connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkFacts {
    /// Requests served before.
    pub answers: u32,
    /// The connection error.
    pub error: ConnectionError,
    /// The state of its protocol.
    pub protocol: ProtocolFacts,
}

/// Limits of one stream that override those of its proxies; `None`: not overridden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnLimits {
    pub client: Option<Duration>,
    pub connect: Option<Duration>,
    pub queue: Option<Duration>,
    pub server: Option<Duration>,
    pub tarpit: Option<Duration>,
    pub tunnel: Option<Duration>,
    pub retries: Option<u32>,
}

/// Properties of the transport layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In microseconds, as all round-trip times here.
    ClientRtt,
    ClientRttVariance,
    ClientUnacked,
    ClientSacked,
    ClientRetransmits,
    ClientFackets,
    ClientLost,
    ClientReordering,
    ServerRtt,
    ServerRttVariance,
    /// The real source address of the client, whatever rules and headers set (`fc_src`).
    ClientAddress,
    ClientPort,
    ClientDestination,
    ClientDestinationPort,
    ServerSource,
    ServerSourcePort,
    ServerAddress,
    ServerPort,
}
