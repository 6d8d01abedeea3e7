//! A session with one router (RFC 4271, section 8). Only this speaker connects, so that no collisions have to be resolved, and
//! the state Active does not occur. Must never do I/O or read a clock.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use base::moment::Moment;
use wire::bgp::{
    self, Capabilities, ErrorCode, Frame, Kind, LONGEST, Notification, Open, UpdateContent, refreshed_family,
};

use super::backoff::Backoff;
use super::link::{Link, RouteOutput};
use super::{End, MessageCounts, RoutePlan, Routes, SessionPlan, SessionStatus, State};

/// Timeout of a connection attempt.
const CONNECTING: Duration = Duration::from_secs(5);
/// Minimum time during which the router may accept no data (RFC 9687).
const BLOCKED: Duration = Duration::from_secs(8 * 60);
/// The text that the router is sent when this speaker stops.
const FAREWELL: &str = "Weir stops";

/// Where messages are added.
#[derive(Debug)]
pub struct Output<'a> {
    pub bytes: &'a mut Vec<u8>,
    /// No message is added once there are that many octets.
    pub most: usize,
    pub now: Moment,
    pub random: u64,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    plan: SessionPlan,
    routes: Arc<[RoutePlan]>,
    state: State,
    since: Moment,
    backoff: Backoff,
    link: Option<Link>,
    /// The router supports no optional parameters: the next OPEN message has none.
    is_plain: bool,
    is_stopping: bool,
    is_finished: bool,
    established: u64,
    sent: MessageCounts,
    received: MessageCounts,
    dropped: u64,
    faulty: u64,
    last_end: Option<Box<str>>,
}

impl Session {
    /// Creates a session that connects at once. `succeeds`: this process replaces an older one, which has a session with the router
    /// until it leaves.
    pub fn new(plan: SessionPlan, routes: Arc<[RoutePlan]>, succeeds: bool, now: Moment) -> Self {
        Self {
            plan,
            routes,
            state: State::Idle,
            since: now,
            backoff: Backoff::new(now, succeeds),
            link: None,
            is_plain: false,
            is_stopping: false,
            is_finished: false,
            established: 0,
            sent: MessageCounts::default(),
            received: MessageCounts::default(),
            dropped: 0,
            faulty: 0,
            last_end: None,
        }
    }

    /// Returns its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns when to connect; `None` while there is a connection, and after a stop.
    pub fn connect_at(&self) -> Option<Moment> {
        (self.state == State::Idle && !self.is_stopping).then_some(self.backoff.next)
    }

    fn enter(&mut self, state: State, now: Moment) {
        (self.state, self.since) = (state, now);
    }

    /// Begins a connection attempt.
    pub fn connect(&mut self, now: Moment) {
        self.enter(State::Connect, now);
    }

    /// Begins the exchange on an established connection, whose own address is `local`.
    pub fn connected(&mut self, local: Option<IpAddr>, now: Moment) {
        self.link = Some(Link::new(local, self.routes.len(), now));
        self.enter(State::OpenSent, now);
    }

    /// Processes complete messages, and returns the number of octets that they had.
    ///
    /// # Errors
    /// The session ends.
    pub fn receive(&mut self, bytes: &[u8], now: Moment) -> Result<usize, End> {
        let mut taken = 0;
        while let Some(frame) = bgp::decode(&bytes[taken..]).map_err(End::Sent)? {
            self.received.all += 1;
            self.process(&frame, now)?;
            taken += frame.length;
        }
        Ok(taken)
    }

    fn process(&mut self, frame: &Frame<'_>, now: Moment) -> Result<(), End> {
        let Some(link) = &mut self.link else { return Ok(()) };
        match (self.state, frame.kind) {
            (_, Kind::Notification) => return Err(End::Received(Notification::parse(frame.body))),
            (State::OpenSent, Kind::Open) => {
                let open = Open::parse(frame.body).map_err(End::Sent)?;
                link.open(&open, &self.plan, self.is_plain, now)?;
                self.enter(State::OpenConfirm, now);
            }
            (State::OpenConfirm, Kind::Keepalive) => {
                link.heard(now);
                self.established += 1;
                self.enter(State::Established, now);
            }
            (State::Established, Kind::Keepalive) => link.heard(now),
            (State::Established, Kind::Update) => {
                self.received.updates += 1;
                let content = UpdateContent::parse(frame.body).map_err(End::Sent)?;
                self.dropped += content.announced as u64;
                self.faulty += u64::from(content.is_faulty);
                link.heard(now);
            }
            (State::Established, Kind::RouteRefresh) => {
                if let Some(family) = refreshed_family(frame.body) {
                    link.refresh(family, &self.routes);
                }
            }
            // RFC 6608: with the type of the message.
            (State::OpenSent, kind) => return Err(unexpected(ErrorCode::UNEXPECTED_IN_OPEN_SENT, kind)),
            (State::OpenConfirm, kind) => return Err(unexpected(ErrorCode::UNEXPECTED_IN_OPEN_CONFIRM, kind)),
            (State::Established, kind) => return Err(unexpected(ErrorCode::UNEXPECTED_IN_ESTABLISHED, kind)),
            (State::Idle | State::Connect, _) => {}
        }
        Ok(())
    }

    /// Adds the messages that are due. Returns whether more follow once these were written.
    pub fn send(&mut self, routes: &Routes, output: &mut Output<'_>) -> bool {
        let Some(link) = &mut self.link else { return false };
        if self.is_finished {
            return false;
        }
        if std::mem::take(&mut link.owes_open) {
            let number = self.plan.local_as;
            let capabilities = (!self.is_plain).then(|| Capabilities::own(number));
            let (hold_time, router_id) = (self.plan.hold_time, self.plan.router_id);
            Open { number, hold_time, router_id, capabilities }.encode(output.bytes);
            self.sent.all += 1;
        }
        if link.takes_keepalive(output.now, output.random) {
            bgp::keepalive(output.bytes);
            self.sent.all += 1;
        }
        if self.state == State::Established {
            let routes = Some(routes).filter(|_| !self.is_stopping);
            let to = RouteOutput { session: &self.plan, plans: &self.routes, routes };
            let messages = link.send_routes(&to, output.bytes, output.most);
            self.sent.all += messages.number;
            self.sent.updates += messages.number;
            if messages.has_more {
                return true;
            }
        }
        if self.is_stopping {
            Notification::shutdown(FAREWELL).encode(output.bytes);
            self.sent.all += 1;
            self.is_finished = true;
        }
        false
    }

    /// Ends the session in order: routes are withdrawn, and a NOTIFICATION message follows. No further one begins.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Whether everything that ends the session was added to the output.
    pub fn is_finished(&self) -> bool {
        self.is_finished || (self.is_stopping && self.link.is_none())
    }

    /// Returns when to call [`Self::expire`], or [`Self::send`] if the output is not blocked. `blocked`: since when the router
    /// accepts no data.
    pub fn deadline(&self, blocked: Option<Moment>) -> Option<Moment> {
        let Some(link) = &self.link else {
            return (self.state == State::Connect).then(|| self.since.saturating_add(CONNECTING));
        };
        let sending = match blocked {
            Some(since) => Some(since.saturating_add(self.longest_block())),
            None => link.keepalive_at,
        };
        sending.into_iter().chain(link.hold_until).min()
    }

    fn longest_block(&self) -> Duration {
        let hold_time = self.link.as_ref().map_or(Duration::ZERO, |link| link.hold_time);
        BLOCKED.max(hold_time * 2)
    }

    /// Returns the reason to end the session if a timer has expired.
    pub fn expire(&self, blocked: Option<Moment>, now: Moment) -> Option<End> {
        let Some(link) = &self.link else {
            let until = self.since.saturating_add(CONNECTING);
            return (self.state == State::Connect && until <= now).then_some(End::Unreachable);
        };
        if link.hold_until.is_some_and(|until| until <= now) {
            return Some(ErrorCode::HOLD_TIMER.into());
        }
        blocked.filter(|since| since.saturating_add(self.longest_block()) <= now).map(|_| End::Blocked)
    }

    /// Leaves a connection or a failed attempt, and sets the next attempt.
    pub fn ended(&mut self, end: &End, now: Moment, random: u64) {
        let lasted = (self.state == State::Established).then(|| now.saturating_since(self.since));
        let refuses_parameters = |message: &Notification| message.error == ErrorCode::UNSUPPORTED_PARAMETER;
        self.is_plain = !self.is_plain && matches!(end, End::Received(message) if refuses_parameters(message));
        if matches!(end, End::Sent(_)) {
            self.sent.all += 1;
        }
        self.link = None;
        self.backoff.ended(lasted, now, random);
        self.last_end = Some(end.to_string().into());
        self.enter(State::Idle, now);
    }

    /// Returns what commands show.
    pub fn status(&self) -> SessionStatus {
        let negotiated = self.link.as_ref().filter(|_| matches!(self.state, State::OpenConfirm | State::Established));
        SessionStatus {
            state: self.state,
            since: self.since,
            hold_time: negotiated.map(|link| link.hold_time),
            router_id: negotiated.and_then(|link| link.router_id),
            announced: self.link.as_ref().map_or(0, Link::announced),
            established: self.established,
            sent: self.sent,
            received: self.received,
            dropped: self.dropped,
            faulty: self.faulty,
            last_end: self.last_end.clone(),
            next_attempt: self.connect_at(),
        }
    }
}

fn unexpected(error: ErrorCode, kind: Kind) -> End {
    End::Sent(Notification::new(error, &[kind as u8]))
}

/// Number of octets of messages that are added at a time.
pub const OUTPUT: usize = 4 * LONGEST;
