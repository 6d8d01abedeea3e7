//! The state of a stream: its messages, times, proxies and outcome. It is stored outside of the future that serves the stream, so
//! that it survives a panic in it. Must never decide anything.

pub mod cache_use;
pub mod failure;
pub mod instrumentation;
pub mod kernel;
mod outcome;
pub mod spent;
pub mod trace;

use crate::filter::Filters;
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
use policy::program::{Features, Proxy};
use policy::rule::StickStore;
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tls::HandshakeInfo;
use wire::http::{Head, Method};

use crate::orders::Orders;
use crate::session::Session;
use cache_use::CacheUse;
use instrumentation::Instrumentation;
use kernel::Kernel;
pub use outcome::{Cause, Outcome, Phase};
use spent::Spent;
use trace::StreamTrace;

/// Name of a service in log lines; setting it needs no allocation.
#[derive(Debug, Clone)]
pub enum ServiceName {
    /// A service of Weir itself.
    Known(&'static str),
    /// A registered service.
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

/// The state of one stream. Recycled: `clear` keeps the heads' capacity.
#[derive(Default)]
pub struct StreamState {
    /// The request's head; empty in TCP mode.
    pub request: Head,
    /// Head of the response.
    pub response: Head,
    /// Whether the request's head is complete.
    pub has_request: bool,
    /// Content rules have let it pass: it is a valid request.
    pub inspected: bool,
    /// Key of the task that serves it ([`crate::session::task`]); `None`: it cannot be accessed by others.
    pub task: Option<Key>,
    /// Number of streams of the process before it.
    pub number: u32,
    /// Its log line was written before its end.
    pub logged: bool,
    /// Settings made by rules.
    pub orders: Cell<Orders>,
    /// Its unique ID (`unique-id-format`), once evaluated.
    pub unique_id: OnceCell<Box<[u8]>>,
    /// Set while the unique ID is evaluated; recursive lookups return nothing.
    pub identifying: Cell<bool>,
    /// Captures for the log.
    pub captures: RefCell<Captures>,
    /// Its filters, if its proxies have any.
    pub filters: Option<Filters>,
    /// Variables of scopes `txn`, `req` and `res`.
    pub variables: RefCell<Store>,
    /// Data that scripts store for it.
    pub kept_by_scripts: Cell<Option<Box<dyn Any>>>,
    /// State of `filter otel`, its spans included.
    pub told: Cell<Option<Box<Instrumentation>>>,
    /// Its span and attempts (`otel-trace`).
    pub trace: Option<Box<StreamTrace>>,
    /// The optional features of its frontend, and of its backend once it has one.
    pub features: Features,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether it is the first request of its connection.
    pub first: bool,
    /// Status of the server's response.
    pub server_status: Option<u16>,
    /// A rule has denied it.
    pub denied: bool,
    /// A rule has failed.
    pub failed: bool,
    /// An evaluation for it exceeded its cost limit (`sample::Context::exhausted`): it ends with an internal error.
    pub exhausted: Cell<bool>,
    /// State of its use of a cache.
    pub cache: Option<Box<CacheUse>>,
    /// Cached response that answers it.
    pub hit: Option<Arc<Object>>,
    /// Index of the cache that answers it.
    pub cache_hit: Option<usize>,
    /// Name of the algorithm that compresses the response.
    pub compression: Option<&'static str>,
    /// Status sent to the client; -1: none.
    pub status: i32,
    /// Times of its events.
    pub timings: Timings,
    /// Wall-clock time of `timings.start`.
    pub start_date: WallTime,
    /// Index of the backend among the proxies.
    pub backend: Option<usize>,
    /// Index of the server in its backend.
    pub server: Option<usize>,
    /// Name of the service that answers it, for log lines.
    pub service: Option<ServiceName>,
    /// Addresses of the client's connection that rules of the stream have set.
    pub ends: Cell<Option<Box<Ends>>>,
    /// Persistence to a server.
    pub persistence: Persistence,
    /// Stick table entries to be stored once its server is known.
    pub stores: Vec<StickStore>,
    /// Byte counters so far.
    pub bytes: Flow,
    /// State of its attempts to reach a server.
    pub attempts: Attempts,
    /// Number of requests of its connection before it.
    pub client_streams: u32,
    /// Query handle of the client's connection, if the stream does not own the connection.
    pub client_kernel: Kernel,
    /// CPU time and evaluations.
    pub costs: Costs,
    /// The last rule that ended an evaluation.
    pub last_rule: Cell<Option<RulePlace>>,
    /// The rule whose evaluation is suspended.
    pub waiting_rule: Cell<Option<RulePlace>>,
    /// Part of `bytes` that was added to the statistics.
    pub counted: Flow,
    /// Body bytes within `bytes_in` that were counted before the relay began.
    pub early_body: u64,
    /// Length of the body that replaced the received one, before the relay began.
    pub replaced_body: Option<u64>,
    /// Its entries in stick tables.
    pub tracking: RefCell<Tracking>,
    /// State of counting in tracked entries.
    pub tracked: Tracked,
}

/// The costs of a stream.
#[derive(Default)]
pub struct Costs {
    /// Cost and number of polls of the session's task when the stream began.
    pub before: rt::TaskCost,
    /// Whether expressions were evaluated for it.
    pub evaluated: Cell<bool>,
    /// The cost of its rules and expressions.
    pub rules: Spent,
    /// The cost of the expressions in its log lines.
    pub log: Spent,
}

/// State of a stream's attempts to reach a server.
#[derive(Default)]
pub struct Attempts {
    /// Source address of the server connection, if the log format contains it.
    pub backend_source: Endpoint,
    /// Number of failed connection attempts before the last one.
    pub retries: u32,
    /// The last attempt went to another server.
    pub redispatched: bool,
    /// It was sent to a second server while the first one had not responded.
    pub hedged: bool,
    /// The second server responded first.
    pub hedge_won: bool,
    /// Number of requests processed before this one in the server's queue.
    pub server_queue: u32,
    /// Number of requests processed before this one in the backend's queue.
    pub backend_queue: u32,
    /// Load of backend and server at the time when the stream released its slot, before the next request in the queue got it.
    pub counts: Option<Counts>,
    /// Properties of the server connection, once one was attempted.
    pub link: Option<LinkFacts>,
    /// Result of the TLS handshake with the server, if there was one.
    pub server_tls: Option<Arc<HandshakeInfo>>,
    /// Whether the request went to the server as early data.
    pub early: EarlyRequest,
    /// Responses of the server count for its health (`observe`).
    pub is_observed: bool,
    /// Query handle of the server connection.
    pub server_kernel: Kernel,
}

/// State of TLS early data of a request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlyRequest {
    /// None was sent.
    #[default]
    Unsent,
    /// It was sent before the handshake was complete.
    Sent,
    /// The server refused it: the request has to be sent after the handshake (RFC 8470, section 5.2).
    Refused,
}

/// State of a stream's counting in tracked stick table entries.
#[derive(Default)]
pub struct Tracked {
    /// Part of `bytes_in` that was counted.
    pub tracked_in: u64,
    /// Part of `received` that was counted.
    pub tracked_out: u64,
    /// Its request was counted.
    pub request_counted: bool,
    /// A rule has denied its request or required authentication: it counts as an error of the client.
    pub blamed: bool,
    /// A failure of its server was counted.
    pub failure_counted: bool,
}

/// Byte counters of a stream: request from the client and to the server, response from the server and to the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    pub bytes_in: u64,
    pub sent: u64,
    pub received: u64,
    pub bytes_out: u64,
}

impl Flow {
    /// Returns the difference to an earlier state.
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

/// Addresses of a client's connection that rules have set (`set-src`, `set-dst` and related actions).
#[derive(Debug, Clone, Copy, Default)]
pub struct Ends {
    /// Source address.
    pub client: Option<SocketAddr>,
    /// Destination address.
    pub destination: Option<SocketAddr>,
}

impl StreamState {
    /// Returns the first two characters of the termination state. The answer of a service of HTTP is local, whatever its client
    /// does, as in HAProxy.
    pub fn termination(&self) -> [u8; 2] {
        match self.outcome.cause {
            Cause::Client | Cause::ClientTimeout if self.service.is_some() && self.has_request => {
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

    /// Sets source or destination address, by a rule, until the stream ends.
    pub fn change_ends(&self, client: Option<SocketAddr>, destination: Option<SocketAddr>) {
        let known = self.set_ends();
        let ends = Ends { client: client.or(known.client), destination: destination.or(known.destination) };
        self.ends.set(Some(Box::new(ends)));
    }

    /// Returns the client's address, possibly changed by rules; `None` on a UNIX socket.
    pub fn client(&self, session: &Session) -> Option<SocketAddr> {
        self.set_ends().client.or_else(|| session.client())
    }

    /// Returns the client's IP address.
    pub fn source(&self, session: &Session) -> Option<IpAddr> {
        self.client(session).map(|client| client.ip())
    }

    /// Returns the destination address of the client's connection, possibly changed by rules. Costs a system call the first time.
    pub fn destination(&self, session: &Session) -> Option<SocketAddr> {
        self.set_ends().destination.or_else(|| session.destination())
    }

    /// As [`StreamState::destination`], if it was queried before.
    pub fn known_destination(&self, session: &Session) -> Option<SocketAddr> {
        self.set_ends().destination.or_else(|| session.known_destination())
    }

    /// Returns the byte counters.
    #[inline]
    pub fn flow(&self) -> Flow {
        self.bytes
    }

    /// Changes the settings that rules have made.
    pub fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = self.orders.get();
        change(&mut orders);
        self.orders.set(orders);
    }

    /// Returns the method that the client has sent, before changes by rules.
    pub fn client_method(&self) -> Method {
        match &self.captures.borrow().line {
            Some((method, _)) => Method::from_text(method),
            None => self.request.known_method(),
        }
    }

    /// Whether the client has sent a HEAD request.
    pub fn wants_head_alone(&self) -> bool {
        self.client_method() == Method::Head
    }

    /// Whether a response with that status opens a tunnel for the client (RFC 9110, section 9.3.6).
    pub fn opens_tunnel(&self, status: u16) -> bool {
        (200..300).contains(&status) && self.client_method() == Method::Connect
    }

    /// Assigns a backend. Returns the combined features of both proxies.
    #[inline]
    pub fn choose_backend(&mut self, backend: &Proxy) -> Features {
        self.backend = Some(backend.index);
        self.features = self.features.with(backend.features);
        self.features
    }

    /// Discards the request: the received data was not one.
    pub fn forget_request(&mut self) {
        self.request.clear();
        self.has_request = false;
        self.timings.request = None;
        self.backend = None;
    }

    /// Discards the response of a server.
    pub fn forget_answer(&mut self) {
        self.response.clear();
        self.timings.response = None;
        self.server_status = None;
        self.compression = None;
        self.persistence.returned = Returned::None;
        self.status = -1;
    }

    /// Clears the results of rules that run before there is a stream: these rules use a shared reference, so only cells have
    /// changed.
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
        self.costs.rules.clear();
        self.costs.log.clear();
    }

    /// Clears the state and keeps its capacity. The heads are cleared in place; the destructuring makes the compiler report a new
    /// field.
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
            features,
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
            costs,
            last_rule,
            waiting_rule,
            counted,
            early_body,
            replaced_body,
            tracking,
            tracked,
        } = self;
        // Named in full, so that a new field is not missed: these are cleared by `forget_rules` and `forget_features`.
        let _ = (orders, unique_id, identifying, exhausted, captures, variables, last_rule, waiting_rule, tracking);
        let _ = (ends, kept_by_scripts, told, trace, filters, cache, hit, cache_hit, compression, service, stores);
        request.clear();
        response.clear();
        (*task, *inspected, *has_request, *logged, *denied, *failed) = (None, false, false, false, false, false);
        (*first, *server_status, *number) = (false, None, 0);
        (*outcome, *status) = (Outcome::default(), -1);
        (*timings, *start_date) = (Timings::default(), WallTime::default());
        (*backend, *server) = (None, None);
        *persistence = Persistence::default();
        (*bytes, *counted, *early_body, *replaced_body) = (Flow::default(), Flow::default(), 0, None);
        (*attempts, *client_streams, *tracked) = (Attempts::default(), 0, Tracked::default());
        (*client_kernel, costs.before) = (Kernel::Unknown, rt::TaskCost::default());
        // The other fields are changed by optional features and evaluations only.
        let has_features = !std::mem::take(features).are_none();
        if has_features | costs.evaluated.take() {
            self.forget_rules();
            self.forget_features();
        }
        debug_assert!(self.is_plain(), "a field was changed without a feature");
    }

    /// Clears the state of optional features.
    fn forget_features(&mut self) {
        (self.told, self.trace, self.filters) = (Cell::default(), None, None);
        (self.cache, self.hit, self.cache_hit) = (None, None, None);
        (self.compression, self.service) = (None, None);
        self.stores.clear();
    }

    /// Whether no optional feature has left any state.
    fn is_plain(&mut self) -> bool {
        let Self { told, trace, filters, cache, hit, cache_hit, compression, service, stores, .. } = self;
        let noted = told.get_mut().is_some() || trace.is_some() || filters.is_some() || !stores.is_empty();
        let cached = cache.is_some() || hit.is_some() || cache_hit.is_some();
        let answered = compression.is_some() || service.is_some();
        let Self { unique_id, ends, kept_by_scripts, tracking, last_rule, waiting_rule, .. } = self;
        let named = unique_id.get().is_some() || ends.get_mut().is_some() || kept_by_scripts.get_mut().is_some();
        let ruled = !tracking.get_mut().is_empty() || last_rule.get().is_some() || waiting_rule.get().is_some();
        !(noted || cached || answered || named || ruled)
    }
}
