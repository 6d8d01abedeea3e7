//! What is asked only when an expression wants it: facts that cost a system call, a lock or a walk. Must never be asked
//! while a configuration is read.

use super::{ConnectionError, Counted, TrackedEntry, Value};
use crate::record::{Record, Timings};
use base::moment::{WallTime, ZoneName};
use std::any::Any;
use std::cell::{Cell, Ref};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tls::HandshakeInfo;
use wire::proxy_protocol::Header;

/// What an evaluation asks its surroundings for.
pub trait Probes {
    /// The client as rules see it now (`src`); `None` for a UNIX socket.
    fn source(&self) -> Option<SocketAddr>;

    /// Where it connected to, as rules see it now (`dst`).
    fn destination(&self) -> Option<SocketAddr>;

    /// This moment on the wall clock.
    fn wall(&self) -> WallTime;

    /// A random number.
    fn random(&self) -> u64;

    /// A fact about one of the connections, by the name of the fetch: what only the transport knows.
    fn transport(&self, fact: Transport) -> Option<Value<'static>>;

    /// Seconds that local time is ahead of UTC at a point of the calendar, in seconds since the epoch.
    fn local_offset(&self, _seconds: i64) -> i32 {
        0
    }

    /// What the zone of local time is called at such a point.
    fn zone_name(&self, _seconds: i64) -> ZoneName {
        ZoneName::UTC
    }

    /// Lends what a log line would tell at this moment, if there is something: the aliases of a format print it.
    fn lend_record(&self, _take: &mut dyn FnMut(&Record<'_>)) {}

    /// The unique identifier of the request (`unique-id-format`); made when it is first asked for.
    fn unique_id(&self) -> Option<&[u8]> {
        None
    }

    /// What the TLS handshake with the server has found; `None`: it speaks plainly, or there is no connection.
    fn server_tls(&self) -> Option<Arc<HandshakeInfo>> {
        None
    }

    /// Lends the packet that began the client's connection, if its listening socket keeps it (`tcp-ss`) and it was not
    /// asked for before.
    fn lend_saved_syn(&self, _take: &mut dyn FnMut(&[u8])) {}

    /// What serving the stream has cost so far; `None` where there is none.
    fn cost(&self) -> Option<Cost> {
        None
    }

    /// How much of the last turn was work, in percent.
    fn usage(&self, _of: UsageOf) -> Option<u32> {
        None
    }

    /// Where scripts keep what they want to know of the stream later; `None` where there is none.
    fn kept_by_scripts(&self) -> Option<&Cell<Option<Box<dyn Any>>>> {
        None
    }

    /// Writes a debug line (`debug`).
    fn tell(&self, _sink: Sink, _line: &[u8]) {}

    /// Whether an address is one of this machine's; `None`: that cannot be told.
    fn is_local(&self, _address: IpAddr) -> Option<bool> {
        None
    }

    /// The process.
    fn process(&self) -> ProcessFacts<'_> {
        ProcessFacts::default()
    }

    /// A variable of the environment that the configuration was read in.
    fn environment(&self, _name: &[u8]) -> Option<&[u8]> {
        None
    }

    /// What is counted, for rows that know its type.
    fn counters(&self) -> Option<&dyn Counted> {
        None
    }

    /// The client's connection.
    fn session(&self) -> Option<SessionFacts<'_>> {
        None
    }

    /// What the stream tracks under that number, or else its session, for rows that know its type.
    fn tracked(&self, _number: u8) -> Option<Ref<'_, dyn TrackedEntry>> {
        None
    }

    /// Charges the time since the last call to what is evaluated. `long`: a step follows that may take long. False: its
    /// budget is used up.
    fn account(&self, _long: bool) -> bool {
        true
    }

    /// The stream; `None` where there is none yet.
    fn stream(&self) -> Option<StreamFacts> {
        None
    }
}

/// What serving a stream has cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// How often its task was called since it began, with the call that runs.
    pub calls: u32,
    /// The time that calls took which are over; nothing without `profiling.tasks on`.
    pub busy: Duration,
    /// The time from its task's wakings to the calls that followed; likewise.
    pub late: Duration,
}

/// Whose work is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageOf {
    /// The worker that evaluates.
    Worker,
    /// All workers, on average.
    Process,
}

/// Where debug lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    /// A descriptor: 1 or 2.
    Descriptor(i32),
    /// A ring, by its index in the program.
    Ring(usize),
}

/// What the process knows of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessFacts<'a> {
    /// The process number.
    pub pid: u32,
    /// The worker that evaluates, from 0.
    pub thread: usize,
    /// A soft stop was asked for.
    pub stopping: bool,
    /// Seconds since the start.
    pub uptime: u64,
    /// The host's name.
    pub hostname: &'a str,
}

/// What is known of a client's connection.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFacts<'a> {
    /// Index of its `bind` line.
    pub bind: usize,
    /// When it was accepted.
    pub accept_date: WallTime,
    /// What the balancer in front has told.
    pub header: Option<&'a Header>,
    /// Why it has failed before anything was served.
    pub error: ConnectionError,
    /// What its TLS handshake has found; `None`: it speaks plainly.
    pub tls: Option<&'a HandshakeInfo>,
    /// Whether clients speak TLS at its address.
    pub is_secure: bool,
    /// What its protocol has seen.
    pub protocol: ProtocolFacts,
}

/// What is known of a connection by its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolFacts {
    /// The version of HTTP on the wire: its first digit.
    pub major: u32,
    /// What the peer did that a sound one would not do.
    pub glitches: u32,
    /// Streams that are open.
    pub streams: u32,
    /// Streams that may be open at a time.
    pub limit: u32,
}

impl Default for ProtocolFacts {
    /// HTTP/1.
    fn default() -> Self {
        Self { major: 1, glitches: 0, streams: 1, limit: 1 }
    }
}

/// What is known of a stream by now.
#[derive(Debug, Clone, Copy)]
pub struct StreamFacts {
    /// When things happened.
    pub timings: Timings,
    /// The wall clock at their start.
    pub start_date: WallTime,
    /// How it ended, or may end now: the first two characters of the log.
    pub termination: [u8; 2],
    /// Connection attempts that failed before the last one.
    pub retries: u32,
    /// The last attempt went to another server.
    pub redispatched: bool,
    /// Its class and its offset of priority.
    pub priority: (i16, i32),
    /// Requests processed before it in the server's queue.
    pub server_queue: u32,
    /// Requests processed before it in the backend's queue.
    pub backend_queue: u32,
    /// Nothing went wrong so far, as `option dontlog-normal` judges.
    pub is_normal: bool,
    /// Bytes from the client.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// Bytes to the server.
    pub sent: u64,
    /// Bytes from the server.
    pub received: u64,
    /// Streams of the process before it.
    pub number: u32,
    /// Requests of its connection before it.
    pub client_streams: u32,
    /// The connection to the server; `None` while none was tried.
    pub link: Option<LinkFacts>,
    /// What rules have set for it alone.
    pub own: OwnLimits,
    /// The rule that ended an evaluation last: file and line.
    pub last_rule: Option<RulePlace>,
    /// The rule that something was waited for.
    pub waiting_rule: Option<RulePlace>,
}

/// Where a rule is written: the number of its file, from 0, and its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RulePlace {
    /// The file, by its number among the configuration's.
    pub file: u32,
    /// The line.
    pub line: u32,
}

/// What is known of a connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkFacts {
    /// Requests that it has served before.
    pub answers: u32,
    /// Why it was not made.
    pub error: ConnectionError,
    /// What its protocol has seen.
    pub protocol: ProtocolFacts,
}

/// Limits of one stream that take the place of its proxies'; `None`: they do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct OwnLimits {
    pub client: Option<Duration>,
    pub connect: Option<Duration>,
    pub queue: Option<Duration>,
    pub server: Option<Duration>,
    pub tarpit: Option<Duration>,
    pub tunnel: Option<Duration>,
    pub retries: Option<u32>,
}

/// Facts that only the transport knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Transport {
    /// Microseconds, as all round-trip times here.
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
    /// Where the client really came from, whatever rules and headers say (`fc_src`).
    ClientAddress,
    ClientPort,
    ClientDestination,
    ClientDestinationPort,
    ServerSource,
    ServerSourcePort,
    ServerAddress,
    ServerPort,
}
