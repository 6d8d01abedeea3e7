//! The beginning of a flow: its session, its server, and the socket to that. Must never wait, nor pass a datagram on.

use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::rc::Rc;

use balance::Subject;
use expression::sample::Bytes;
use live::{Assignment, Entry, PickContext, ProxyState};
use policy::program::{Proxy, Server, ServerAddress, ServerPort};
use policy::rule::SelectedServer;
use rt::LocalRc;
use rt::net::{DatagramSocket, Datagrams, SocketQuery};

use super::client_socket::ClientSocket;
use super::flow::{Flow, Progress};
use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::client::run::leave;
use crate::stream::conclude;
use crate::stream::record::metrics::{self, ServerEvent};
use crate::stream::record::{tracing, tracking};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::server::connect::hash_of_key;
use crate::stream::server::persistence;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::{SharedStreamState, Slot};
use wire::proxy_protocol::EncoderV2;

/// Those that workers keep are in the limit of descriptors.
const _: () = assert!(rt::net::KEPT_SOCKETS as u64 == policy::compile::KEPT_DATAGRAM_SOCKETS);

/// Information about a flow that exists before it begins.
#[derive(Default)]
pub(super) struct FlowHint {
    /// Contents that rules and hashes see; `None`: those of the first datagram.
    pub(super) contents: Option<Vec<u8>>,
    /// The server of the connection that the first datagram belongs to; rules are not evaluated then.
    pub(super) server: Option<usize>,
}

/// Begins a flow for the first datagrams of a client. `None`: it has ended already; its log line is written.
pub(super) fn begin(
    clients: &ClientSocket,
    datagrams: &Datagrams<'_>,
    slots: Entry,
    hint: &FlowHint,
) -> Option<Rc<Flow>> {
    let worker = &clients.worker;
    let generation = worker.generation();
    let owner = clients.place.owner();
    let handle = generation.frontend(owner.frontend);
    let settings = **handle.proxy.flows.as_ref()?;
    let bound = clients.socket.local_address();
    let make = || Session::new(worker, &handle, owner.bind, SocketQuery::of_none(), Some(datagrams.peer), slots);
    worker.enter_session();
    let session = LocalRc::new(|| StreamTask::own(make()));
    session.set_destination(SocketAddr::new(datagrams.local_ip.unwrap_or(bound.ip()), bound.port()));
    StreamTask::enter(&session);
    metrics::connection(&session);
    metrics::session(&session);
    tracking::session(&session);
    let state = session.begin_without_requests();
    metrics::tcp(&session);
    tracing::connection(&session, &state.borrow());
    let contents = hint.contents.as_deref().or_else(|| datagrams.iter().next()).unwrap_or_default();
    let selected = hint.server.map(|server| SelectedServer { server, forced: false, stays: false });
    let first = FirstContents { contents, selected };
    let target = place(&session, &state, session.proxy(), &first, clients.socket.most_segments());
    let Target { slot, socket, server, header } = match target {
        Ok(target) => target,
        Err(outcome) => {
            state.borrow_mut().outcome = outcome;
            state.borrow_mut().accounting.bytes.bytes_in += datagrams.bytes.len() as u64;
            conclude::conclude(&session, state);
            leave(&session);
            return None;
        }
    };
    let (client, local, slot) = (datagrams.peer, datagrams.local_ip, Cell::new(Some(slot)));
    let (progress, place, ids) = (Progress::new(), Cell::new(None), OnceCell::new());
    Some(Rc::new(Flow { session, state, settings, socket, server, client, local, header, progress, slot, place, ids }))
}

/// A server's slot and a socket that is connected to it.
struct Target {
    slot: Slot,
    socket: DatagramSocket,
    server: SocketAddr,
    header: Box<[u8]>,
}

/// Input of the choice of a server.
struct FirstContents<'a> {
    contents: &'a [u8],
    /// The server that is chosen already.
    selected: Option<SelectedServer>,
}

/// Chooses a server, and opens a socket for it.
///
/// # Errors
/// The outcome of the flow: no server is available, or the system has no socket for it.
fn place(
    session: &Session,
    state: &SharedStreamState,
    proxy: &Proxy,
    first: &FirstContents<'_>,
    most_segments: usize,
) -> Result<Target, Outcome> {
    let no_server = Outcome::new(Cause::Server, Phase::Connect);
    let backend = proxy.backend.as_ref().ok_or(no_server)?;
    state.borrow_mut().choose_backend(proxy);
    metrics::backend(&session.worker, proxy);
    let FirstContents { contents, selected } = *first;
    let hash = match &backend.hash_key {
        None => {
            let source = state.borrow().source(session);
            let subject = Subject { source, request: None, bytes: contents };
            backend.recogniser.as_ref().and_then(|recogniser| recogniser.hash(&subject))
        }
        Some(key) => {
            let known = state.borrow();
            let bytes = Bytes::new(contents, true);
            hash_of_key(EvalContext { bytes, ..EvalContext::request(session, &known) }, backend, key)
        }
    };
    let bound = selected.or_else(|| persistence::bind_session(session, state, proxy, contents));
    let pick = PickContext {
        hash,
        random: rt::random(),
        server: bound.map(|bound| bound.server),
        forced: bound.is_some_and(|bound| bound.forced),
        ..PickContext::default()
    };
    let slot = match ProxyState::assign_with(session.worker.proxy_state(proxy.index).clone(), &pick) {
        Assignment::Slot(slot) => slot,
        Assignment::Unavailable => {
            metrics::step(&session.worker, proxy, None, ServerEvent::Failure);
            return Err(no_server);
        }
        // A datagram does not wait: its sender repeats it.
        Assignment::Queued(_) | Assignment::QueueFull => return Err(Outcome::new(Cause::Server, Phase::Queue)),
    };
    let server = backend.servers.get(slot.server()).ok_or(no_server)?;
    metrics::server(&session.worker, proxy, server, slot.entered(), bound.is_none());
    {
        let state = &mut *state.borrow_mut();
        state.route.server = Some(slot.server());
        state.timings.queued = Some(rt::now());
    }
    let opened = open(session, state, server, most_segments);
    let Some((socket, address)) = opened else {
        metrics::step(&session.worker, proxy, Some(server), ServerEvent::Failure);
        state.borrow_mut().attempts.counts = Some(slot.release());
        return Err(Outcome::new(Cause::Resource, Phase::Connect));
    };
    metrics::step(&session.worker, proxy, Some(server), ServerEvent::Connect);
    metrics::server_session(&session.worker, server);
    state.borrow_mut().timings.connected = Some(rt::now());
    let header = header(session, state, server);
    Ok(Target { slot, socket, server: address, header })
}

/// Returns the PROXY header in front of each datagram; empty: the server gets none.
fn header(session: &Session, state: &SharedStreamState, server: &Server) -> Box<[u8]> {
    if server.connecting.header.is_none() {
        return Box::default();
    }
    let ends = state.borrow().client(session).zip(state.borrow().destination(session));
    let mut out = rt::buffer();
    let written = EncoderV2::begin(ends, &mut out).over_udp().finish(false, |_| {});
    // A buffer holds the header of two addresses.
    if written.is_ok() { out.data().into() } else { Box::default() }
}

/// Opens a socket that is connected to a server. `None`: it has no address, or the system refuses.
fn open(
    session: &Session,
    state: &SharedStreamState,
    server: &Server,
    most_segments: usize,
) -> Option<(DatagramSocket, SocketAddr)> {
    let outgoing = &session.worker.process.outgoing;
    let route = outgoing.route(server.serial).filter(|route| !route.blocked)?;
    let ServerAddress::Inet { ip, port } = *outgoing.address(server) else { return None };
    let destination = || state.borrow().destination(session);
    let ip = if ip.is_unspecified() { destination().map_or(ip, |client| client.ip()) } else { ip };
    let port = match port {
        ServerPort::Exact(port) => port,
        offset => offset.resolve(destination().map_or(0, |client| client.port())),
    };
    let address = SocketAddr::new(ip, port);
    let socket = DatagramSocket::connect(address, &route.options, most_segments).ok()?;
    Some((socket, address))
}
