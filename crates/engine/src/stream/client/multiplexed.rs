//! A client's multiplexed connection: its task moves the data of all streams, and starts a task for each stream. Must never
//! serve a stream itself.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use base::moment::{Moment, OptionalMoment, WallTime};
use conn::downstream::Downstream;
use conn::multiplexed::{ClientTerms, Connection, Ping, Protocol};
use expression::sample::ProtocolFacts;
use live::trace::events;
use live::{StreamShare, StreamShares};
use policy::program::StreamLimits;
use rt::LocalRc;

use crate::protocol::{self, CountedConnection, Grant, REVERSED};
use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::client::client_limit::{self, Member, Place, PlaceResult, QueuedStream, Scope};
use crate::stream::client::{Client, closing};
use crate::stream::record::{tracing, tracking};
use crate::stream::request::head_limits::head_limits;
use crate::stream::server::private_connections;
use crate::stream::{conclude, request};
use crate::worker::SharedStreamState;

/// Serves a connection that begins with `protocol`, until it and all of its streams have ended. Idle connections hold this
/// future: it consists of their state alone.
pub fn serve<'s>(
    session: &'s LocalRc<StreamTask>,
    client: &'s mut Client,
    protocol: Protocol,
) -> impl Future<Output = ()> + 's {
    if let Some(state) = client.take_begun(session) {
        hand_over(session, state);
    }
    let share = stream_share(session, protocol);
    let terms = terms(session, protocol, share.as_deref());
    if protocol == Protocol::Qmux {
        tracing::session(session, &events::QCC_NEW, "new QMux connection");
        tracing::session(session, &events::H3C_NEW, "new H3 connection");
    }
    let connection = Connection::of(&mut client.conn, terms);
    carry(connection.map(|connection| Carrying::begin(session, client, connection, share)))
}

/// Serves a connection that was opened to a server which sends requests on it (reverse HTTP).
pub fn serve_reversed<'s>(session: &'s LocalRc<StreamTask>, client: &'s mut Client) -> impl Future<Output = ()> + 's {
    let connection = Connection::reversed(&mut client.conn, terms(session, REVERSED, None));
    carry(connection.map(|connection| Carrying::begin(session, client, connection, None)))
}

/// Serves a QUIC connection, whose link the connection owns.
pub(super) fn serve_quic<'s>(
    session: &'s LocalRc<StreamTask>,
    client: &'s mut QuicClient,
    connection: Connection,
    share: Option<Box<StreamShare>>,
) -> impl Future<Output = ()> + 's {
    carry(Some(Carrying::begin(session, client, connection, share)))
}

/// Serves the streams of a connection until it ends. `None`: it does not speak the protocol.
fn carry<'s, C: ClientSide>(mut carrying: Option<Carrying<'s, C>>) -> impl Future<Output = ()> + use<'s, C> {
    std::future::poll_fn(move |cx| carrying.as_mut().map_or(Poll::Ready(()), |carrying| carrying.poll(cx)))
}

/// How a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client has disconnected.
    Gone,
    /// By a protocol error of the client.
    Fault,
    /// In any other way.
    Left,
}

/// The client of a connection, as the task of that has it.
trait ClientSide {
    /// Returns the connection with its bytes; `None`: its protocol owns it.
    fn conn(&mut self) -> Option<&mut Downstream>;

    /// Whether bytes were received and not processed.
    fn has_received(&self) -> bool;

    /// Returns the session's timer.
    fn timer(&mut self) -> &mut rt::Timer;

    /// Returns the time at which the connection was accepted, or the newest stream began.
    fn since(&self) -> (Moment, WallTime);

    /// Sets that time.
    fn set_since(&mut self, since: Moment, date: WallTime);

    /// Decides how the connection is closed.
    fn end(&mut self, end: End);
}

impl ClientSide for Client {
    #[inline]
    fn conn(&mut self) -> Option<&mut Downstream> {
        Some(&mut self.conn)
    }

    #[inline]
    fn has_received(&self) -> bool {
        self.conn.has_received()
    }

    #[inline]
    fn timer(&mut self) -> &mut rt::Timer {
        &mut self.timer
    }

    #[inline]
    fn since(&self) -> (Moment, WallTime) {
        (self.since, self.since_date)
    }

    #[inline]
    fn set_since(&mut self, since: Moment, date: WallTime) {
        (self.since, self.since_date) = (since, date);
    }

    /// Clients send window updates and pings while they read: if the connection were closed at once, unread data would be lost
    /// by a reset.
    fn end(&mut self, end: End) {
        match end {
            End::Gone => self.drop_connection(),
            End::Fault => self.refuse_more(),
            End::Left => self.linger(),
        }
    }
}

/// The client of a QUIC connection.
pub(super) struct QuicClient {
    timer: rt::Timer,
    since: Moment,
    since_date: WallTime,
}

impl QuicClient {
    pub(super) fn new() -> Self {
        Self { timer: rt::Timer::new(), since: rt::now(), since_date: rt::wall() }
    }
}

impl ClientSide for QuicClient {
    fn conn(&mut self) -> Option<&mut Downstream> {
        None
    }

    fn has_received(&self) -> bool {
        false
    }

    fn timer(&mut self) -> &mut rt::Timer {
        &mut self.timer
    }

    fn since(&self) -> (Moment, WallTime) {
        (self.since, self.since_date)
    }

    fn set_since(&mut self, since: Moment, date: WallTime) {
        (self.since, self.since_date) = (since, date);
    }

    /// The connection closes itself.
    fn end(&mut self, _: End) {}
}

/// Ends a stream that began in TCP mode and was not a request. The time of the handshakes is assigned to the connection's first
/// stream.
fn hand_over(session: &StreamTask, state: SharedStreamState) {
    if let Some(done) = state.borrow().timings.handshake {
        session.complete_handshake(done);
    }
    session.end(state);
}

/// Returns the connection's share of the limit for all connections (`tune.streams-elasticity`); `None`: there is no such limit.
pub(super) fn stream_share(session: &Session, protocol: Protocol) -> Option<Box<StreamShare>> {
    let global = &session.generation().program.global;
    let most = u32::try_from(protocol::streams(protocol, global)).unwrap_or(u32::MAX);
    let all = global.streams.shared?;
    Some(Box::new(StreamShares::take(&session.worker.process.live.stream_shares, most, all)))
}

/// Returns the number of concurrent streams for a client of a worker with that number of waiting tasks: above the load limit,
/// it decreases with the square of their ratio (`rq-load`, `min`).
fn under_load(limits: &StreamLimits, most: usize, waiting: usize) -> usize {
    let Some(load) = limits.load.map(|load| load as usize).filter(|load| waiting > *load) else { return most };
    let squares = (most as u128 * (load as u128).pow(2)) / (waiting as u128).pow(2);
    usize::try_from(squares).unwrap_or(most).max(limits.least.min(most)).max(1)
}

/// Returns the protocol limits for clients of a session's frontend.
pub(super) fn terms(session: &Session, protocol: Protocol, share: Option<&StreamShare>) -> ClientTerms {
    let global = &session.generation().program.global;
    let streams = under_load(&global.streams, protocol::streams(protocol, global), rt::waiting_tasks());
    let grant = Grant {
        streams: share.map_or(streams, |share| streams.min(share.streams() as usize)),
        head: head_limits(global),
        accept_unsafe: session.proxy().http.accept_unsafe_request,
        webtransport: session.bind().and_then(|bind| bind.listening.quic).is_some_and(|quic| quic.webtransport),
    };
    protocol::client_terms(protocol, global, &grant)
}

/// The result of a poll of a connection that has not to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Other tasks run, then it goes on.
    Yields,
    /// The connection has to end.
    Ends,
}

/// The phases of a connection that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Streams may begin.
    Carries,
    /// It has ended, and its streams end.
    Settles,
    /// Remaining data is sent.
    Flushes,
}

/// A connection that is served. Its client's `since` is the time at which the connection was accepted, or the newest stream began.
struct Carrying<'s, C> {
    session: &'s LocalRc<StreamTask>,
    client: &'s mut C,
    connection: Connection,
    open: CountedConnection<'s>,
    /// Its share of the limit for all connections.
    _share: Option<Box<StreamShare>>,
    crowd: Option<Member>,
    /// Time since which it is idle.
    free_since: OptionalMoment,
    /// Number of pings that its client had answered at the last call.
    pongs: u32,
    phase: Phase,
}

// Most connections are idle.
const _: () = assert!(size_of::<Carrying<'_, Client>>() <= 208);

impl<'s, C: ClientSide> Carrying<'s, C> {
    fn begin(
        session: &'s LocalRc<StreamTask>,
        client: &'s mut C,
        connection: Connection,
        share: Option<Box<StreamShare>>,
    ) -> Self {
        // As in HTTP/1, handshakes and idle time of the client are part of the first request's time.
        client.set_since(session.accepted, session.accept_date());
        Self {
            session,
            client,
            open: CountedConnection::begin(session.counters(), connection.protocol()),
            connection,
            _share: share,
            crowd: session.client().map(|client| Member::of(Scope::Streams, client)),
            free_since: OptionalMoment::NONE,
            pongs: 0,
            phase: Phase::Carries,
        }
    }

    /// Ready when the connection and all of its streams have ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.phase == Phase::Carries {
            match ready!(self.poll_streams(cx)) {
                Step::Yields => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Step::Ends => self.connection.close(self.client.conn()),
            }
            self.phase = Phase::Settles;
        }
        if self.phase == Phase::Settles {
            ready!(self.connection.poll_settled(cx));
            self.count_events();
            let patience = self.patience();
            self.client.timer().arm(Some(rt::now() + patience));
            self.phase = Phase::Flushes;
        }
        ready!(self.poll_flushed(cx));
        self.finish();
        Poll::Ready(())
    }

    /// Returns how long a client may accept nothing of the remaining data (`timeout client`).
    fn patience(&self) -> Duration {
        self.session.proxy().timeouts.client_closing().unwrap_or(closing::PATIENCE)
    }

    /// Sends the remaining data, as long as the client accepts some of it in time.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(sent) = self.connection.poll_flush(cx, self.client.conn()) {
            if sent == 0 {
                return Poll::Ready(());
            }
            let patience = self.patience();
            self.client.timer().arm(Some(rt::now() + patience));
        }
        self.client.timer().poll_expired(cx)
    }

    /// Decides how the connection is closed.
    fn finish(&mut self) {
        if let Some(counts) = self.connection.end_counts() {
            self.open.count_end(&counts);
        }
        if self.connection.protocol() == Protocol::H3 && self.client.conn().is_some() {
            tracing::session(self.session, &events::H3C_END, "H3 connection terminated");
            tracing::session(self.session, &events::QCC_END, "QMux connection terminated");
        }
        self.client.end(match self.connection.is_gone() {
            true => End::Gone,
            false if self.connection.has_faulted() => End::Fault,
            false => End::Left,
        });
    }

    /// Moves all data that can be moved, and starts the streams that were opened. A connection without streams may be idle
    /// for as long as a client between two requests, even if the client does not accept the remaining data; with a soft
    /// stop it ends as soon as all data is sent. If only `timeout client` limits its idle time, an answered ping restarts
    /// that time.
    fn poll_streams(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let session = self.session;
        private_connections::discard_disturbed(session, cx);
        if session.is_leaving() {
            self.connection.leave(session.proxy().options.idle_close_on_response);
        }
        let mut next = self.connection.advance(rt::now());
        // The events of all frames that were received together are counted together.
        let ended = loop {
            let served = self.connection.opened();
            match self.connection.poll(cx, self.client.conn()) {
                Poll::Ready(Some(stream)) => self.start(stream, served),
                Poll::Ready(None) => break true,
                Poll::Pending => break false,
            }
            // Streams run after the frames that were received together with them are processed: these may end the
            // connection.
            if !self.client.has_received() && rt::slice_is_over() {
                self.count_events();
                return Poll::Ready(Step::Yields);
            }
        };
        self.count_events();
        if ended {
            return Poll::Ready(Step::Ends);
        }
        if next.is_none() {
            next = self.connection.advance(rt::now());
        }
        self.poll_idle(next, cx)
    }

    /// Ready when the connection was idle for too long. `next`: when it has to be polled again at the latest.
    fn poll_idle(&mut self, next: Option<Moment>, cx: &mut Context<'_>) -> Poll<Step> {
        let (session, connection, timer) = (self.session, &mut self.connection, self.client.timer());
        let timeouts = &session.proxy().timeouts;
        let pongs = connection.pongs();
        let is_there = pongs != self.pongs && timeouts.http_keep_alive.or(timeouts.http_request).is_none();
        self.pongs = pongs;
        let free_since = match self.free_since.get() {
            _ if connection.has_streams() => None,
            Some(since) if !is_there => Some(since),
            _ => Some(rt::now()),
        };
        self.free_since = free_since.into();
        let limit = if connection.opened() == 0 { timeouts.request() } else { timeouts.keep_alive() };
        let deadline = free_since.zip(limit).map(|(since, limit)| since + limit);
        loop {
            let now = rt::now();
            if next.is_some_and(|next| now >= next) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Poll::Ready(Step::Ends);
            }
            let interval = session.bind().and_then(|bind| bind.listening.idle_ping);
            let ping = match interval.map(|interval| connection.ping(now, interval)) {
                None => None,
                Some(Ping::Due(moment)) => Some(moment),
                Some(Ping::Sent) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(Ping::Unanswered) => return Poll::Ready(Step::Ends),
            };
            let departure = session.departure().filter(|departure| *departure > now);
            timer.arm([deadline, departure, ping, next].into_iter().flatten().min());
            if timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Starts a stream that was opened; `served` were opened before it.
    fn start(&mut self, stream: Downstream, served: u32) {
        let idle_since = self.client.since();
        start(self.session, stream, Begin { served, idle_since, admission: self.admit() });
        self.client.set_since(rt::now(), rt::wall());
    }

    /// Decides whether a stream that was opened may start. The first one of a connection always starts: the limit accounts for the
    /// maximum number of connections.
    fn admit(&self) -> Admission {
        let Some(crowd) = self.crowd.as_ref() else { return Admission::Now(None) };
        if self.connection.streams().0 <= 1 {
            return Admission::Now(Some(crowd.begin()));
        }
        let (global, workers) = (&self.session.generation().program.global, self.session.worker.process.workers());
        match crowd.enter(client_limit::streams_at_once(global, workers)) {
            PlaceResult::Begins(place) => Admission::Now(Some(place)),
            PlaceResult::Waits(turn) => Admission::Later(turn),
            PlaceResult::Full => Admission::Never,
        }
    }

    /// Adds the events of a connection to the counters, and logs requests that did not become streams.
    fn count_events(&self) {
        let (session, connection) = (self.session, &self.connection);
        let counts = connection.take_counts();
        let (streams, limit) = connection.streams();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let known = session.protocol_facts();
        let major = connection.protocol().major();
        session.note_protocol(ProtocolFacts { major, streams: number(streams), limit: number(limit), ..known });
        if counts.is_empty() {
            return;
        }
        self.open.count(&counts);
        let faults = counts.faults();
        if faults.glitches > 0 {
            tracking::glitches(session, faults.glitches);
        }
        if faults.malformed + faults.fatal > 0 {
            tracking::wrong_heads(session, faults.malformed, faults.malformed + faults.fatal);
        }
        for _ in 0..protocol::error_lines(&counts, &session.generation().program.global) {
            conclude::log_malformed(session);
        }
    }
}

/// Admission of a stream.
enum Admission {
    /// It starts at once, in a slot of its address.
    Now(Option<Place>),
    /// It is queued.
    Later(QueuedStream),
    /// It is refused: its client may repeat the request.
    Never,
}

/// The position of a stream in its connection, its waiting time and its admission.
struct Begin {
    /// Number of the stream in its connection, from 0.
    served: u32,
    /// Time at which the connection was accepted, or the previous stream began: the start of the client's idle time (`%Ti`).
    idle_since: (Moment, WallTime),
    admission: Admission,
}

/// Starts the task of a stream.
fn start(session: &LocalRc<StreamTask>, mut stream: Downstream, begin: Begin) {
    if matches!(begin.admission, Admission::Never) {
        stream.refuse();
        return;
    }
    let task = StreamTask::another(session);
    rt::spawn_with(rt::Class::Normal, task.tag(), (task, stream), move |(task, stream)| run(task, stream, begin));
}

async fn run(task: LocalRc<StreamTask>, stream: Downstream, begin: Begin) {
    task.register().await;
    let mut client = Client::of_stream(stream, begin.served);
    (client.since, client.since_date) = begin.idle_since;
    let _place = match begin.admission {
        Admission::Now(place) => place,
        Admission::Later(turn) => match rt::boxed(wait_for_turn(&task, &mut client, turn)).await {
            Some(place) => Some(place),
            None => {
                client.conn.refuse();
                drop(client);
                return task.leave();
            }
        },
        Admission::Never => None,
    };
    client.is_withdrawn = client.conn.is_withdrawn();
    let ended = rt::unless(|| task.is_killed(), request::serve(&task, &mut client)).await;
    drop(client);
    if ended.is_none() {
        task.conclude_killed();
    }
    task.leave();
}

/// Waits until other streams of the same address have ended. `None`: the client has cancelled the stream, or the wait timed
/// out.
async fn wait_for_turn(task: &StreamTask, client: &mut Client, turn: QueuedStream) -> Option<Place> {
    let limit = task.proxy().timeouts.request().unwrap_or(closing::PATIENCE);
    let Client { conn, timer, .. } = client;
    timer.arm(Some(rt::now() + limit));
    let mut look = rt::Timer::new();
    std::future::poll_fn(|cx| {
        if let Poll::Ready(place) = turn.poll_place(cx, &mut look, QueuedStream::has_room_for_stream) {
            return Poll::Ready(Some(place));
        }
        if conn.poll_closed(cx).is_ready() || timer.poll_expired(cx).is_ready() {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use config::spec::Http2ErrorsSpec;

    use super::*;

    #[test]
    fn load_takes_streams_with_the_square_of_its_excess() {
        let limits = |load, least| StreamLimits { load, least, shared: None, logged_errors: Http2ErrorsSpec::Stream };
        let rows = [(None, 1, 9000, 100), (Some(50), 1, 50, 100), (Some(50), 1, 100, 25), (Some(50), 1, 5000, 1)];
        for (load, least, waiting, streams) in rows {
            assert_eq!(under_load(&limits(load, least), 100, waiting), streams, "{load:?} {waiting}");
        }
        assert_eq!(under_load(&limits(Some(50), 15), 100, 5000), 15);
        assert_eq!(under_load(&limits(Some(50), 15), 10, 5000), 10);
    }
}
