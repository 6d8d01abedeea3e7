//! Transfers the bytes of a TCP session or a tunnel in both directions until both sides have closed. Must never
//! interpret the bytes.

use std::task::{Context, Poll};
use std::time::Duration;

use base::moment::Moment;
use conn::carrier::Carrier;
use conn::downstream::Downstream;
use conn::duplex::{Duplex, DuplexStep, Side};
use conn::flow::{FlowError, FlowProgress};
use conn::h3::{Relay, RelayStep};
use policy::program::Proxy;

use crate::orders::OwnTimeouts;
use crate::session::Session;
use crate::stream::client::activity::Activity;
use crate::stream::context::RequestContext;
use crate::stream::record::metrics;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Interval at which the statistics of a tunnel are updated. They are also updated after large transfers, but not after
/// every few bytes.
const COUNTED_EVERY: Duration = Duration::from_secs(1);

/// Maximum inactivity of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SilenceLimits {
    client: Option<Duration>,
    server: Option<Duration>,
    /// Limit for the client's side after a direction has ended.
    client_fin: Option<Duration>,
    /// Limit for the server's side after a direction has ended.
    server_fin: Option<Duration>,
    /// The server's end ends both directions: set for a tunnel that was opened by HTTP.
    ends_with_server: bool,
    /// `option independent-streams` of the frontend.
    independent_client: bool,
    /// `option independent-streams` of the backend.
    independent_server: bool,
}

impl SilenceLimits {
    /// For a tunnel that an HTTP request has opened.
    pub fn of_upgrade(frontend: &Proxy, backend: &Proxy, own: OwnTimeouts) -> Self {
        Self { ends_with_server: true, ..Self::of_session(frontend, backend, own) }
    }

    /// For a session in TCP mode: `timeout tunnel` supersedes the other two if it is set.
    pub fn of_tunnel(frontend: &Proxy, backend: &Proxy) -> Self {
        Self::of_session(frontend, backend, OwnTimeouts::default())
    }

    fn of_session(frontend: &Proxy, backend: &Proxy, own: OwnTimeouts) -> Self {
        let tunnel = own.tunnel.or(backend.timeouts.tunnel);
        let client = tunnel.or(own.client_timeout(frontend));
        let server = tunnel.or(own.server_timeout(backend));
        Self {
            client,
            server,
            client_fin: frontend.timeouts.client_fin.or(client),
            server_fin: backend.timeouts.server_fin.or(server),
            ends_with_server: false,
            independent_client: frontend.options.independent_streams,
            independent_server: backend.options.independent_streams,
        }
    }
}

/// Data that moves together with a tunnel.
pub trait Companion {
    /// Moves what can be moved, and adds it to the progress of both directions. Returns whether there is more to do at once.
    fn poll(&mut self, cx: &mut Context<'_>, up: &mut FlowProgress, down: &mut FlowProgress) -> bool;
}

/// Nothing does.
struct Alone;

impl Companion for Alone {
    #[inline]
    fn poll(&mut self, _: &mut Context<'_>, _: &mut FlowProgress, _: &mut FlowProgress) -> bool {
        false
    }
}

/// The streams and datagrams of a WebTransport session.
impl Companion for Relay {
    fn poll(&mut self, cx: &mut Context<'_>, up: &mut FlowProgress, down: &mut FlowProgress) -> bool {
        Self::poll(self, cx, up, down) == RelayStep::Exhausted
    }
}

/// Transfers bytes in both directions until both sides have closed, one fails or a limit is reached.
pub async fn carry(
    context: &mut RequestContext<'_>,
    duplex: Duplex,
    server: &mut Carrier,
    limits: &SilenceLimits,
) -> Outcome {
    carry_with(context, duplex, server, limits, Alone).await
}

/// As [`carry`], together with a companion, which ends with the tunnel.
pub async fn carry_with<C: Companion>(
    context: &mut RequestContext<'_>,
    duplex: Duplex,
    server: &mut Carrier,
    limits: &SilenceLimits,
    companion: C,
) -> Outcome {
    let now = rt::now();
    let mut carriage = Carriage {
        duplex,
        companion,
        client: &mut context.client.conn,
        server,
        timer: &mut context.client.timer,
        limits,
        session: context.session,
        state: &context.state,
        counted: now,
        client_side: Activity::new(now, limits.independent_client),
        server_side: Activity::new(now, limits.independent_server),
    };
    let outcome = std::future::poll_fn(|cx| carriage.poll(cx)).await;
    let (client_ended, is_told) = (carriage.duplex.client_ended(), carriage.duplex.down.is_finished());
    let is_late = outcome.cause == Cause::ClientTimeout && carriage.duplex.writes_to(Side::Client);
    if is_late || (outcome == Outcome::default() && client_ended) {
        context.client.drop_connection();
    } else if outcome.cause == Cause::Server && !is_told {
        // An orderly close would make the client believe that it has received everything.
        context.client.cut_short();
    }
    outcome
}

struct Carriage<'a, C> {
    duplex: Duplex,
    companion: C,
    client: &'a mut Downstream,
    server: &'a mut Carrier,
    timer: &'a mut rt::Timer,
    limits: &'a SilenceLimits,
    session: &'a Session,
    state: &'a SharedStreamState,
    /// Time of the last update of the statistics.
    counted: Moment,
    client_side: Activity,
    server_side: Activity,
}

impl<C: Companion> Carriage<'_, C> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let (mut up, mut down) = (FlowProgress::default(), FlowProgress::default());
        if self.duplex.held_until().is_some() {
            // While a filter holds bytes back, no timeout runs.
            let now = rt::now();
            self.client_side.reading_resumes(now);
            self.server_side.reading_resumes(now);
        }
        let step = self.duplex.poll_between(cx, self.client, self.server, &mut up, &mut down);
        let has_more = self.companion.poll(cx, &mut up, &mut down);
        self.note(up, down);
        match step {
            Ok(DuplexStep::Finished) => Poll::Ready(Outcome::default()),
            Ok(DuplexStep::Exhausted) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(DuplexStep::Waits) if self.limits.ends_with_server && self.duplex.down.is_finished() => {
                Poll::Ready(Outcome::default())
            }
            Ok(DuplexStep::Waits) if has_more => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(DuplexStep::Waits) => self.poll_limits(cx),
            Err((side, error)) => Poll::Ready(blame(side, &error)),
        }
    }

    /// Records the transferred bytes. A tunnel is inactive only if both directions are.
    fn note(&mut self, up: FlowProgress, down: FlowProgress) {
        let now = rt::now();
        if let Some(progress) = up.read_progress() {
            self.client_side.reads(now, progress);
        }
        if let Some(progress) = up.write_progress() {
            self.server_side.writes(now, progress);
        }
        if let Some(progress) = down.read_progress() {
            self.server_side.reads(now, progress);
        }
        if let Some(progress) = down.write_progress() {
            self.client_side.writes(now, progress);
        }
        if up != FlowProgress::default() || down != FlowProgress::default() {
            let state = &mut *self.state.borrow_mut();
            state.accounting.bytes.sent += up.written as u64;
            state.accounting.bytes.received += down.read as u64;
            state.accounting.bytes.bytes_in += up.read as u64;
            state.accounting.bytes.bytes_out += down.written as u64;
            if now >= self.counted + COUNTED_EVERY {
                self.counted = now;
                metrics::bytes(self.session, state);
            } else {
                metrics::flowing(self.session, state);
            }
            if down.spliced > 0 {
                metrics::spliced(self.session, state, true, down.spliced);
            }
        }
        if up.spliced > 0 {
            metrics::spliced(self.session, &self.state.borrow(), false, up.spliced);
        }
    }

    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let now = rt::now();
            let (client_ended, server_ended) = (self.duplex.client_ended(), self.duplex.server_ended());
            let (client, server) = if client_ended || server_ended {
                // A side that is neither read from nor written to cannot time out.
                let client = self.limits.client_fin;
                let server = self.limits.server_fin;
                (
                    client.filter(|_| !client_ended || self.duplex.writes_to(Side::Client)),
                    server.filter(|_| !server_ended || self.duplex.writes_to(Side::Server)),
                )
            } else {
                (self.limits.client, self.limits.server)
            };
            let held = self.duplex.held_until();
            // While Weir itself holds bytes back, no timeout runs.
            let held_until = held.unwrap_or_default();
            let client = client.map(|limit| silence(&self.client_side, client_ended).max(held_until) + limit);
            let server = server.map(|limit| silence(&self.server_side, server_ended).max(held_until) + limit);
            if client.is_some_and(|deadline| now >= deadline) {
                return Poll::Ready(Outcome::new(Cause::ClientTimeout, Phase::Data));
            }
            if server.is_some_and(|deadline| now >= deadline) {
                return Poll::Ready(Outcome::new(Cause::ServerTimeout, Phase::Data));
            }
            if held.is_some_and(|held| now >= held) {
                return self.poll(cx);
            }
            self.timer.arm([client, server, held].into_iter().flatten().min());
            if self.timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// Returns since when a side of a tunnel is inactive. `has_ended`: it has closed its sending side.
fn silence(side: &Activity, has_ended: bool) -> Moment {
    if has_ended { side.idle_since() } else { side.silent_since() }
}

/// Returns the outcome of a tunnel that failed. `side` is the source of the direction that failed.
fn blame(side: Side, error: &FlowError) -> Outcome {
    let cause = match (side, error) {
        (Side::Client, FlowError::Write(_)) | (Side::Server, FlowError::Read(_)) => Cause::Server,
        (Side::Client, _) | (Side::Server, FlowError::Write(_)) => Cause::Client,
        (Side::Server, _) => Cause::Server,
    };
    Outcome::new(cause, Phase::Data)
}
