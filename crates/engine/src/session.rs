//! A client's connection, from its accept to its end. Owns the state that is shared by all of its streams; an idle session holds
//! no buffer. Must never look into a message.

pub(crate) mod attached_server;
mod ends;
pub(crate) mod private_links;
pub mod task;

use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::hash::avalanche;
use base::moment::{Moment, OptionalMoment, WallTime};
use config::spec::{CloseSpread, Mode};
use expression::sample::{ConnectionError, ProtocolFacts};
use expression::variable::SessionStore;
use live::Entry;
use live::counters::FrontCounters;
use live::table::Tracking;
use policy::program::{Bind, ExpectedHeader, Features, MuxProtocol, Proxy};
use rt::net::SocketQuery;
use tls::HandshakeInfo;
use wire::proxy_protocol::Header;

use crate::end_notice::Guard;
use crate::generation::{FrontendHandle, Generation};
use crate::routes::LogRoute;
use crate::worker::Worker;
use attached_server::AttachedServer;
use private_links::PrivateLinks;

/// Nanoseconds since the UNIX epoch, to the year 2554; 0 before the epoch.
fn nanos_of(time: WallTime) -> u64 {
    u64::try_from(time.seconds).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(u64::from(time.nanos))
}

/// Facts about a connection that uses TLS or carries several streams.
#[derive(Default)]
pub(crate) struct ConnectionFacts {
    /// Result of its TLS handshake.
    tls: OnceCell<Arc<HandshakeInfo>>,
    /// Time at which the handshakes of the lower layers were complete, until the first stream takes it.
    handshake: Cell<OptionalMoment>,
    /// State of its protocol.
    pub(crate) protocol: Cell<ProtocolFacts>,
    extras: OnceCell<Box<SessionExtras>>,
}

const _: () = assert!(size_of::<ConnectionFacts>() <= 40);

/// State that only few sessions have.
#[derive(Default)]
pub(crate) struct SessionExtras {
    /// Headers that have to be received first, as rules on connections require.
    pub(crate) expected: Cell<Option<ExpectedHeader>>,
    /// PROXY protocol header received from the proxy in front (`accept-proxy`).
    proxy_header: OnceCell<Header>,
    /// Its entries in stick tables.
    tracking: RefCell<Tracking>,
    /// Set if we have opened its connection (reverse HTTP): notifies the task that maintains the connection when it ends.
    pub(crate) reversed: OnceCell<Guard>,
    /// Server to which rules have assigned its connection.
    attached: Cell<Option<AttachedServer>>,
    /// Server connections that only this session may use.
    private: RefCell<PrivateLinks>,
}

/// One connection from a client.
pub struct Session {
    pub worker: Rc<Worker>,
    /// Handle of its frontend, in the configuration that was current at its accept.
    handle: Rc<FrontendHandle>,
    /// Index of its `bind` line.
    bind: u32,
    /// Query handle of the client's connection, which its task owns.
    socket: SocketQuery,
    /// Index of its frontend.
    pub frontend: usize,
    /// The client's address, possibly changed by rules of the session; `None` on a UNIX socket.
    client: Cell<Option<SocketAddr>>,
    /// Time of its accept.
    pub accepted: Moment,
    /// Wall-clock time of `accepted`, in nanoseconds since the UNIX epoch.
    accept_nanos: u64,
    /// Destination and original addresses, once they are queried or changed.
    ends: Cell<Option<Box<ends::Ends>>>,
    /// Reason of a failure before anything was served.
    pub error: Cell<ConnectionError>,
    /// Facts that only some sessions have, and what only few have.
    pub(crate) facts: OnceCell<Box<ConnectionFacts>>,
    /// Variables of scope `sess`.
    variables: SessionStore,
    /// Its connection was upgraded from TCP mode to HTTP.
    upgraded: Cell<bool>,
    /// Protocol after that upgrade, if a rule has chosen one.
    ordered: Cell<Option<MuxProtocol>>,
    /// Its slots in the limits of the process, the frontend and the listening address.
    slots: Cell<Option<Entry>>,
}

impl Session {
    /// Creates the session of a connection that was just accepted or opened, with its slots in the limits.
    #[inline]
    pub(crate) fn new(
        worker: &Rc<Worker>,
        handle: &Rc<FrontendHandle>,
        bind: usize,
        socket: SocketQuery,
        client: Option<SocketAddr>,
        slots: impl Into<Option<Entry>>,
    ) -> Self {
        Self {
            worker: Rc::clone(worker),
            handle: Rc::clone(handle),
            bind: bind as u32,
            socket,
            frontend: handle.proxy.index,
            client: Cell::new(client),
            accepted: rt::now(),
            accept_nanos: nanos_of(rt::wall()),
            ends: Cell::default(),
            error: Cell::default(),
            facts: OnceCell::new(),
            variables: SessionStore::default(),
            upgraded: Cell::new(false),
            ordered: Cell::new(None),
            slots: Cell::new(slots.into()),
        }
    }

    /// Returns facts about its connection, which are stored from now on.
    pub(crate) fn facts(&self) -> &ConnectionFacts {
        self.facts.get_or_init(Box::default)
    }

    /// Returns state that only few sessions have, and that this one has from now on.
    pub(crate) fn extras(&self) -> &SessionExtras {
        self.facts().extras.get_or_init(Box::default)
    }

    /// Returns state that only few sessions have, if this one has it.
    #[inline]
    pub(crate) fn known_extras(&self) -> Option<&SessionExtras> {
        self.facts.get()?.extras.get().map(|extras| &**extras)
    }

    /// Returns its private server connections, which all of its streams use, if it has had any.
    pub fn private_links(&self) -> Option<&RefCell<PrivateLinks>> {
        self.known_extras().map(|extras| &extras.private)
    }

    /// Returns its private server connections, creating their storage if necessary.
    pub fn own_private_links(&self) -> &RefCell<PrivateLinks> {
        &self.extras().private
    }

    /// Returns its frontend's handle.
    pub(crate) fn frontend_handle(&self) -> &Rc<FrontendHandle> {
        &self.handle
    }

    /// Returns its configuration, which stays the same until its end.
    pub fn generation(&self) -> &Generation {
        &self.handle.generation
    }

    /// Returns a reference-counted handle to its configuration.
    pub fn shared_generation(&self) -> Arc<Generation> {
        Arc::clone(&self.handle.generation)
    }

    /// Returns the proxy with that index in its configuration.
    pub fn proxy_at(&self, index: usize) -> &Proxy {
        self.handle.generation.proxy(index)
    }

    /// Returns the wall-clock time of its accept.
    pub fn accept_date(&self) -> WallTime {
        let second = 1_000_000_000;
        WallTime { seconds: (self.accept_nanos / second) as i64, nanos: (self.accept_nanos % second) as u32 }
    }

    /// Returns its frontend.
    pub fn proxy(&self) -> &Proxy {
        &self.handle.proxy
    }

    /// Returns the optional features of its streams before they have a backend.
    #[inline]
    pub fn features(&self) -> Features {
        self.handle.features
    }

    /// Whether its streams may write log lines.
    pub fn is_logged(&self) -> bool {
        self.handle.is_logged
    }

    /// Returns the log route of its frontend.
    pub fn log(&self) -> &LogRoute {
        &self.handle.log
    }

    /// Returns its worker's counters for the frontend.
    pub fn counters(&self) -> &FrontCounters {
        &self.handle.counters
    }

    /// Whether its streams are HTTP requests.
    pub fn is_http(&self) -> bool {
        self.upgraded.get() || self.proxy().mode == Mode::Http
    }

    /// Switches its connection to HTTP mode, optionally to one version of HTTP.
    pub fn upgrade(&self, protocol: Option<MuxProtocol>) {
        self.upgraded.set(true);
        self.ordered.set(protocol.or(self.ordered.get()));
    }

    /// Returns the protocol that its client has to use; `None`: it is detected.
    pub fn protocol(&self) -> Option<MuxProtocol> {
        self.ordered.get().or_else(|| self.bind()?.listening.protocol)
    }

    /// Returns the index of its `bind` line.
    pub fn bind_index(&self) -> usize {
        self.bind as usize
    }

    /// Returns its `bind` line.
    pub fn bind(&self) -> Option<&Bind> {
        self.proxy().frontend.as_ref().and_then(|frontend| frontend.binds.get(self.bind_index()))
    }

    /// Returns the client's address; `None` on a UNIX socket.
    pub fn client(&self) -> Option<SocketAddr> {
        self.client.get()
    }

    /// Records the time at which the handshakes of the lower layers were complete.
    pub fn complete_handshake(&self, now: Moment) {
        self.facts().handshake.set(Some(now).into());
    }

    /// Stores the PROXY protocol header of a proxy in front.
    pub fn keep_proxy_header(&self, header: Header) {
        let _ = self.extras().proxy_header.set(header);
    }

    /// Stores the result of its TLS handshake.
    pub fn keep_tls(&self, state: Arc<HandshakeInfo>) {
        let _ = self.facts().tls.set(state);
    }

    /// Whether its listening address uses TLS.
    pub fn is_secure(&self) -> bool {
        self.bind().is_some_and(|bind| bind.tls.is_some())
    }

    /// Returns the result of its TLS handshake; `None`: it does not use TLS.
    pub fn tls(&self) -> Option<&HandshakeInfo> {
        self.facts.get()?.tls.get().map(|state| &**state)
    }

    /// Returns the PROXY protocol header that was received, if one was expected.
    pub fn proxy_header(&self) -> Option<&Header> {
        self.known_extras()?.proxy_header.get()
    }

    /// Returns the query handle of the client's connection, which may be closed.
    pub fn socket(&self) -> SocketQuery {
        self.socket
    }

    /// Returns its entries in stick tables.
    pub fn tracking(&self) -> &RefCell<Tracking> {
        &self.extras().tracking
    }

    /// Returns its entries in stick tables, if their storage was created.
    #[inline]
    pub fn known_tracking(&self) -> Option<&RefCell<Tracking>> {
        self.known_extras().map(|extras| &extras.tracking)
    }

    /// Returns the variables of scope `sess`.
    pub fn variables(&self) -> &SessionStore {
        &self.variables
    }

    /// Whether the process is stopping.
    pub fn is_stopping(&self) -> bool {
        self.worker.process.is_stopping()
    }

    /// Returns the time at which this session has to end (`close-spread-time`): that of the soft stop, or a later one that
    /// differs between sessions. `None`: it does not have to end.
    pub fn departure(&self) -> Option<Moment> {
        let stopped = self.worker.process.stopped_at()?;
        match self.generation().program.global.close_spread {
            CloseSpread::AtOnce => Some(stopped),
            CloseSpread::Over(window) => {
                let number =
                    self.client.get().map_or(0, |client| u64::from(client.port()) << 32) ^ self.accepted.as_nanos();
                let share = u64::from(avalanche((number ^ (number >> 32)) as u32) % 1000);
                Some(stopped + Duration::from_micros(window.saturating_mul(share)))
            }
            CloseSpread::Never => None,
        }
    }

    /// Whether we have opened its connection (reverse HTTP).
    pub(crate) fn is_reversed(&self) -> bool {
        self.known_extras().is_some_and(|extras| extras.reversed.get().is_some())
    }

    /// Assigns its connection to a server, by a rule (reverse HTTP).
    pub(crate) fn attach(&self, attached: AttachedServer) {
        self.extras().attached.set(Some(attached));
    }

    /// Takes the server to which rules have assigned its connection.
    pub(crate) fn take_attached(&self) -> Option<AttachedServer> {
        self.known_extras().and_then(|extras| extras.attached.take())
    }

    /// Takes its slots, which are then owned by its connection.
    pub(crate) fn take_slots(&self) -> Option<Entry> {
        self.slots.take()
    }

    /// Takes the time at which the handshakes of the lower layers were complete; only the first stream gets it.
    pub fn take_handshake(&self) -> Option<Moment> {
        self.facts.get().and_then(|facts| facts.handshake.take().get())
    }

    /// Releases its slots before the connection itself has ended.
    pub fn release(&self) {
        self.slots.take();
    }
}
