//! The state of a stream: its messages, times, proxies and outcome. It is stored outside of the future that serves the stream, so
//! that it survives a panic in it. Must never decide anything.

mod accounting;
mod answer;
mod attempts;
pub mod cache_use;
pub mod evaluation_cost;
pub mod failure;
pub mod instrumentation;
mod outcome;
mod request;
mod route;
mod rules;
pub mod socket_handle;
pub mod trace;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};

use expression::capture::Captures;
use expression::record::Timings;
use expression::variable::Store;
use live::persistence::Returned;
use policy::program::{Features, Proxy};
use wire::http::{Head, Method};

use crate::filter::Filters;
use crate::orders::Orders;
use crate::session::Session;
pub use accounting::{Accounting, Costs, Flow, Tracked};
pub use answer::AnswerInfo;
pub use attempts::{Attempts, EarlyRequest};
use cache_use::CacheUse;
use instrumentation::Instrumentation;
pub use outcome::{Cause, Outcome, Phase};
pub use request::{Ends, RequestInfo};
pub use route::{RouteInfo, ServiceName};
pub use rules::RuleResults;
use trace::StreamTrace;

/// The state of one stream. Recycled: `clear` keeps the heads' capacity.
#[derive(Default)]
pub struct StreamState {
    /// The request's head; empty in TCP mode.
    pub request: Head,
    /// Head of the response.
    pub response: Head,
    /// Properties of the request.
    pub info: RequestInfo,
    /// Its backend and server, or the service that answers it.
    pub route: RouteInfo,
    /// State of its attempts to reach a server.
    pub attempts: Attempts,
    /// Properties of the response.
    pub answer: AnswerInfo,
    /// Results of its rules.
    pub rules: RuleResults,
    /// Its bytes and costs, and the part of them that is counted.
    pub accounting: Accounting,
    /// Times of its events.
    pub timings: Timings,
    /// How it ended.
    pub outcome: Outcome,
    /// The optional features of its frontend, and of its backend once it has one.
    pub features: Features,
    /// Captures for the log.
    pub captures: RefCell<Captures>,
    /// Variables of scopes `txn`, `req` and `res`.
    pub variables: RefCell<Store>,
    /// Its filters, if its proxies have any.
    pub filters: Option<Filters>,
    /// State of its use of a cache.
    pub cache: Option<Box<CacheUse>>,
    /// Data that scripts store for it.
    pub kept_by_scripts: Cell<Option<Box<dyn Any>>>,
    /// State of `filter otel`, its spans included.
    pub instrumentation: Cell<Option<Box<Instrumentation>>>,
    /// Its span and attempts (`otel-trace`).
    pub trace: Option<Box<StreamTrace>>,
}

impl StreamState {
    /// Returns the first two characters of the termination state. The answer of a service of HTTP is local, whatever its client
    /// does, as in HAProxy.
    pub fn termination(&self) -> [u8; 2] {
        match self.outcome.cause {
            Cause::Client | Cause::ClientTimeout if self.route.service.is_some() && self.info.has_request => {
                Outcome::new(Cause::Local, Phase::Request).letters()
            }
            _ => self.outcome.letters(),
        }
    }

    /// Sets source or destination address, by a rule, until the stream ends.
    pub fn change_ends(&self, client: Option<SocketAddr>, destination: Option<SocketAddr>) {
        let known = self.info.set_ends();
        let ends = Ends { client: client.or(known.client), destination: destination.or(known.destination) };
        self.info.ends.set(Some(Box::new(ends)));
    }

    /// Returns the client's address, possibly changed by rules; `None` on a UNIX socket.
    pub fn client(&self, session: &Session) -> Option<SocketAddr> {
        self.info.set_ends().client.or_else(|| session.client())
    }

    /// Returns the client's IP address.
    pub fn source(&self, session: &Session) -> Option<IpAddr> {
        self.client(session).map(|client| client.ip())
    }

    /// Returns the destination address of the client's connection, possibly changed by rules. Costs a system call the first time.
    pub fn destination(&self, session: &Session) -> Option<SocketAddr> {
        self.info.set_ends().destination.or_else(|| session.destination())
    }

    /// As [`StreamState::destination`], if it was queried before.
    pub fn known_destination(&self, session: &Session) -> Option<SocketAddr> {
        self.info.set_ends().destination.or_else(|| session.known_destination())
    }

    /// Returns the byte counters.
    #[inline]
    pub fn flow(&self) -> Flow {
        self.accounting.bytes
    }

    /// Changes the settings that rules have made.
    pub fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = self.rules.orders.get();
        change(&mut orders);
        self.rules.orders.set(orders);
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
        self.route.backend = Some(backend.index);
        self.features = self.features.with(backend.features);
        self.features
    }

    /// Discards the request: the received data was not one.
    pub fn forget_request(&mut self) {
        self.request.clear();
        self.info.has_request = false;
        self.timings.request = None;
        self.route.backend = None;
    }

    /// Discards the response of a server.
    pub fn forget_answer(&mut self) {
        self.response.clear();
        self.timings.response = None;
        self.answer.server_status = None;
        self.answer.compression = None;
        self.route.persistence.returned = Returned::None;
        self.answer.status = -1;
    }

    /// Clears the results of rules that run before there is a stream: these rules use a shared reference, so only cells have
    /// changed.
    pub fn forget_rules(&mut self) {
        self.rules.forget();
        self.info.forget_rules();
        self.accounting.forget_rules();
        self.captures.get_mut().clear();
        self.variables.get_mut().clear();
        self.kept_by_scripts.take();
    }

    /// Clears the state and keeps its capacity. The heads are cleared in place; the destructuring makes the compiler report a new
    /// field.
    pub fn clear(&mut self) {
        let Self {
            request,
            response,
            info,
            route,
            attempts,
            answer,
            rules,
            accounting,
            timings,
            outcome,
            features,
            captures,
            variables,
            filters,
            cache,
            kept_by_scripts,
            instrumentation,
            trace,
        } = self;
        // Named in full, so that a new field is not missed: these are cleared by `forget_rules` and `forget_features`.
        let _ = (captures, variables, kept_by_scripts, filters, cache, instrumentation, trace);
        request.clear();
        response.clear();
        info.clear();
        route.clear();
        answer.clear();
        rules.clear();
        accounting.clear();
        *attempts = Attempts::default();
        (*timings, *outcome) = (Timings::default(), Outcome::default());
        // The other fields are changed by optional features and evaluations only.
        let has_features = !std::mem::take(features).are_none();
        if has_features | accounting.costs.evaluated.take() {
            self.forget_rules();
            self.forget_features();
        }
        debug_assert!(self.is_plain(), "a field was changed without a feature");
    }

    /// Clears the state of optional features.
    fn forget_features(&mut self) {
        (self.instrumentation, self.trace, self.filters, self.cache) = (Cell::default(), None, None, None);
        self.answer.forget_features();
        self.route.forget_features();
    }

    /// Whether no optional feature has left any state.
    fn is_plain(&mut self) -> bool {
        let Self { instrumentation, trace, filters, cache, kept_by_scripts, .. } = self;
        let noted = instrumentation.get_mut().is_some() || trace.is_some() || filters.is_some() || cache.is_some();
        let ruled = !self.accounting.tracking.get_mut().is_empty() || !self.rules.is_plain();
        let is_kept = kept_by_scripts.get_mut().is_some();
        !(noted || ruled || is_kept) && self.info.is_plain() && self.route.is_plain() && self.answer.is_plain()
    }
}
