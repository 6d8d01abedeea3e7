//! A section: who is connected, from whom everything is learned, when a peer is tried again. It is lent bytes and moments
//! by the owner of the connections. Must never hold more than one connection with a peer.

use super::plan::Shared;
use super::session::{Around, Event, Fault, Manner, PATIENCE, Reach, Session};
use super::status::{LastStatus, LearnState, PeerStatus, SectionStatus, TableStatus};
use base::moment::Moment;
use std::time::Duration;
use wire::peers::{Hello, Malformed, Status};

/// Between two attempts to reach a peer.
const RECONNECT: Duration = Duration::from_secs(5);
/// How long a peer to learn from is waited for.
const RESYNC: Duration = Duration::from_secs(5);
/// How long the greeting of a peer may be on its way.
const CROSSING: Duration = Duration::from_secs(1);
/// The version of the protocol that is spoken: 2.1.
const MINOR: u32 = 1;

/// Another instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// Its name.
    pub name: Box<str>,
    /// The part of the keys that it gets, from 1; 0: all of them.
    pub shard: u32,
}

/// What a section is about.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its name.
    pub name: Box<str>,
    /// The name of this instance.
    pub local: Box<str>,
    /// The others.
    pub remotes: Vec<Remote>,
    /// What is shared.
    pub tables: Vec<Shared>,
    /// Updates in a row.
    pub updates: usize,
    /// Bytes of a message at most.
    pub limit: usize,
    /// The process, as peers are told it.
    pub pid: u32,
}

/// A connection with a peer. It is of no use any more when the peer has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The peer: its place in [`Setting::remotes`]; behind them: this instance itself.
    pub peer: usize,
    generation: u64,
}

/// What became of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// So many are done with; the rest is no whole message yet.
    Taken(usize),
    /// The connection has to end.
    End(End),
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The peer or the network has ended it, or it was never made.
    Closed,
    /// Nothing was heard for too long.
    Silent,
    /// The peer sent what is no message, and is to be told so.
    Malformed(Malformed),
    /// The peer could not read something.
    Told,
    /// There is a newer one.
    Replaced,
    /// A newer process of this instance knows everything.
    Taught,
    /// The peer does not want to be greeted.
    Refused,
}

/// From whom everything is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resync {
    /// From an older process of this instance, which may come until then.
    Local(Moment),
    /// From another instance, if one is there before that.
    Remote(Moment),
    /// It was, or no peer was there.
    Finished,
}

/// A peer, whether it is connected or not.
#[derive(Debug, Default)]
struct Peer {
    session: Option<Session>,
    /// A connection is being made; its generation.
    calling: Option<u64>,
    /// It is there, and the peer is greeted.
    greeting: bool,
    reach: Vec<Reach>,
    /// It does not know everything itself.
    knows_part: bool,
    reconnect: Option<Moment>,
    status: PeerStatus,
}

/// A section.
#[derive(Debug)]
pub struct Section {
    setting: Setting,
    /// The remotes, then the local one.
    peers: Vec<Peer>,
    resync: Resync,
    /// The peer from which everything is learned.
    teacher: Option<usize>,
    generation: u64,
    /// The process stops: the local peer alone is taught.
    leaving: bool,
}

impl Section {
    /// No peer is connected. `successor`: an older process may come to teach this one.
    pub fn new(setting: Setting, now: Moment, successor: bool) -> Self {
        let names = setting.remotes.iter().map(|remote| (&remote.name, false));
        let peers = names.chain([(&setting.local, true)]).map(|(name, local)| Peer {
            reach: vec![Reach::default(); setting.tables.len()],
            reconnect: (!local).then_some(now),
            status: PeerStatus { name: name.clone(), local, ..PeerStatus::default() },
            ..Peer::default()
        });
        let resync = if successor { Resync::Local(now + RESYNC) } else { Resync::Remote(now + RESYNC) };
        Self { peers: peers.collect(), resync, teacher: None, generation: 0, leaving: false, setting }
    }

    /// What it is about.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The place of this instance behind the others.
    pub fn local(&self) -> usize {
        self.setting.remotes.len()
    }

    /// Whether everything that was to be learned has been.
    pub fn is_complete(&self) -> bool {
        self.resync == Resync::Finished
    }

    /// When [`Section::tick`] is to be called.
    pub fn deadline(&self) -> Option<Moment> {
        match self.resync {
            Resync::Local(until) | Resync::Remote(until) if self.teacher.is_none() => Some(until),
            _ => None,
        }
    }

    /// Time has passed, or a peer has connected or disconnected. `random` chooses among those who may be asked for everything; true:
    /// one of them is to be asked.
    pub fn tick(&mut self, now: Moment, random: u64) -> bool {
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

    /// When a peer is to be called; `None`: not, as things are. An older process teaches first.
    pub fn call_at(&self, peer: usize) -> Option<Moment> {
        let found = self.peers.get(peer)?;
        let free = found.session.is_none() && found.calling.is_none();
        let first = self.leaving || !matches!(self.resync, Resync::Local(_));
        if free && first && found.status.local == self.leaving { found.reconnect } else { None }
    }

    /// A peer is being called: what to say to it.
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

    /// The peer that is called can be reached, and is greeted now.
    pub fn reached(&mut self, ticket: Ticket) {
        if let Some(found) = self.peers.get_mut(ticket.peer) {
            found.greeting |= found.calling == Some(ticket.generation);
        }
    }

    /// What a peer that was called has answered. True: the connection stands.
    pub fn answered(&mut self, ticket: Ticket, status: Status, now: Moment) -> bool {
        let (leaving, tables) = (self.leaving, self.setting.tables.len());
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
        found.begin(Session::new(ticket.generation, true, tables, now));
        if leaving && let Some(session) = &mut found.session {
            session.teaching.begin();
        }
        true
    }

    /// A peer has connected and given its name. A connection that there was with them ends.
    ///
    /// # Errors
    /// What they are to be told instead of 200.
    pub fn greeted(&mut self, hello: &Hello, now: Moment) -> Result<Ticket, Status> {
        let generation = self.next_generation();
        if hello.minor > MINOR {
            return Err(Status::Version);
        }
        if *hello.remote != *self.setting.local {
            return Err(Status::LocalName);
        }
        let peer = self.peers.iter().position(|peer| *peer.status.name == *hello.local).ok_or(Status::RemoteName)?;
        let tables = self.setting.tables.len();
        let found = &mut self.peers[peer];
        if self.leaving || found.status.local && found.session.is_some() {
            return Err(Status::TryAgain);
        }
        if found.calling.is_some() || found.session.is_some() {
            // Both have called each other: the call of the one whose name comes first stands, be it that the other's
            // greeting was on its way still when that one gave up.
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
        found.begin(Session::new(generation, false, tables, now));
        if found.status.local {
            // It teaches without being asked.
            self.teacher = Some(peer);
            found.session.iter_mut().for_each(|session| session.learning = true);
        }
        Ok(Ticket { peer, generation })
    }

    /// Whether a connection, or the attempt to make it, is still wanted.
    pub fn stands(&self, ticket: Ticket) -> bool {
        self.peers.get(ticket.peer).is_some_and(|peer| {
            peer.calling == Some(ticket.generation)
                || peer.session.as_ref().is_some_and(|session| session.generation == ticket.generation)
        })
    }

    /// A peer has sent bytes.
    pub fn hear(&mut self, ticket: Ticket, bytes: &[u8], now: Moment) -> Heard {
        let mut events = Vec::new();
        let Some((session, mut around, status)) = self.split(ticket, now) else { return Heard::End(End::Replaced) };
        let heard = session.hear(bytes, &mut around, |event| events.push(event));
        let mut end = match heard {
            Ok(taken) => Heard::Taken(taken),
            Err(Fault::Told) => Heard::End(End::Told),
            Err(Fault::Malformed(why)) => {
                status.protocol_errors = status.protocol_errors.wrapping_add(1);
                Heard::End(End::Malformed(why))
            }
        };
        for event in events {
            match event {
                Event::Heartbeat => {
                    let status = &mut self.peers[ticket.peer].status;
                    status.rx_heartbeats = status.rx_heartbeats.wrapping_add(1);
                }
                Event::Confirmed if self.leaving => end = Heard::End(End::Taught),
                Event::Confirmed => {}
                Event::Taught(everything) => self.taught(ticket.peer, everything, now),
            }
        }
        end
    }

    /// A peer has told all that it knows.
    fn taught(&mut self, at: usize, everything: bool, now: Moment) {
        let peer = &mut self.peers[at];
        if let Some(session) = &mut peer.session {
            // Who says that it is done without end is answered once.
            session.confirms = session.confirms.saturating_add(1).min(8);
            session.learning = false;
        }
        if self.teacher != Some(at) {
            return;
        }
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

    /// Appends what a peer is to be told now, about `most` bytes. True: there is more, though nothing may have been
    /// appended.
    ///
    /// # Errors
    /// The connection has to end.
    pub fn say(&mut self, ticket: Ticket, out: &mut Vec<u8>, now: Moment, most: usize) -> Result<bool, End> {
        let remote = self.setting.remotes.get(ticket.peer);
        let shard = remote.map_or(0, |remote| remote.shard);
        let manner = Manner { complete: self.is_complete(), shard, updates: self.setting.updates };
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

    /// When [`Section::say`] is to be called for a connection though nothing has happened. `blocked`: the peer does not
    /// take what it was told already; then it is when the connection has to end unless something is heard.
    pub fn say_at(&self, ticket: Ticket, blocked: bool) -> Option<Moment> {
        let session = self.peers.get(ticket.peer)?.session.as_ref()?;
        let at = if blocked { session.heard + PATIENCE } else { session.deadline() };
        (session.generation == ticket.generation).then_some(at)
    }

    /// A connection has ended, or was not made. `random` spreads the next attempts of many.
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

    /// What was to be learned from a peer is to be learned from another one.
    fn lost(&mut self, at: usize, now: Moment) {
        if self.teacher == Some(at) {
            self.teacher = None;
            let is_local = self.peers[at].status.local;
            self.wait_again(if is_local { Resync::Local(now + RESYNC) } else { Resync::Remote(now + RESYNC) });
        }
    }

    /// The process stops: all connections end, and the local peer, a newer process, is called to be taught everything.
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

    fn split(&mut self, ticket: Ticket, now: Moment) -> Option<(&mut Session, Around<'_>, &mut PeerStatus)> {
        let Peer { session, reach, status, .. } = self.peers.get_mut(ticket.peer)?;
        let session = session.as_mut().filter(|session| session.generation == ticket.generation)?;
        let around = Around { tables: &self.setting.tables, reach, limit: self.setting.limit, now };
        Some((session, around, status))
    }

    /// What is told of it.
    pub fn status(&self) -> SectionStatus {
        SectionStatus {
            name: self.setting.name.clone(),
            complete: self.is_complete(),
            resync_timeout: self.deadline(),
            peers: self.peers.iter().map(|peer| peer.told(&self.setting.tables)).collect(),
        }
    }
}

impl Peer {
    /// A connection stands.
    fn begin(&mut self, session: Session) {
        self.knows_part = false;
        for reach in &mut self.reach {
            // What was not confirmed is told again.
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
        let status = |(index, (shared, reach)): (usize, (&Shared, &Reach))| {
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
            }
        };
        told.tables = tables.iter().zip(&self.reach).enumerate().map(status).collect();
        told
    }
}
