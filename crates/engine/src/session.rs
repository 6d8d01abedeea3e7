//! One connection from a client, from its accept to its end. Owns what stays the same over all of its streams; an idle
//! session holds no buffer. Must never look into a message.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use base::buffer::Buffer;
use base::hash::avalanche;
use base::moment::{Moment, WallTime};
use base::slab::Key;
use config::spec::{CloseSpread, Mode};
use policy::live::Entry;
use policy::program::{Bind, Listening, Proxy, Segments};
use rt::net::{Address, OwnedSocket, Stream};
use wire::proxy_protocol::Header;

use crate::facts::{Cause, Outcome, Phase};
use crate::handshake;
use crate::stream;
use crate::worker::{SharedFacts, Worker};

/// One connection from a client.
pub struct Session {
    /// Its worker.
    pub worker: Rc<Worker>,
    /// Index of its frontend.
    pub frontend: usize,
    /// Index of its `bind` line.
    pub bind: usize,
    /// The client; `None` on a UNIX socket.
    client: Cell<Option<SocketAddr>>,
    /// When it was accepted.
    pub accepted: Moment,
    /// The same on the wall clock.
    pub accept_date: WallTime,
    /// The address that the client connected to; asked for once.
    destination: OnceCell<Option<SocketAddr>>,
    /// When the handshakes of the layers below were done, until the first stream is told.
    handshake: Cell<Option<Moment>>,
    /// What the balancer in front has told (`accept-proxy`).
    proxy_header: OnceCell<Box<Header>>,
    /// The stream that it serves now.
    facts: RefCell<Option<SharedFacts>>,
    waker: RefCell<Option<Waker>>,
    key: Cell<Option<Key>>,
    /// Somebody wants its connection closed at once.
    killed: Cell<bool>,
    /// Its places in the process, the frontend and at the listening address.
    slots: RefCell<Option<Entry>>,
}

impl Session {
    /// Its frontend.
    pub fn proxy(&self) -> &Proxy {
        self.worker.proxy(self.frontend)
    }

    /// Its `bind` line.
    pub fn bind(&self) -> Option<&Bind> {
        self.proxy().frontend.as_ref().and_then(|frontend| frontend.binds.get(self.bind))
    }

    /// The client; `None` on a UNIX socket.
    pub fn client(&self) -> Option<SocketAddr> {
        self.client.get()
    }

    /// The client's address.
    pub fn source(&self) -> Option<IpAddr> {
        self.client().map(|client| client.ip())
    }

    /// A balancer in front has told who the client is and where it connected to: that counts from now on.
    pub fn replace_addresses(&self, client: SocketAddr, destination: SocketAddr) {
        self.client.set(Some(client));
        // Nobody has asked yet; else the address that was told then stays.
        let _ = self.destination.set(Some(destination));
    }

    /// The handshakes of the layers below are done.
    pub fn complete_handshake(&self, now: Moment) {
        self.handshake.set(Some(now));
    }

    /// Keeps what the balancer in front has told beside addresses.
    pub fn keep_proxy_header(&self, header: Header) {
        let _ = self.proxy_header.set(Box::new(header));
    }

    /// The PROXY protocol header that came before the client's first bytes, if one was expected.
    pub fn proxy_header(&self) -> Option<&Header> {
        self.proxy_header.get().map(|header| &**header)
    }

    /// The address that the client connected to. A system call the first time.
    pub fn destination(&self, stream: &Stream) -> Option<SocketAddr> {
        *self.destination.get_or_init(|| {
            let address = stream.local_address().ok()?.inet()?;
            // Only the packet filter knows where a connection went that it redirected. An IPv4 address in the form of
            // IPv6 is looked for as nothing: the kernel keeps the two apart.
            let before = stream.original_destination(address.is_ipv6()).ok();
            Some(before.and_then(|before| before.inet()).unwrap_or(address))
        })
    }

    /// The address that the client connected to, if somebody asked before.
    pub fn known_destination(&self) -> Option<SocketAddr> {
        self.destination.get().copied().flatten()
    }

    /// Whether the process wants sessions to end.
    pub fn is_stopping(&self) -> bool {
        self.worker.shared.is_stopping()
    }

    /// When the process wants this session to end (`close-spread-time`): the moment of the soft stop, or one behind it
    /// that differs from session to session. `None`: it does not.
    pub fn departure(&self) -> Option<Moment> {
        let stopped = self.worker.shared.stopped_at()?;
        match self.worker.shared.program.global.close_spread {
            CloseSpread::AtOnce => Some(stopped),
            CloseSpread::Over(window) => {
                let number = self.key.get().map_or(0, Key::to_bits) ^ self.accepted.as_nanos();
                let share = u64::from(avalanche((number ^ (number >> 32)) as u32) % 1000);
                Some(stopped + Duration::from_micros(window.saturating_mul(share)))
            }
            CloseSpread::Never => None,
        }
    }

    /// Whether the answer that goes out now has to tell the client that it is the last one.
    pub fn is_leaving(&self) -> bool {
        self.is_stopping() && self.departure().is_some_and(|departure| rt::now() >= departure)
    }

    /// Begins a stream: its facts are reachable from here until it is concluded.
    pub fn begin(&self) -> SharedFacts {
        let facts = self.worker.take_facts();
        if let Some(handshake) = self.handshake.take() {
            facts.borrow_mut().timings.handshake = Some(handshake);
        }
        *self.facts.borrow_mut() = Some(Rc::clone(&facts));
        facts
    }

    /// The stream that is served now.
    pub fn current(&self) -> Option<SharedFacts> {
        self.facts.borrow().clone()
    }

    /// Ends the stream: its facts are given back.
    pub fn end(&self, facts: SharedFacts) {
        *self.facts.borrow_mut() = None;
        self.worker.keep_facts(facts);
    }

    /// Wakes its task.
    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Closes its connection at once, whatever its stream does (`shutdown session`). False: it has no stream.
    pub fn kill(&self) -> bool {
        let has_stream = self.facts.borrow().is_some();
        if has_stream {
            self.killed.set(true);
            self.wake();
        }
        has_stream
    }

    /// Gives back its places, before the connection itself has ended.
    pub fn release(&self) {
        self.slots.borrow_mut().take();
    }
}

/// Starts the session of an accepted connection on this worker.
pub fn start(worker: &Rc<Worker>, frontend: usize, bind: usize, accepted: (OwnedSocket, Address), slots: Entry) {
    let (socket, peer) = accepted;
    let client = match peer {
        Address::Inet(address) => Some(address),
        _ => None,
    };
    let session = Rc::new(Session {
        worker: Rc::clone(worker),
        frontend,
        bind,
        client: Cell::new(client),
        accepted: rt::now(),
        accept_date: rt::wall(),
        destination: OnceCell::new(),
        handshake: Cell::default(),
        proxy_header: OnceCell::new(),
        facts: RefCell::default(),
        waker: RefCell::default(),
        key: Cell::default(),
        killed: Cell::new(false),
        slots: RefCell::new(Some(slots)),
    });
    let key = worker.enter(Rc::clone(&session));
    session.key.set(Some(key));
    stream::tally::connection(&session);
    rt::spawn(rt::Class::Normal, key.to_bits(), run_unless_killed(session, socket));
}

/// Runs a session to its end, or until somebody kills it: everything that it holds is dropped then.
async fn run_unless_killed(session: Rc<Session>, socket: OwnedSocket) {
    let killed = {
        let mut running = pin!(run(Rc::clone(&session), socket));
        std::future::poll_fn(|cx| {
            if session.killed.get() { Poll::Ready(true) } else { running.as_mut().poll(cx).map(|()| false) }
        })
        .await
    };
    if killed {
        conclude_killed(&session);
        leave(&session);
    }
}

/// A stream that was killed ends like none that was cut off: always in the same state, as HAProxy logs it.
fn conclude_killed(session: &Session) {
    let Some(facts) = session.current() else { return };
    if let Ok(mut known) = facts.try_borrow_mut() {
        known.outcome = Outcome::new(Cause::Killed, Phase::Connect);
        if session.proxy().mode == Mode::Http {
            known.status = 500;
        }
    }
    stream::conclude::conclude(session, facts);
}

async fn run(session: Rc<Session>, socket: OwnedSocket) {
    std::future::poll_fn(|cx| {
        *session.waker.borrow_mut() = Some(cx.waker().clone());
        std::task::Poll::Ready(())
    })
    .await;
    let Some((stream, input)) = prepare(&session, socket).await else { return leave(&session) };
    stream::tally::session(&session);
    match session.proxy().mode {
        Mode::Http => stream::http::serve(&session, stream, input).await,
        Mode::Tcp => rt::boxed(stream::tcp::serve(Rc::clone(&session), stream, input)).await,
    }
    leave(&session);
}

/// Does what the listening address asks for before the connection is served, and tells what came behind that. Its own
/// future, so that the one that serves lies where this one lay. `None`: the connection has ended.
async fn prepare(session: &Session, socket: OwnedSocket) -> Option<(Stream, Buffer)> {
    let mut stream = Stream::adopt(socket);
    let mut input = Buffer::empty();
    if let Some(special) = session.bind().map(|bind| &bind.listening).filter(|listening| is_special(listening)) {
        if let Segments::ReducedBy(bytes) = special.socket.segments {
            // A kernel that refuses leaves the size as it is.
            let _ = stream.reduce_segments(bytes);
        }
        if special.header.is_some() {
            input = rt::boxed(handshake::receive(session, &mut stream, special.header)).await?;
        }
    }
    Some((stream, input))
}

/// Whether something has to be done with connections of an address before they are served.
fn is_special(listening: &Listening) -> bool {
    listening.header.is_some() || matches!(listening.socket.segments, Segments::ReducedBy(_))
}

fn leave(session: &Session) {
    session.release();
    stream::tally::session_ended(session);
    session.waker.borrow_mut().take();
    if let Some(key) = session.key.take() {
        session.worker.leave(key);
    }
}

/// A session's task panicked and was dropped: what is known of its stream is counted and logged as internal.
pub fn conclude_panicked(worker: &Worker, tag: u64) {
    let Some(session) = worker.leave(Key::from_bits(tag)) else { return };
    if let Some(facts) = session.current() {
        if let Ok(mut facts) = facts.try_borrow_mut() {
            facts.outcome = Outcome::new(Cause::Internal, Phase::Done);
        }
        stream::conclude::conclude(&session, facts);
    }
    session.release();
    stream::tally::session_ended(&session);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn future_of<A, B, F: Future>(_: impl FnOnce(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// Idle clients are what a proxy has most of. Whoever needs more than this per session boxes what is rare.
    #[test]
    fn an_idle_session_is_small() {
        let (task, shared) = (future_of(run_unless_killed), size_of::<Session>());
        assert!(task <= 448 && shared <= 232, "{task} bytes of a future, {shared} of a session");
    }
}
