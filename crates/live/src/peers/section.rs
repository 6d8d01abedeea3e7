//! A `peers` section: its connections, the resynchronization, reconnection attempts. The owner of the connections
//! supplies bytes and the time. Must never hold more than one connection with a peer.

use super::plan::{Role, Shared};
use super::send_parameters::{SendParameters, SyncContext, SyncState};
use super::session::{Event, Fault, PATIENCE, Session};
use super::status::{LastStatus, LearnState, PeerStatus, SectionStatus, TableStatus};
use super::sums::{PeerOrigin, Sums};
use crate::table::Origin;
use base::moment::Moment;
use std::time::Duration;
use wire::peers::{Hello, Malformed, Status};

/// The delay between two connection attempts.
const RECONNECT: Duration = Duration::from_secs(5);
/// How long a peer to learn from is waited for.
const RESYNC: Duration = Duration::from_secs(5);
/// The maximum transit time of a peer's hello.
const CROSSING: Duration = Duration::from_secs(1);
/// The supported version of the protocol: 2.1.
const MINOR: u32 = 1;

/// Another instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    pub name: Box<str>,
    /// The shard of keys that it receives, from 1; 0: all.
    pub shard: u32,
}

/// The configuration of a section.
#[derive(Debug, Clone)]
pub struct Setting {
    pub name: Box<str>,
    /// The name of the local instance.
    pub local: Box<str>,
    /// The remote peers.
    pub remotes: Vec<Remote>,
    /// The shared tables.
    pub tables: Vec<Shared>,
    /// Maximum number of consecutive updates.
    pub updates: usize,
    /// Maximum length of a message in bytes.
    pub limit: usize,
    /// The process id, as sent to peers.
    pub pid: u32,
    /// A random number of the process, by which peers that sum tables distinguish it from others.
    pub process: u64,
}

/// A connection with a peer. Invalid once the peer has a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The peer: its index in [`Setting::remotes`]; the index after them is the local peer.
    pub peer: usize,
    generation: u64,
}

/// The result of received bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveResult {
    /// That many bytes were processed; the rest is an incomplete message.
    Taken(usize),
    /// The connection must be closed.
    End(End),
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Closed by the peer or the network, or never established.
    Closed,
    /// Nothing was received for too long.
    Silent,
    /// The peer sent an invalid message, and must be notified.
    Malformed(Malformed),
    /// The peer reported an error.
    Told,
    /// A newer connection replaced it.
    Replaced,
    /// A newer process of this instance has learned everything.
    Taught,
    /// The peer rejected the hello.
    Refused,
}

/// The source of the resynchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resync {
    /// An older process of this instance, which may connect until then.
    Local(Moment),
    /// Another instance, if one is connected by then.
    Remote(Moment),
    /// Complete, or no peer was available.
    Finished,
}

/// A peer, connected or not.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) session: Option<Session>,
    /// A connection is being established; its generation.
    calling: Option<u64>,
    /// It is established, and the hello has been sent.
    greeting: bool,
    reach: Vec<SyncState>,
    /// It has not learned everything itself.
    knows_part: bool,
    reconnect: Option<Moment>,
    pub(super) status: PeerStatus,
    pub(super) origin: PeerOrigin,
}

#[derive(Debug)]
pub struct Section {
    pub(super) setting: Setting,
    /// The remote peers, then the local one.
    pub(super) peers: Vec<Peer>,
    resync: Resync,
    /// The peer that teaches everything.
    pub(super) teacher: Option<usize>,
    pub(super) sums: Sums,
    generation: u64,
    /// The process stops: only the local peer is taught.
    leaving: bool,
}

impl Section {
    /// Creates a section without connections. `successor`: an older process may connect to teach this one.
    pub fn new(setting: Setting, now: Moment, successor: bool) -> Self {
        let names = setting.remotes.iter().map(|remote| (&remote.name, false));
        let peers = names.chain([(&setting.local, true)]).map(|(name, local)| Peer {
            reach: vec![SyncState::default(); setting.tables.len()],
            reconnect: (!local).then_some(now),
            status: PeerStatus { name: name.clone(), local, ..PeerStatus::default() },
            ..Peer::default()
        });
        let resync = if successor { Resync::Local(now + RESYNC) } else { Resync::Remote(now + RESYNC) };
        let (peers, sums) = (peers.collect(), Sums::new(&setting.tables));
        Self { peers, resync, teacher: None, sums, generation: 0, leaving: false, setting }
    }

    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The index of the local peer, after the remote ones.
    pub fn local(&self) -> usize {
        self.setting.remotes.len()
    }

    /// Whether the resynchronization is complete.
    pub fn is_complete(&self) -> bool {
        self.resync == Resync::Finished
    }

    /// When to call [`Section::tick`].
    pub fn deadline(&self) -> Option<Moment> {
        self.resync_deadline().into_iter().chain(self.next_origin_request()).min()
    }

    fn resync_deadline(&self) -> Option<Moment> {
        match self.resync {
            Resync::Local(until) | Resync::Remote(until) if self.teacher.is_none() => Some(until),
            _ => None,
        }
    }

    /// Advances the resynchronization; call it when time has passed, or a peer has connected or disconnected. `random`
    /// selects among the peers that can teach; true: a request for a full resynchronization is to be sent to one of
    /// them.
    pub fn tick(&mut self, now: Moment, random: u64) -> bool {
        let asks = self.ask_origins_again(now);
        self.resynchronize(now, random) || asks
    }

    fn resynchronize(&mut self, now: Moment, random: u64) -> bool {
        if self.teacher.is_some() || self.leaving {
            return false;
        }
        if matches!(self.resync, Resync::Local(until) if now >= until) {
            self.resync = Resync::Remote(now + RESYNC);
        }
        let Resync::Remote(until) = self.resync else { return false };
        let able = |(at, peer): (usize, &Peer)| {
            (peer.session.is_some() && !peer.knows_part && !peer.status.local).then_some(at)
        };
        let able: Vec<usize> = self.peers.iter().enumerate().filter_map(able).collect();
        let chosen = able.get((random % able.len().max(1) as u64) as usize).copied();
        match chosen.and_then(|at| self.peers[at].session.as_mut().map(|session| (at, session))) {
            Some((at, session)) => {
                (session.asks, session.learning) = (true, true);
                self.teacher = Some(at);
                true
            }
            None => {
                if now >= until {
                    self.resync = Resync::Finished;
                }
                false
            }
        }
    }

    /// When to connect to a peer; `None`: not at present. An older process teaches first.
    pub fn call_at(&self, peer: usize) -> Option<Moment> {
        let found = self.peers.get(peer)?;
        let free = found.session.is_none() && found.calling.is_none();
        let first = self.leaving || !matches!(self.resync, Resync::Local(_));
        if free && first && found.status.local == self.leaving { found.reconnect } else { None }
    }

    /// Begins a connection to a peer: returns the hello to send.
    pub fn call(&mut self, peer: usize, now: Moment, random: u64) -> Option<(Ticket, Hello)> {
        let generation = self.next_generation();
        let local = self.setting.local.to_string();
        let (pid, found) = (self.setting.pid, self.peers.get_mut(peer)?);
        if found.session.is_some() || found.calling.is_some() {
            return None;
        }
        (found.calling, found.greeting) = (Some(generation), false);
        found.reconnect = Some(now + RECONNECT + Duration::from_millis(random % 500));
        found.status.new_connections = found.status.new_connections.wrapping_add(1);
        found.status.last_status = LastStatus::Handshake;
        found.status.last_handshake = Some(now);
        let hello = Hello { minor: MINOR, remote: found.status.name.to_string(), local, pid };
        Some((Ticket { peer, generation }, hello))
    }

    /// Records that the peer was reached, and the hello is being sent.
    pub fn reached(&mut self, ticket: Ticket) {
        if let Some(found) = self.peers.get_mut(ticket.peer) {
            found.greeting |= found.calling == Some(ticket.generation);
        }
    }

    /// Processes the peer's answer to the hello. True: the connection is established.
    pub fn answered(&mut self, ticket: Ticket, status: Status, now: Moment) -> bool {
        let leaving = self.leaving;
        let Some(found) = self.peers.get_mut(ticket.peer) else { return false };
        if found.calling != Some(ticket.generation) {
            return false;
        }
        found.calling = None;
        found.status.last_status = match status {
            Status::Succeeded => LastStatus::Established,
            Status::TryAgain => LastStatus::TryAgain,
            Status::Protocol => LastStatus::Protocol,
            Status::Version => LastStatus::Version,
            Status::LocalName => LastStatus::Name,
            Status::RemoteName => LastStatus::Unknown,
        };
        if status != Status::Succeeded {
            return false;
        }
        found.origin.pid = None;
        let session = Session::new(ticket.generation, true, &self.setting.tables, found.status.local, now);
        found.begin(session);
        if leaving && let Some(session) = &mut found.session {
            session.teaching.begin();
        }
        true
    }

    /// Processes the hello of a peer that has connected. Closes an existing connection with it.
    ///
    /// # Errors
    /// The status to be sent instead of 200.
    pub fn greeted(&mut self, hello: &Hello, now: Moment) -> Result<Ticket, Status> {
        let generation = self.next_generation();
        if hello.minor > MINOR {
            return Err(Status::Version);
        }
        if *hello.remote != *self.setting.local {
            return Err(Status::LocalName);
        }
        let peer = self.peers.iter().position(|peer| *peer.status.name == *hello.local).ok_or(Status::RemoteName)?;
        let found = &mut self.peers[peer];
        if self.leaving || found.status.local && found.session.is_some() {
            return Err(Status::TryAgain);
        }
        if found.calling.is_some() || found.session.is_some() {
            // Both peers have connected to each other: the connection of the one whose name sorts first is kept, even
            // if the other's hello was still in transit when that one gave up.
            let both = match &found.session {
                Some(session) => session.called && now < session.since + CROSSING,
                None => found.greeting,
            };
            if both && *self.setting.local < *hello.local {
                return Err(Status::TryAgain);
            }
            found.status.collisions = found.status.collisions.wrapping_add(1);
            found.calling = None;
            if found.session.take().is_some() {
                self.lost(peer, now);
            }
        }
        let found = &mut self.peers[peer];
        found.status.last_status = LastStatus::Established;
        found.status.last_handshake = Some(now);
        found.origin.pid = Some(hello.pid);
        found.begin(Session::new(generation, false, &self.setting.tables, found.status.local, now));
        if found.status.local {
            // It teaches without a request.
            self.teacher = Some(peer);
            found.session.iter_mut().for_each(|session| session.learning = true);
        }
        Ok(Ticket { peer, generation })
    }

    /// Whether a connection, or an attempt to establish it, is still current.
    pub fn stands(&self, ticket: Ticket) -> bool {
        self.peers.get(ticket.peer).is_some_and(|peer| {
            peer.calling == Some(ticket.generation)
                || peer.session.as_ref().is_some_and(|session| session.generation == ticket.generation)
        })
    }

    /// Processes bytes received from a peer.
    pub fn hear(&mut self, ticket: Ticket, bytes: &[u8], now: Moment) -> ReceiveResult {
        let mut events = Vec::new();
        let Some((session, mut around, status)) = self.split(ticket, now) else {
            return ReceiveResult::End(End::Replaced);
        };
        let heard = session.hear(bytes, &mut around, |event| events.push(event));
        let mut end = match heard {
            Ok(taken) => ReceiveResult::Taken(taken),
            Err(Fault::Told) => ReceiveResult::End(End::Told),
            Err(Fault::Malformed(why)) => {
                status.protocol_errors = status.protocol_errors.wrapping_add(1);
                ReceiveResult::End(End::Malformed(why))
            }
        };
        for event in events {
            match event {
                Event::Heartbeat => {
                    let status = &mut self.peers[ticket.peer].status;
                    status.rx_heartbeats = status.rx_heartbeats.wrapping_add(1);
                }
                Event::Confirmed if self.leaving => end = ReceiveResult::End(End::Taught),
                Event::Confirmed => {}
                Event::Taught(everything) => self.taught(ticket.peer, everything, now),
                Event::Identified(process) => self.identified(ticket.peer, process, now),
                Event::Defined(table, why) => self.origin_defined(ticket.peer, table, why, now),
            }
        }
        end
    }

    /// Processes the end of a peer's teaching.
    fn taught(&mut self, at: usize, everything: bool, now: Moment) {
        let peer = &mut self.peers[at];
        if let Some(session) = &mut peer.session {
            // A peer that repeats it endlessly gets a bounded number of confirmations.
            session.confirms = session.confirms.saturating_add(1).min(8);
            session.learning = false;
        }
        self.origin_taught(at, everything, now);
        if self.teacher != Some(at) {
            return;
        }
        let peer = &mut self.peers[at];
        self.teacher = None;
        if everything {
            self.resync = Resync::Finished;
        } else if peer.status.local {
            self.wait_again(Resync::Local(now + RESYNC));
        } else {
            peer.knows_part = true;
            self.wait_again(Resync::Remote(now + RESYNC));
        }
    }

    fn wait_again(&mut self, resync: Resync) {
        if self.resync != Resync::Finished {
            self.resync = resync;
        }
    }

    /// Appends the messages to be sent to a peer, about `most` bytes. True: there is more, even if nothing was
    /// appended.
    ///
    /// # Errors
    /// The connection must be closed.
    pub fn say(&mut self, ticket: Ticket, out: &mut Vec<u8>, now: Moment, most: usize) -> Result<bool, End> {
        let remote = self.setting.remotes.get(ticket.peer);
        let shard = remote.map_or(0, |remote| remote.shard);
        let manner = SendParameters { complete: self.is_complete(), shard, updates: self.setting.updates };
        let Some((session, mut around, status)) = self.split(ticket, now) else { return Err(End::Replaced) };
        if now >= session.heard + PATIENCE {
            status.no_heartbeat = status.no_heartbeat.wrapping_add(1);
            return Err(End::Silent);
        }
        if session.say(out, &mut around, most, manner) {
            status.tx_heartbeats = status.tx_heartbeats.wrapping_add(1);
        }
        Ok(session.teaching.has_more)
    }

    /// When to call [`Section::say`] for a connection without other events. `blocked`: the peer does not read what was
    /// sent; then it is when the connection must be closed unless something is received.
    pub fn say_at(&self, ticket: Ticket, blocked: bool) -> Option<Moment> {
        let session = self.peers.get(ticket.peer)?.session.as_ref()?;
        let at = if blocked { session.heard + PATIENCE } else { session.deadline() };
        (session.generation == ticket.generation).then_some(at)
    }

    /// Records that a connection was closed, or not established. `random` spreads the reconnection attempts.
    pub fn ended(&mut self, ticket: Ticket, now: Moment, random: u64) {
        if !self.stands(ticket) {
            return;
        }
        let peer = &mut self.peers[ticket.peer];
        peer.calling = None;
        if peer.session.take().is_some() {
            if !peer.status.local {
                peer.reconnect = Some(now + Duration::from_millis(50 + random % 2_000));
            }
            self.lost(ticket.peer, now);
        }
    }

    /// Restarts the resynchronization with another peer, if this one was teaching.
    fn lost(&mut self, at: usize, now: Moment) {
        if self.teacher == Some(at) {
            self.teacher = None;
            let is_local = self.peers[at].status.local;
            self.wait_again(if is_local { Resync::Local(now + RESYNC) } else { Resync::Remote(now + RESYNC) });
        }
    }

    /// Stops the section: closes all connections, and connects to the local peer, a newer process, to teach it
    /// everything.
    pub fn leave(&mut self, now: Moment) {
        self.leaving = true;
        for peer in &mut self.peers {
            (peer.session, peer.calling) = (None, None);
            peer.reconnect = peer.status.local.then_some(now);
        }
        self.teacher = None;
    }

    fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    fn split(&mut self, ticket: Ticket, now: Moment) -> Option<(&mut Session, SyncContext<'_>, &mut PeerStatus)> {
        let Peer { session, reach, status, origin, .. } = self.peers.get_mut(ticket.peer)?;
        let session = session.as_mut().filter(|session| session.generation == ticket.generation)?;
        let origin = (!status.local).then_some(Origin { index: ticket.peer as u16, epoch: origin.epoch });
        let Setting { tables, limit, process, .. } = &self.setting;
        let around = SyncContext { tables, reach, limit: *limit, process: *process, origin, now };
        Some((session, around, status))
    }

    /// Returns the status for `show peers`.
    pub fn status(&self) -> SectionStatus {
        SectionStatus {
            name: self.setting.name.clone(),
            complete: self.is_complete(),
            resync_timeout: self.resync_deadline(),
            peers: self.peers.iter().map(|peer| peer.told(&self.setting.tables)).collect(),
        }
    }
}

impl Peer {
    /// Records an established connection.
    fn begin(&mut self, session: Session) {
        self.knows_part = false;
        self.origin.begin();
        for reach in &mut self.reach {
            // Updates that were not acknowledged are sent again.
            reach.pushed = reach.acked;
        }
        self.session = Some(session);
    }

    fn told(&self, tables: &[Shared]) -> PeerStatus {
        let mut told = self.status.clone();
        let session = self.session.as_ref();
        told.active = session.is_some() || self.calling.is_some();
        told.running = session.is_some();
        told.reconnect = self.reconnect;
        if let Some(session) = session {
            told.heartbeat = Some(session.deadline());
            told.confirm = session.confirms;
            told.learn_state = if session.learning { LearnState::Processing } else { LearnState::NotAssigned };
            told.remote_table = session.current;
            told.last_local_table = session.teaching.current();
            told.names_sent = session.teaching.names_sent();
            told.names_learned = session.names_learned();
        }
        let is_summed = |shared: &Shared| matches!(shared.role, Role::Addend(_)) && !self.status.local;
        let status = |(index, (shared, reach)): (usize, (&Shared, &SyncState))| {
            let told = session.map_or((0, 0, 0, 0), |session| session.remote(index));
            let (remote_id, remote_data, last_get, last_acked) = told;
            TableStatus {
                name: shared.table.plan.name.clone(),
                local_id: index as u64 + 1,
                remote_id,
                remote_data,
                last_acked,
                last_pushed: reach.pushed,
                last_get,
                teaching_origin: reach.origin,
                update: shared.table.last_update(),
                sum: is_summed(shared).then(|| self.origin.status()),
            }
        };
        told.tables = tables.iter().zip(&self.reach).enumerate().map(status).collect();
        told
    }
}
