//! One connection from a client, from its accept to its end. Owns what stays the same over all of its streams; an idle
//! session holds no buffer. Must never look into a message.

mod ends;

use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::buffer::Buffer;
use base::hash::avalanche;
use base::moment::{Moment, WallTime};
use base::slab::Key;
use config::spec::{CloseSpread, Mode};
use conn::transport::{self, Transport};
use expression::sample::{ConnectionError, ProtocolFacts};
use expression::variable::SessionStore;
use live::Entry;
use live::counters::FrontCounters;
use live::table::Tracking;
use policy::program::{Bind, ExpectedHeader, Features, Listening, MuxProtocol, Proxy, Segments};
use policy::rule::{Action, Expected, Final};
use rt::LocalRc;
use rt::net::{Address, OwnedSocket, SocketQuery};
use tls::HandshakeInfo;
use wire::proxy_protocol::Header;

use crate::ending::Guard;
use crate::generation::{FrontendHandle, Generation};
use crate::handshake;
use crate::routes::LogRoute;
use crate::stream;
use crate::stream::attaching::Attached;
use crate::stream::http::Client;
use crate::stream::private::PrivateLinks;
use crate::stream::rules::run_connection;
use crate::stream::task::StreamTask;
use crate::worker::{SharedStreamState, Worker};

/// Nanoseconds since the UNIX epoch, to the year 2554; 0 before the epoch.
fn nanos_of(time: WallTime) -> u64 {
    u64::try_from(time.seconds).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(u64::from(time.nanos))
}

/// What few sessions have.
#[derive(Default)]
pub(crate) struct Rare {
    /// The headers that rules on connections want to come first.
    expected: Cell<Option<ExpectedHeader>>,
    /// What the balancer in front has told (`accept-proxy`).
    proxy_header: OnceCell<Header>,
    /// What its TLS handshake has found.
    tls: OnceCell<Arc<HandshakeInfo>>,
    /// What it tracks in stick tables.
    tracking: RefCell<Tracking>,
    /// When the handshakes of the layers below were done, until the first stream took it.
    handshake: Cell<Option<Moment>>,
    /// We have opened its connection (reverse HTTP): the task that keeps it up is told when it has ended.
    reversed: OnceCell<Guard>,
    /// The server that rules have given its connection to.
    attached: Cell<Option<Attached>>,
    /// Links to servers that no other session may use.
    private: RefCell<PrivateLinks>,
    /// What its protocol has seen.
    pub(crate) protocol: Cell<ProtocolFacts>,
}

/// One connection from a client.
pub struct Session {
    /// Its worker.
    pub worker: Rc<Worker>,
    /// What is at hand of its frontend, in the configuration that it began with.
    handle: Rc<FrontendHandle>,
    /// Index of its `bind` line.
    bind: u32,
    /// The client's connection, for queries: its task owns it.
    socket: SocketQuery,
    /// Index of its frontend.
    pub frontend: usize,
    /// The client, as rules of the session see it now; `None` on a UNIX socket.
    client: Cell<Option<SocketAddr>>,
    /// When it was accepted.
    pub accepted: Moment,
    /// The same on the wall clock, as nanoseconds since the UNIX epoch.
    accept_nanos: u64,
    /// The address that the client connected to, asked for once, and what rules have replaced.
    ends: Cell<Option<Box<ends::Ends>>>,
    /// Why it has failed before anything was served.
    pub error: Cell<ConnectionError>,
    /// What few sessions have.
    pub(crate) rare: OnceCell<Box<Rare>>,
    /// Variables that live as long as it does.
    variables: SessionStore,
    /// Its connection came in TCP mode and went over to HTTP.
    upgraded: Cell<bool>,
    /// What is spoken then, where a rule has said that.
    ordered: Cell<Option<MuxProtocol>>,
    /// Its places in the process, the frontend and at the listening address.
    slots: Cell<Option<Entry>>,
}

impl Session {
    /// Its own links to servers, where it has had any. All of its streams use them.
    pub fn private_links(&self) -> Option<&RefCell<PrivateLinks>> {
        self.rare.get().map(|rare| &rare.private)
    }

    /// The same, of a session that is to have some.
    pub fn own_private_links(&self) -> &RefCell<PrivateLinks> {
        &self.rare.get_or_init(Box::default).private
    }

    /// The configuration that it began with, and keeps to its end.
    pub fn generation(&self) -> &Generation {
        &self.handle.generation
    }

    /// The same, for those that outlive a borrow of the session.
    pub fn shared_generation(&self) -> Arc<Generation> {
        Arc::clone(&self.handle.generation)
    }

    /// The proxy with that index, in its own configuration.
    pub fn proxy_at(&self, index: usize) -> &Proxy {
        self.handle.generation.proxy(index)
    }

    /// When it was accepted, on the wall clock.
    pub fn accept_date(&self) -> WallTime {
        let second = 1_000_000_000;
        WallTime { seconds: (self.accept_nanos / second) as i64, nanos: (self.accept_nanos % second) as u32 }
    }

    /// Its frontend.
    pub fn proxy(&self) -> &Proxy {
        &self.handle.proxy
    }

    /// The optional features of its streams before they have a backend.
    #[inline]
    pub fn features(&self) -> Features {
        self.handle.features
    }

    /// Whether its streams may have lines.
    pub fn is_logged(&self) -> bool {
        self.handle.is_logged
    }

    /// Where its lines go, as the configuration has it that it began with.
    pub fn log(&self) -> &LogRoute {
        &self.handle.log
    }

    /// What its worker counts of its frontend.
    pub fn counters(&self) -> &FrontCounters {
        &self.handle.counters
    }

    /// Whether its streams are requests of HTTP.
    pub fn is_http(&self) -> bool {
        self.upgraded.get() || self.proxy().mode == Mode::Http
    }

    /// Its connection goes on in HTTP mode, perhaps in one version alone.
    pub fn upgrade(&self, protocol: Option<MuxProtocol>) {
        self.upgraded.set(true);
        self.ordered.set(protocol.or(self.ordered.get()));
    }

    /// What its client has to speak; `None`: whatever it begins with.
    pub fn protocol(&self) -> Option<MuxProtocol> {
        self.ordered.get().or_else(|| self.bind()?.listening.protocol)
    }

    /// Index of its `bind` line.
    pub fn bind_index(&self) -> usize {
        self.bind as usize
    }

    /// Its `bind` line.
    pub fn bind(&self) -> Option<&Bind> {
        self.proxy().frontend.as_ref().and_then(|frontend| frontend.binds.get(self.bind_index()))
    }

    /// The client; `None` on a UNIX socket.
    pub fn client(&self) -> Option<SocketAddr> {
        self.client.get()
    }

    /// The handshakes of the layers below are done.
    pub fn complete_handshake(&self, now: Moment) {
        self.rare.get_or_init(Box::default).handshake.set(Some(now));
    }

    /// Keeps what the balancer in front has told beside addresses.
    pub fn keep_proxy_header(&self, header: Header) {
        let _ = self.rare.get_or_init(Box::default).proxy_header.set(header);
    }

    /// Keeps what its TLS handshake has found.
    pub fn keep_tls(&self, state: Arc<HandshakeInfo>) {
        let _ = self.rare.get_or_init(Box::default).tls.set(state);
    }

    /// Whether clients speak TLS at its address.
    pub fn is_secure(&self) -> bool {
        self.bind().is_some_and(|bind| bind.tls.is_some())
    }

    /// What its TLS handshake has found; `None`: it speaks plainly.
    pub fn tls(&self) -> Option<&HandshakeInfo> {
        self.rare.get()?.tls.get().map(|state| &**state)
    }

    /// The PROXY protocol header that came before the client's first bytes, if one was expected.
    pub fn proxy_header(&self) -> Option<&Header> {
        self.rare.get()?.proxy_header.get()
    }

    /// The client's connection, for queries. It may be closed already.
    pub fn socket(&self) -> SocketQuery {
        self.socket
    }

    /// What it tracks in stick tables.
    pub fn tracking(&self) -> &RefCell<Tracking> {
        &self.rare.get_or_init(Box::default).tracking
    }

    /// The same, if it may track something.
    #[inline]
    pub fn known_tracking(&self) -> Option<&RefCell<Tracking>> {
        self.rare.get().map(|rare| &rare.tracking)
    }

    /// Variables that live as long as it does.
    pub fn variables(&self) -> &SessionStore {
        &self.variables
    }

    /// Whether the process wants sessions to end.
    pub fn is_stopping(&self) -> bool {
        self.worker.process.is_stopping()
    }

    /// When the process wants this session to end (`close-spread-time`): the moment of the soft stop, or one behind it
    /// that differs from session to session. `None`: it does not.
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

    /// Whether the answer that goes out now has to tell the client that it is the last one.
    pub fn is_leaving(&self) -> bool {
        self.is_stopping() && self.departure().is_some_and(|at| rt::now() >= at) || stream::tracking::wears_out(self)
    }

    /// Whether its connection was opened from here (reverse HTTP).
    fn is_reversed(&self) -> bool {
        self.rare.get().is_some_and(|rare| rare.reversed.get().is_some())
    }

    /// A rule gives its connection to a server.
    pub(crate) fn attach(&self, attached: Attached) {
        self.rare.get_or_init(Box::default).attached.set(Some(attached));
    }

    /// The server that rules have given its connection to.
    fn take_attached(&self) -> Option<Attached> {
        self.rare.get().and_then(|rare| rare.attached.take())
    }

    /// Its places in the process, the frontend and at the listening address, which go on with its connection.
    pub(crate) fn take_slots(&self) -> Option<Entry> {
        self.slots.take()
    }

    /// Ends a stream: its state is given back.
    pub fn end(&self, state: SharedStreamState) {
        stream::task::end(&self.worker, state);
    }

    /// When the handshakes of the layers below were done, for the first stream that asks.
    pub fn take_handshake(&self) -> Option<Moment> {
        self.rare.get().and_then(|rare| rare.handshake.take())
    }

    /// Its connection has ended.
    fn close(&self) {
        self.release();
        if let Some(tracking) = self.known_tracking() {
            stream::tracking::end(&mut tracking.borrow_mut());
        }
        stream::metrics::session_ended(self);
    }

    /// Gives back its places, before the connection itself has ended.
    pub fn release(&self) {
        self.slots.take();
    }
}

/// Starts the session of an accepted connection on this worker. What the rules on connections refuse never becomes a task.
pub fn start(
    worker: &Rc<Worker>,
    handle: &Rc<FrontendHandle>,
    bind: usize,
    accepted: (OwnedSocket, Address),
    slots: Entry,
) {
    let (socket, peer) = accepted;
    let offered = handle.proxy.frontend.as_ref().and_then(|frontend| frontend.binds.get(bind)?.tls.as_ref());
    let stream = match offered {
        None => transport::accept(socket),
        Some(offered) => transport::accept_tls(socket, offered),
    };
    begin(worker, handle, bind, (stream, peer), (slots, None));
}

/// Starts the session of a connection that we have opened, and on which its server asks (reverse HTTP).
pub fn start_reversed(
    worker: &Rc<Worker>,
    handle: &Rc<FrontendHandle>,
    bind: usize,
    opened: (Transport, Address),
    places: (Entry, Guard),
) {
    let (slots, guard) = places;
    begin(worker, handle, bind, opened, (slots, Some(guard)));
}

fn begin(
    worker: &Rc<Worker>,
    handle: &Rc<FrontendHandle>,
    bind: usize,
    (stream, peer): (Transport, Address),
    (slots, guard): (Entry, Option<Guard>),
) {
    let make = || Session {
        worker: Rc::clone(worker),
        handle: Rc::clone(handle),
        bind: bind as u32,
        socket: stream.socket(),
        frontend: handle.proxy.index,
        client: Cell::new(peer.inet()),
        accepted: rt::now(),
        accept_nanos: nanos_of(rt::wall()),
        ends: Cell::default(),
        error: Cell::default(),
        rare: OnceCell::new(),
        variables: SessionStore::default(),
        upgraded: Cell::new(false),
        ordered: Cell::new(None),
        slots: Cell::new(Some(slots)),
    };
    let session = LocalRc::new(|| StreamTask::own(make()));
    if let Some(guard) = guard {
        let _ = session.rare.get_or_init(Box::default).reversed.set(guard);
    }
    StreamTask::enter(&session);
    stream::metrics::connection(&session);
    if session.proxy().rules.connection.is_empty() {
        spawn(session, stream);
    } else {
        // A panic is that of the session, not of the listener's task.
        rt::contain(session.tag(), || screen(session, stream));
    }
}

/// No header of a balancer in front is expected.
const NO_HEADER: ExpectedHeader = ExpectedHeader { netscaler: None, proxy: false };

/// Runs the rules on connections, and goes on with a connection that they let pass.
fn screen(session: LocalRc<StreamTask>, mut stream: Transport) {
    match admit(&session, &mut stream, true) {
        Some(expected) => {
            if expected.is_some() {
                session.rare.get_or_init(Box::default).expected.set(Some(expected));
            }
            spawn(session, stream);
        }
        None => {
            drop(stream);
            leave(&session);
        }
    }
}

fn spawn(session: LocalRc<StreamTask>, stream: Transport) {
    rt::spawn_with(rt::Class::Normal, session.tag(), (session, stream), |(session, stream)| {
        run_unless_killed(session, stream)
    });
}

/// Runs a session to its end, or until it is killed: everything that it holds is dropped then. The client lies in the
/// future once: an argument of an asynchronous function would lie there twice.
fn run_unless_killed(session: LocalRc<StreamTask>, stream: Transport) -> impl Future<Output = ()> {
    let mut client = Client::new(&session, stream);
    async move {
        let mut ended = rt::unless(|| session.is_killed(), prepare(&session, &mut client)).await;
        let mut closing = None;
        if ended != Some(true) {
            drop(client);
        } else if session.is_reversed() {
            let served = rt::boxed(stream::several::serve_reversed(&session, &mut client));
            ended = rt::unless(|| session.is_killed(), served).await.map(|()| true);
            closing = stream::closing::begin(&session, client);
        } else if let Some(attached) = session.take_attached() {
            ended = rt::boxed(stream::attaching::serve(&session, client, attached)).await;
        } else if session.proxy().mode == Mode::Http {
            let served = stream::http::serve(&session, &mut client);
            ended = rt::unless(|| session.is_killed(), served).await.map(|()| true);
            closing = stream::closing::begin(&session, client);
        } else {
            let served = stream::tcp::serve(&session, &mut client);
            let served = rt::unless(|| session.is_killed(), served).await;
            closing = stream::closing::begin(&session, client);
            ended = served.is_some().then_some(true);
            if let Some(Some(state)) = served {
                stream::conclude::conclude(&session, state);
            }
        }
        if ended.is_none() {
            session.conclude_killed();
        }
        if let Some(closing) = closing {
            closing.await;
        }
        leave(&session);
    }
}

/// Does what the listening address asks for before the connection is served. False: the connection has ended.
#[expect(clippy::manual_async_fn, reason = "the arguments of an asynchronous function lie in its future twice")]
fn prepare<'a>(session: &'a StreamTask, client: &'a mut Client) -> impl Future<Output = bool> + 'a {
    async move {
        session.register().await;
        let mut expected = session.rare.get().and_then(|rare| rare.expected.take()).unwrap_or(NO_HEADER);
        if let Some(special) = session.bind().map(|bind| &bind.listening).filter(|listening| is_special(listening)) {
            if let Segments::ReducedBy(bytes) = special.socket.segments {
                // A kernel that refuses leaves the size as it is.
                if let Some((transport, _)) = client.conn.bytes() {
                    let _ = transport.reduce_segments(bytes);
                }
            }
            expected.netscaler = special.header.netscaler.or(expected.netscaler);
            expected.proxy |= special.header.proxy;
        }
        if expected.is_some() {
            let Some((transport, input)) = client.conn.bytes() else { return false };
            if !rt::boxed(receive_header((session, transport, input), expected)).await {
                return false;
            }
        }
        if client.conn.bytes().is_some_and(|(transport, _)| transport.is_tls())
            && !session.is_reversed()
            && !rt::boxed(secure(session, client)).await
        {
            return false;
        }
        if !session.proxy().rules.session.is_empty()
            && client.conn.bytes().is_none_or(|(transport, _)| admit(session, transport, false).is_none())
        {
            return false;
        }
        stream::metrics::session(session);
        stream::tracking::session(session);
        true
    }
}

/// Reads the header of a balancer in front; what came behind it is input. False: the connection has ended.
async fn receive_header(
    (session, transport, input): (&StreamTask, &mut Transport, &mut Buffer),
    expected: ExpectedHeader,
) -> bool {
    let received = handshake::receive(session, transport, expected).await;
    received.map(|received| *input = received).is_some()
}

/// Shakes hands with the client; what has come behind a header is the beginning of that. False: the connection has ended.
async fn secure(session: &StreamTask, client: &mut Client) -> bool {
    let Some((transport, input)) = client.conn.bytes() else { return false };
    let early = std::mem::replace(input, Buffer::empty());
    handshake::secure(session, transport, early).await
}

/// Runs the rules on a connection, or on its session. `None`: it is refused; else the headers that have to come first.
fn admit(session: &Session, client: &mut Transport, before_session: bool) -> Option<ExpectedHeader> {
    let rules = &session.proxy().rules;
    let rules = if before_session { &rules.connection } else { &rules.session };
    if !before_session && rules.iter().any(|rule| matches!(rule.action, Action::SetEnd(..))) {
        session.keep_ends();
    }
    let mut expected = NO_HEADER;
    let ended = run_connection(session, rules, &mut |header| match header {
        Expected::Proxy => expected.proxy = true,
        // Without a number of its own, the address wants 0.
        Expected::NetScaler => {
            let of_address = session.bind().and_then(|bind| bind.listening.header.netscaler);
            expected.netscaler = Some(of_address.unwrap_or(0));
        }
    });
    let Some(ended) = ended else { return Some(expected) };
    // What the system does not let happen so happens all the same.
    let _ = match ended {
        Final::SilentDrop(hops) => client.forget(*hops),
        // A reset leaves nothing behind on either side, where an orderly end waits for the client's.
        _ if before_session => client.set_linger_zero(),
        _ => Ok(()),
    };
    match ended {
        Final::Exhausted => stream::metrics::exhausted(session),
        _ => stream::metrics::denied(session, before_session),
    }
    None
}

/// Whether something has to be done with connections of an address before they are served.
fn is_special(listening: &Listening) -> bool {
    listening.header.is_some() || matches!(listening.socket.segments, Segments::ReducedBy(_))
}

/// The task of a session has ended.
fn leave(task: &StreamTask) {
    task.close();
    task.leave();
}

/// A task panicked and was dropped: what is known of its stream is counted and logged as internal, and its session ends
/// where it was that one's own.
pub fn conclude_panicked(worker: &Worker, tag: u64) {
    let Some(task) = worker.leave(Key::from_bits(tag)) else { return };
    task.conclude_panicked();
    if task.owns_session() {
        task.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_of<A, B, F: Future>(_: impl FnOnce(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// Idle clients are what a proxy has most of. Code that needs more than this per session boxes what is rare.
    #[test]
    fn an_idle_session_is_small() {
        let (task, shared) = (future_of(run_unless_killed), size_of::<StreamTask>());
        assert!(task <= 224 && shared <= 176, "{task} bytes of a future, {shared} of a session");
    }
}
