//! One connection with a peer after the handshake: the messages to be sent, and the processing of received ones. Must
//! never touch a socket, and never hold more than one message from the peer.

use super::announcement::{self, Announcement, Announcements};
use super::encoding::{self, UpdateTarget};
use super::names;
use super::plan::{Role, Shared};
use super::push::PushState;
use super::send_parameters::{SendParameters, SyncContext};
use base::moment::Moment;
use std::time::Duration;
use wire::peers::{Control, Definition, Malformed, Message, Update, UpdateFields, ack, decode};

/// A heartbeat is sent after this time without other messages.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(3);
/// The peer is considered dead after this time without messages.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The peer's definition of a shared table.
#[derive(Debug)]
struct Remote {
    definition: Definition,
    /// The table is compatible with ours.
    fits: bool,
    last: u32,
    /// The last acknowledged update.
    confirmed: u32,
}

/// An event from received messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The peer has sent all entries; true: it has learned everything itself.
    Taught(bool),
    /// The peer has confirmed the end of teaching.
    Confirmed,
    /// A heartbeat was received.
    Heartbeat,
    /// The peer has announced what it sums, and the number of its process, or announces nothing.
    Identified(Option<u64>),
    /// The peer has defined a table that is summed, and why it is not summed completely.
    Defined(usize, Option<String>),
}

/// Why a connection must be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The peer reported an error.
    Told,
    /// It sent an invalid message.
    Malformed(Malformed),
}

/// A connection after its handshake.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) generation: u64,
    /// The local instance established it.
    pub(super) called: bool,
    /// When it was established.
    pub(super) since: Moment,
    /// When the last bytes were received.
    pub(super) heard: Moment,
    /// When the last bytes were sent.
    pub(super) said: Moment,
    /// The peer is teaching all its entries.
    pub(super) learning: bool,
    /// A request for a full resynchronization is to be sent.
    pub(super) asks: bool,
    /// Number of confirmations of the end of teaching to be sent.
    pub(super) confirms: u32,
    pub(super) teaching: PushState,
    /// By table: an update to be acknowledged.
    acks: Vec<Option<u32>>,
    remotes: Vec<Option<Remote>>,
    /// The table that updates refer to; `None`: one that is not shared here.
    pub(super) current: Option<usize>,
    names: names::Learned,
    announcements: Announcements,
}

impl Session {
    pub(super) fn new(generation: u64, called: bool, tables: &[Shared], is_local: bool, now: Moment) -> Self {
        let announcements = Announcements::new(tables, is_local);
        let flows = announcements.flows(tables, is_local);
        Self {
            generation,
            called,
            since: now,
            heard: now,
            said: now,
            learning: false,
            asks: false,
            confirms: 0,
            teaching: PushState::new(flows),
            acks: vec![None; tables.len()],
            remotes: tables.iter().map(|_| None).collect(),
            current: None,
            names: names::Learned::default(),
            announcements,
        }
    }

    /// When a heartbeat is due or the peer is considered dead.
    pub(super) fn deadline(&self) -> Moment {
        (self.heard + PATIENCE).min(self.said + HEARTBEAT)
    }

    /// Returns the peer's definition of a table: its id, the kinds of data, the last update, the last one acknowledged.
    pub(super) fn remote(&self, table: usize) -> (u64, u64, u32, u32) {
        let remote = self.remotes.get(table).and_then(Option::as_ref);
        remote.map_or((0, 0, 0, 0), |remote| {
            let bits = remote.definition.stores.iter().fold(0, |bits, store| bits | 1 << store.kind);
            (remote.definition.id, bits, remote.last, remote.confirmed)
        })
    }

    /// Names of servers received from the peer.
    pub(super) fn names_learned(&self) -> Vec<(u64, Box<[u8]>)> {
        self.names.list()
    }

    /// Processes the complete messages at the start of the bytes; returns their total length.
    pub(super) fn hear(
        &mut self,
        bytes: &[u8],
        around: &mut SyncContext<'_>,
        mut tell: impl FnMut(Event),
    ) -> Result<usize, Fault> {
        let mut at = 0;
        if !bytes.is_empty() {
            self.heard = around.now;
        }
        while let Some(frame) = decode(&bytes[at..], around.limit).map_err(Fault::Malformed)? {
            at += frame.length;
            if !self.announcements.received && self.announced(&frame.message, around, &mut tell) {
                continue;
            }
            match frame.message {
                Message::Control(Control::ResyncRequest) => self.teaching.begin(),
                Message::Control(Control::ResyncFinished) => tell(Event::Taught(true)),
                Message::Control(Control::ResyncPartial) => tell(Event::Taught(false)),
                Message::Control(Control::ResyncConfirm) => {
                    if self.teaching.confirmed(around.reach) {
                        tell(Event::Confirmed);
                    }
                }
                Message::Control(Control::Heartbeat) => tell(Event::Heartbeat),
                Message::Error => return Err(Fault::Told),
                Message::Update(fields, payload) => self.update(fields, payload, around).map_err(Fault::Malformed)?,
                Message::Definition(payload) => self.define(payload, around, &mut tell).map_err(Fault::Malformed)?,
                Message::Switch(id) => {
                    let is_it = |remote: &Option<Remote>| remote.as_ref().is_some_and(|one| one.definition.id == id);
                    self.current = self.remotes.iter().position(is_it);
                }
                Message::Ack { table, number } => {
                    let index = table.checked_sub(1).and_then(|index| usize::try_from(index).ok());
                    if let Some(reach) = index.and_then(|index| around.reach.get_mut(index)) {
                        // Numbers out of range are ignored: HAProxy sends them after updates without a number.
                        if number.wrapping_sub(reach.acked) <= reach.pushed.wrapping_sub(reach.acked) {
                            reach.acked = number;
                        }
                    }
                }
            }
        }
        Ok(at)
    }

    /// Processes an announcement. False: it is another message, so that the peer has nothing more to announce.
    fn announced(&mut self, message: &Message<'_>, around: &SyncContext<'_>, tell: &mut impl FnMut(Event)) -> bool {
        let found = match message {
            Message::Definition(payload) => announcement::parse(payload, around.tables),
            _ => None,
        };
        let process = match found {
            Some(Announcement::Sums(addend)) => {
                self.announcements.note(addend);
                return true;
            }
            Some(Announcement::Other) => return true,
            Some(Announcement::Process(process)) => Some(process),
            None => None,
        };
        self.announcements.received = true;
        self.teaching.flows = self.announcements.flows(around.tables, around.origin.is_none());
        tell(Event::Identified(process));
        found.is_some()
    }

    fn define(
        &mut self,
        payload: &[u8],
        around: &SyncContext<'_>,
        tell: &mut impl FnMut(Event),
    ) -> Result<(), Malformed> {
        let definition = Definition::decode(payload)?;
        self.current = around.tables.iter().position(|shared| shared.name.as_bytes() == definition.name);
        let Some(index) = self.current else { return Ok(()) };
        let fits = encoding::fits(&around.tables[index].table.plan, &definition);
        if let (Role::Addend(sum), Some(_)) = (around.tables[index].role, around.origin) {
            let plan = &around.tables[sum].table.plan;
            tell(Event::Defined(index, encoding::difference(plan, fits, &definition)));
        }
        let (last, confirmed) = self.remotes[index].as_ref().map_or((0, 0), |before| (before.last, before.confirmed));
        // An id refers to one table only.
        for other in self.remotes.iter_mut() {
            if other.as_ref().is_some_and(|other| other.definition.id == definition.id) {
                *other = None;
            }
        }
        self.remotes[index] = Some(Remote { definition, fits, last, confirmed });
        Ok(())
    }

    fn update(&mut self, fields: UpdateFields, payload: &[u8], around: &SyncContext<'_>) -> Result<(), Malformed> {
        let Some(index) = self.current else { return Ok(()) };
        let Some(remote) = self.remotes[index].as_mut() else { return Ok(()) };
        let update = Update::decode(payload, fields, &remote.definition)?;
        remote.last = update.number.unwrap_or(remote.last.wrapping_add(1));
        self.acks[index] = Some(remote.last);
        if remote.fits {
            let shared = &around.tables[index];
            let target = match (shared.role, around.origin) {
                (Role::Plain, _) => UpdateTarget::Table,
                (Role::Sum(_), _) => UpdateTarget::Nowhere,
                (Role::Addend(_), None) => UpdateTarget::OwnTable,
                (Role::Addend(sum), Some(origin)) => UpdateTarget::Sum(&around.tables[sum].table, origin),
            };
            encoding::store_update(shared, target, &remote.definition, &update, &mut self.names, around.now);
        }
        Ok(())
    }

    /// Appends the messages to be sent, about `most` bytes. True: it is a heartbeat.
    pub(super) fn say(
        &mut self,
        out: &mut Vec<u8>,
        around: &mut SyncContext<'_>,
        most: usize,
        manner: SendParameters,
    ) -> bool {
        let before = out.len();
        if !std::mem::replace(&mut self.announcements.sent, true) {
            announcement::append(out, around.tables, around.process);
        }
        for _ in 0..std::mem::take(&mut self.confirms) {
            Control::ResyncConfirm.encode(out);
        }
        if std::mem::take(&mut self.asks) {
            Control::ResyncRequest.encode(out);
        }
        for (pending, remote) in self.acks.iter_mut().zip(&mut self.remotes) {
            if let (Some(number), Some(remote)) = (pending.take(), remote) {
                ack(out, remote.definition.id, number);
                remote.confirmed = number;
            }
        }
        self.teaching.say(out, around, most, manner);
        let silent = out.len() == before;
        if !silent {
            self.said = around.now;
        } else if around.now >= self.said + HEARTBEAT {
            Control::Heartbeat.encode(out);
            self.said = around.now;
            return true;
        }
        false
    }
}
