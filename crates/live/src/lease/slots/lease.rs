//! The slots of one server that this node may use, from claim to answer. Must never raise them without an answer, except as `lost` says
//! once the lease has expired.

use super::report::{Claim, SlotGrant, SlotReading, SlotReport, StoreState};
use base::moment::Moment;
use config::spec::LostMode;
use std::time::Duration;

/// Time after which slots return to the store if a node does not renew its lease.
const LIFETIME: Duration = Duration::from_secs(5);
/// The same for a process that ends: its last slots return soon after it.
const LAST_LIFETIME: Duration = Duration::from_secs(1);
/// Time between claims while requests wait for slots, while the server has requests, and otherwise.
const HUNGRY: Duration = Duration::from_millis(50);
const BUSY: Duration = Duration::from_millis(100);
const IDLE: Duration = Duration::from_millis(250);
/// Time until the next claim after the store had other data.
const FOREIGN: Duration = Duration::from_secs(5);

/// The origin of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// The store has not answered yet, and may do so: there are none.
    #[default]
    New,
    /// The store has granted them until that time.
    Leased(Moment),
    /// As `lost` says.
    Lost,
}

/// The last report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reported {
    held: u32,
    is_hungry: bool,
}

/// A lease.
#[derive(Debug, Default)]
pub(super) struct Lease {
    phase: Phase,
    granted: u32,
    /// 0: unknown.
    nodes: u32,
    sequence: u64,
    /// A claim has no answer yet.
    is_claiming: bool,
    /// That claim was begun in [`Phase::Lost`].
    returns: bool,
    reported: Option<Reported>,
    /// Another node needs slots.
    is_contested: bool,
    /// When the next claim is due.
    due: Moment,
    /// The process ends, and has reported that.
    leaves: bool,
    /// The store knows that the process ends and holds nothing.
    has_left: bool,
    reading: SlotReading,
    /// The server was removed.
    is_removed: bool,
}

impl Lease {
    /// Returns the slots that the node may use now.
    pub(super) fn slots(&self, lost: LostMode) -> u32 {
        let most = self.reading.most;
        let share = (most / self.nodes.max(1)).max(1);
        let by_itself = match lost {
            LostMode::Local => share,
            LostMode::Open => most,
            LostMode::Closed => 0,
        };
        match self.phase {
            _ if most == u32::MAX => u32::MAX,
            Phase::New => 0,
            Phase::Leased(_) => self.granted.min(most),
            // What the node claims when it returns must fit beside the leases of the others.
            Phase::Lost if self.returns && self.nodes == 0 => 0,
            Phase::Lost if self.returns => by_itself.min(share),
            Phase::Lost => by_itself,
        }
    }

    /// Records the load; `None`: the server was removed.
    pub(super) fn note(&mut self, reading: Option<SlotReading>) {
        self.is_removed = reading.is_none();
        self.reading = reading.unwrap_or_default();
    }

    /// Ends the lease when it has expired. A lease is valid until then, even if the store cannot be used meanwhile.
    pub(super) fn follow(&mut self, store: StoreState, now: Moment) {
        match self.phase {
            // Without a limit, nothing is leased. A limit that is set later begins with a new lease.
            _ if self.reading.most == u32::MAX => (self.phase, self.reported) = (Phase::New, None),
            Phase::Leased(until) if now >= until => self.phase = Phase::Lost,
            Phase::New if store == StoreState::Lost => self.phase = Phase::Lost,
            _ => {}
        }
        if store != StoreState::Ready {
            (self.is_claiming, self.returns, self.reported) = (false, false, None);
        }
    }

    /// Whether a claim is due. If so, the slots may shrink: apply them, and call [`Self::claim`].
    pub(super) fn begin_claim(
        &mut self,
        store: StoreState,
        reading: SlotReading,
        now: Moment,
        is_leaving: bool,
    ) -> bool {
        if store != StoreState::Ready || self.is_claiming || reading.most == u32::MAX {
            return false;
        }
        let is_urgent = self.reported.is_none_or(|last| {
            let gives_back = self.is_contested && self.held(reading) < last.held;
            gives_back || (self.is_hungry(reading) && !last.is_hungry)
        });
        let is_last = is_leaving && !self.leaves;
        let is_begun = now >= self.due || (is_urgent || is_last) && !self.is_foreign();
        if is_begun && is_leaving {
            // A process that ends keeps what its requests need.
            self.granted = self.granted.min(reading.served.saturating_add(reading.waiting));
        }
        self.returns = is_begun && self.phase == Phase::Lost;
        is_begun
    }

    /// The store had other data, and is asked again later.
    fn is_foreign(&self) -> bool {
        self.phase == Phase::Lost && self.reported.is_some()
    }

    /// Whether a process that ends has given its slots back, or has none that the store counts.
    pub(super) fn has_left(&self) -> bool {
        self.has_left || !matches!(self.phase, Phase::Leased(_)) || self.reading.most == u32::MAX || self.is_removed
    }

    /// Slots that cannot be given back.
    fn held(&self, reading: SlotReading) -> u32 {
        let slots = if let Phase::Leased(_) = self.phase { self.granted.min(reading.most) } else { 0 };
        slots.max(reading.served)
    }

    fn is_hungry(&self, reading: SlotReading) -> bool {
        reading.waiting > 0 && self.held(reading) < reading.local
    }

    /// Returns the claim that was begun, with the load after the slots were applied.
    pub(super) fn claim(&mut self, lost: LostMode, reading: SlotReading, now: Moment, is_leaving: bool) -> Claim {
        if is_leaving {
            self.leaves = true;
            if let Phase::Leased(until) = self.phase {
                // The store may execute this claim even if its answer is lost.
                self.phase = Phase::Leased(until.min(now + LAST_LIFETIME));
            }
        }
        // If `maxconn` was lowered and is raised again, what was given back stays there.
        self.granted = self.granted.min(reading.most);
        let (held, is_hungry) = (self.slots(lost).max(reading.served), self.is_hungry(reading));
        let demand = reading.served.saturating_add(reading.waiting);
        let pause = match demand {
            _ if is_hungry => HUNGRY,
            0 => IDLE,
            _ => BUSY,
        };
        self.sequence += 1;
        (self.is_claiming, self.due, self.reported) = (true, now + pause, Some(Reported { held, is_hungry }));
        Claim {
            sequence: self.sequence,
            most: reading.most,
            held,
            demand: demand.min(reading.local),
            nodes: self.nodes,
            is_leaving,
            lifetime: if is_leaving { LAST_LIFETIME } else { LIFETIME },
            made: now,
        }
    }

    /// Applies the answer to the last claim.
    pub(super) fn settle(&mut self, claim: &Claim, grant: SlotGrant, now: Moment) {
        if claim.sequence != self.sequence || !self.is_claiming {
            return;
        }
        (self.is_claiming, self.returns) = (false, false);
        self.has_left = claim.is_leaving && claim.held == 0;
        match grant {
            SlotGrant::Slots { count, nodes, is_contested } => {
                self.phase = Phase::Leased(claim.made + claim.lifetime);
                (self.granted, self.nodes, self.is_contested) = (count.min(claim.most), nodes.max(1), is_contested);
            }
            SlotGrant::Outdated => {}
            SlotGrant::Foreign => (self.phase, self.due) = (Phase::Lost, now + FOREIGN),
        }
    }

    /// Ends a claim without an answer.
    pub(super) fn forget(&mut self, claim: &Claim) {
        if claim.sequence == self.sequence {
            (self.is_claiming, self.returns, self.reported) = (false, false, None);
        }
    }

    pub(super) fn report(&self, lost: LostMode) -> SlotReport {
        let state = match self.phase {
            _ if self.is_removed => "REMOVED",
            Phase::New => "NEW",
            Phase::Leased(_) => "LEASED",
            Phase::Lost => "LOST",
        };
        SlotReport { state, leased: self.slots(lost), nodes: self.nodes, reading: self.reading }
    }
}
