//! What is known of a stream: who, what, when, how it ends. It lives outside the future that serves the stream, so
//! that it outlives a panic in it. Must never decide anything.

use crate::stream::budget::Spent;
use crate::stream::cache::CacheUse;
use crate::stream::filter::Filters;
use crate::stream::instrumentation::Instrumentation;
use crate::stream::kernel::Kernel;
use crate::stream::otel::StreamTrace;
use base::moment::WallTime;
use base::slab::Key;
use expression::capture::Captures;
use expression::record::{Endpoint, Timings};
use expression::sample::{LinkFacts, RulePlace};
use expression::variable::Store;
use live::Counts;
use live::cache::Object;
use live::persistence::{Persistence, Returned};
use live::table::Tracking;
use policy::rule::StickStore;
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tls::HandshakeInfo;
use wire::http::{Head, Method};

use crate::orders::Orders;
use crate::session::Session;

/// The name of a service in log lines, which costs a request no allocation.
#[derive(Debug, Clone)]
pub enum ServiceName {
    /// One of Weir's own.
    Known(&'static str),
    /// One that was registered.
    Shared(Arc<str>),
}

impl Default for ServiceName {
    fn default() -> Self {
        Self::Known("")
    }
}

impl std::ops::Deref for ServiceName {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Shared(name) => name,
        }
    }
}

/// Who or what ended a stream (configuration manual, section 8.5, first character).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cause {
    #[default]
    Normal,
    Client,
    Server,
    Proxy,
    /// The proxy, because of the request: its body is invalid.
    Invalid,
    /// The proxy: what stands in the way of an answer does not let it pass, or rules have made it too large.
    Refused,
    Local,
    Resource,
    Internal,
    ClientTimeout,
    ServerTimeout,
    Killed,
    /// Its server went down (`on-marked-down`).
    Down,
    /// A server came up that is no backup (`on-marked-up`).
    Up,
}

impl Cause {
    /// The character in the log.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Normal => b'-',
            Self::Client => b'C',
            Self::Server => b'S',
            Self::Proxy | Self::Invalid | Self::Refused => b'P',
            Self::Local => b'L',
            Self::Resource => b'R',
            Self::Internal => b'I',
            Self::ClientTimeout => b'c',
            Self::ServerTimeout => b's',
            Self::Killed => b'K',
            Self::Down => b'D',
            Self::Up => b'U',
        }
    }
}

/// What a stream was doing when it ended (configuration manual, section 8.5, second character).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    #[default]
    Done,
    Request,
    Tarpit,
    Queue,
    Connect,
    Headers,
    Data,
    Last,
}

impl Phase {
    /// The character in the log.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Done => b'-',
            Self::Request => b'R',
            Self::Tarpit => b'T',
            Self::Queue => b'Q',
            Self::Connect => b'C',
            Self::Headers => b'H',
            Self::Data => b'D',
            Self::Last => b'L',
        }
    }
}

/// How a stream ended: error and termination state in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Who or what.
    pub cause: Cause,
    /// When.
    pub phase: Phase,
}

impl Outcome {
    /// Cause and phase.
    pub const fn new(cause: Cause, phase: Phase) -> Self {
        Self { cause, phase }
    }

    /// The first two characters of the log.
    pub const fn letters(self) -> [u8; 2] {
        [self.cause.letter(), self.phase.letter()]
    }
}

/// The state of one stream. Recycled: `clear` keeps the heads' capacity.
#[derive(Default)]
pub struct StreamState {
    /// The request's head; empty in TCP mode.
    pub request: Head,
    /// The answer's head.
    pub response: Head,
    /// The request's head was parsed whole.
    pub has_request: bool,
    /// Rules on the session's bytes have let it pass: it is known as a request.
    pub inspected: bool,
    /// The task that serves it, where it can be reached ([`crate::stream::task`]).
    pub task: Option<Key>,
    /// How many streams the process had before it.
    pub number: u32,
    /// Its line was written before its end.
    pub logged: bool,
    /// What rules have ordered for it.
    pub orders: Cell<Orders>,
    /// What `unique-id-format` names it, once it was asked for.
    pub unique_id: OnceCell<Box<[u8]>>,
    /// That name is being made: who asks for it meanwhile gets none.
    pub identifying: Cell<bool>,
    /// What was captured for the log.
    pub captures: RefCell<Captures>,
    /// Its filters, where its proxies have any.
    pub filters: Option<Filters>,
    /// Variables of its transaction, request and response.
    pub variables: RefCell<Store>,
    /// What scripts keep for it.
    pub kept_by_scripts: Cell<Option<Box<dyn Any>>>,
    /// What its filters tell of it (`filter otel`).
    pub told: Cell<Option<Box<Instrumentation>>>,
    /// What it tells of itself (`otel-trace`).
    pub trace: Option<Box<StreamTrace>>,
    /// How it ended.
    pub outcome: Outcome,
    /// It is the first request of its connection.
    pub first: bool,
    /// The status that the server sent.
    pub server_status: Option<u16>,
    /// A rule has refused it.
    pub denied: bool,
    /// A rule could not do what it had to.
    pub failed: bool,
    /// An evaluation on its behalf cost more than it may (`sample::Context::exhausted`): it is to end with an internal
    /// error.
    pub exhausted: Cell<bool>,
    /// What a cache may do for it.
    pub cache: Option<Box<CacheUse>>,
    /// The response of a cache that answers it next.
    pub hit: Option<Arc<Object>>,
    /// Index of the cache that answers it.
    pub cache_hit: Option<usize>,
    /// The algorithm that compresses the answer.
    pub compression: Option<&'static str>,
    /// The status that the client got; -1 when none.
    pub status: i32,
    /// When things happened.
    pub timings: Timings,
    /// The wall clock at `timings.start`.
    pub start_date: WallTime,
    /// Index of the backend's proxy.
    pub backend: Option<usize>,
    /// Index of the server in its backend.
    pub server: Option<usize>,
    /// The service that answers it, as log lines name it.
    pub service: Option<ServiceName>,
    /// The ends of the client's connection that rules of the stream have set in the place of the session's.
    pub ends: Cell<Option<Box<Ends>>>,
    /// What binds it to a server.
    pub persistence: Persistence,
    /// What is to be remembered of it once its server is known.
    pub stores: Vec<StickStore>,
    /// Its bytes so far.
    pub bytes: Flow,
    /// What became of its way to a server.
    pub attempts: Attempts,
    /// Requests of its connection before it.
    pub client_streams: u32,
    /// Query handle of the client's connection, where the connection itself is not at hand.
    pub client_kernel: Kernel,
    /// What the session's task had cost when it began, and how often it had been called.
    pub cost_before: rt::TaskCost,
    /// What its rules and expressions have cost.
    pub spent: Spent,
    /// What those of its log lines have cost.
    pub spent_on_log: Spent,
    /// The rule that ended an evaluation last.
    pub last_rule: Cell<Option<RulePlace>>,
    /// The rule that something is waited for.
    pub waiting_rule: Cell<Option<RulePlace>>,
    /// Of its bytes, those that the statistics have counted.
    pub counted: Flow,
    /// Of `bytes_in`, bytes of the body that were counted before it began to flow.
    pub early_body: u64,
    /// Bytes of the body that has taken the place of what came, before it began to flow.
    pub replaced_body: Option<u64>,
    /// What it tracks in stick tables.
    pub tracking: RefCell<Tracking>,
    /// What tracked entries have counted of it.
    pub tracked: Tracked,
}

/// What became of a stream's way to a server.
#[derive(Default)]
pub struct Attempts {
    /// Where the connection to the server comes from, if the log wants to know.
    pub backend_source: Endpoint,
    /// Connection attempts that failed before the last one.
    pub retries: u32,
    /// The last attempt went to another server.
    pub redispatched: bool,
    /// It went to a second server while the first one had not answered.
    pub hedged: bool,
    /// The second server answered.
    pub hedge_won: bool,
    /// Requests processed before this one in the server's queue.
    pub server_queue: u32,
    /// Requests processed before this one in the backend's queue.
    pub backend_queue: u32,
    /// Load of backend and server when the stream gave back its place, before the next one in the queue got it.
    pub counts: Option<Counts>,
    /// The connection to the server, once one was tried.
    pub link: Option<LinkFacts>,
    /// What the TLS handshake with the server has found, where there was one.
    pub server_tls: Option<Arc<HandshakeInfo>>,
    /// Whether the request went to the server as early data.
    pub early: EarlyRequest,
    /// Query handle of the server's connection, where the connection itself is not at hand.
    pub server_kernel: Kernel,
}

/// Early data of a request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlyRequest {
    /// None was sent.
    #[default]
    Unsent,
    /// It went out before the handshake was over.
    Sent,
    /// The server wants it after the handshake (RFC 8470, section 5.2).
    Refused,
}

/// What the entries that a stream tracks have counted of it.
#[derive(Default)]
pub struct Tracked {
    /// Of `bytes_in`, those that tracked entries have counted.
    pub tracked_in: u64,
    /// Of `received`, likewise.
    pub tracked_out: u64,
    /// Tracked entries have counted its request.
    pub request_counted: bool,
    /// A rule has refused its request, or has asked who it is from: the client is to blame.
    pub blamed: bool,
    /// Tracked entries have counted that its server failed.
    pub failure_counted: bool,
}

/// Bytes of a stream: of its request from the client and to the server, of the response from the server and to the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    pub bytes_in: u64,
    pub sent: u64,
    pub received: u64,
    pub bytes_out: u64,
}

impl Flow {
    /// What was added since an earlier time.
    #[inline]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes_in: self.bytes_in.wrapping_sub(earlier.bytes_in),
            sent: self.sent.wrapping_sub(earlier.sent),
            received: self.received.wrapping_sub(earlier.received),
            bytes_out: self.bytes_out.wrapping_sub(earlier.bytes_out),
        }
    }
}

/// Ends of a client's connection that rules have set (`set-src`, `set-dst` and their kin).
#[derive(Debug, Clone, Copy, Default)]
pub struct Ends {
    /// The client.
    pub client: Option<SocketAddr>,
    /// Where it connected to.
    pub destination: Option<SocketAddr>,
}

impl StreamState {
    /// Returns the first two characters of the termination state. The answer of a service is local, whatever its client does, as in
    /// HAProxy.
    pub fn termination(&self) -> [u8; 2] {
        match self.outcome.cause {
            Cause::Client | Cause::ClientTimeout if self.service.is_some() => {
                Outcome::new(Cause::Local, Phase::Request).letters()
            }
            _ => self.outcome.letters(),
        }
    }

    fn set_ends(&self) -> Ends {
        let ends = self.ends.take();
        let known = ends.as_deref().copied().unwrap_or_default();
        self.ends.set(ends);
        known
    }

    /// A rule of the stream says who the client is, or where it connected to: that counts until the stream has ended.
    pub fn change_ends(&self, client: Option<SocketAddr>, destination: Option<SocketAddr>) {
        let known = self.set_ends();
        let ends = Ends { client: client.or(known.client), destination: destination.or(known.destination) };
        self.ends.set(Some(Box::new(ends)));
    }

    /// The client, as rules see it now; `None` on a UNIX socket.
    pub fn client(&self, session: &Session) -> Option<SocketAddr> {
        self.set_ends().client.or_else(|| session.client())
    }

    /// The client's address.
    pub fn source(&self, session: &Session) -> Option<IpAddr> {
        self.client(session).map(|client| client.ip())
    }

    /// The address that the client connected to, as rules see it now. A system call the first time.
    pub fn destination(&self, session: &Session) -> Option<SocketAddr> {
        self.set_ends().destination.or_else(|| session.destination())
    }

    /// As [`StreamState::destination`], if it was asked for before.
    pub fn known_destination(&self, session: &Session) -> Option<SocketAddr> {
        self.set_ends().destination.or_else(|| session.known_destination())
    }

    /// The bytes so far.
    #[inline]
    pub fn flow(&self) -> Flow {
        self.bytes
    }

    /// Adds to what rules have ordered.
    pub fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = self.orders.get();
        change(&mut orders);
        self.orders.set(orders);
    }

    /// The method that the client has sent, whatever rules have made of it.
    pub fn client_method(&self) -> Method {
        match &self.captures.borrow().line {
            Some((method, _)) => Method::from_text(method),
            None => self.request.known_method(),
        }
    }

    /// Whether the client asked for a head alone.
    pub fn wants_head_alone(&self) -> bool {
        self.client_method() == Method::Head
    }

    /// Whether the client takes an answer with that status for the beginning of a tunnel (RFC 9110, section 9.3.6).
    pub fn opens_tunnel(&self, status: u16) -> bool {
        (200..300).contains(&status) && self.client_method() == Method::Connect
    }

    /// What was taken for a request was none.
    pub fn forget_request(&mut self) {
        self.request.clear();
        self.has_request = false;
        self.timings.request = None;
        self.backend = None;
    }

    /// What a server answered does not count.
    pub fn forget_answer(&mut self) {
        self.response.clear();
        self.timings.response = None;
        self.server_status = None;
        self.compression = None;
        self.persistence.returned = Returned::None;
        self.status = -1;
    }

    /// Forgets what rules have noted that run before there is a stream: what they see by a shared reference, so that cells
    /// alone have changed.
    pub fn forget_rules(&mut self) {
        self.orders.set(Orders::default());
        self.unique_id.take();
        self.identifying.set(false);
        self.exhausted.set(false);
        self.captures.get_mut().clear();
        self.variables.get_mut().clear();
        self.last_rule.set(None);
        self.waiting_rule.set(None);
        self.tracking.get_mut().clear();
        self.ends.take();
        self.kept_by_scripts.take();
        self.spent.clear();
        self.spent_on_log.clear();
    }

    /// Forgets the stream and keeps the capacity. The heads stay where they are; a field that is new is missed here by
    /// the compiler.
    pub fn clear(&mut self) {
        let Self {
            request,
            response,
            has_request,
            inspected,
            task,
            trace,
            told,
            number,
            logged,
            orders,
            unique_id,
            identifying,
            captures,
            filters,
            variables,
            kept_by_scripts,
            outcome,
            first,
            server_status,
            denied,
            failed,
            exhausted,
            cache,
            hit,
            cache_hit,
            compression,
            status,
            timings,
            start_date,
            backend,
            server,
            service,
            ends,
            persistence,
            stores,
            bytes,
            attempts,
            client_streams,
            client_kernel,
            cost_before,
            spent,
            spent_on_log,
            last_rule,
            waiting_rule,
            counted,
            early_body,
            replaced_body,
            tracking,
            tracked,
        } = self;
        // By name, so that a new one is not missed: what rules have noted.
        let _ = (orders, unique_id, identifying, exhausted, captures, variables, last_rule, waiting_rule, tracking);
        let _ = (ends, spent, spent_on_log, kept_by_scripts);
        told.take();
        request.clear();
        response.clear();
        (*filters, *task, *inspected, *trace) = (None, None, false, None);
        (*has_request, *logged, *denied, *failed) = (false, false, false, false);
        (*first, *server_status, *number) = (false, None, 0);
        (*outcome, *status, *compression) = (Outcome::default(), -1, None);
        (*cache, *hit, *cache_hit) = (None, None, None);
        (*timings, *start_date) = (Timings::default(), WallTime::default());
        (*backend, *server) = (None, None);
        (*service, *persistence) = (None, Persistence::default());
        stores.clear();
        (*bytes, *counted, *early_body, *replaced_body) = (Flow::default(), Flow::default(), 0, None);
        (*attempts, *client_streams, *tracked) = (Attempts::default(), 0, Tracked::default());
        (*client_kernel, *cost_before) = (Kernel::Unknown, rt::TaskCost::default());
        self.forget_rules();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_print_as_the_manual_says() {
        for (cause, phase, text) in [
            (Cause::Normal, Phase::Done, b"--"),
            (Cause::Server, Phase::Headers, b"SH"),
            (Cause::ServerTimeout, Phase::Queue, b"sQ"),
            (Cause::ClientTimeout, Phase::Request, b"cR"),
            (Cause::Proxy, Phase::Data, b"PD"),
            (Cause::Invalid, Phase::Headers, b"PH"),
            (Cause::Refused, Phase::Data, b"PD"),
            (Cause::Client, Phase::Connect, b"CC"),
            (Cause::Proxy, Phase::Tarpit, b"PT"),
            (Cause::Local, Phase::Last, b"LL"),
            (Cause::Resource, Phase::Connect, b"RC"),
            (Cause::Internal, Phase::Done, b"I-"),
            (Cause::Killed, Phase::Data, b"KD"),
        ] {
            assert_eq!(&Outcome::new(cause, phase).letters(), text);
        }
    }
}
