//! Queued requests: a backend's queue and one for each server, ordered by priority and arrival, as linked lists through
//! one slab, so that any request leaves its queue in constant time. Must never lock or wake.

use super::{Priority, QueuePositions};
use std::collections::BTreeMap;
use std::task::Waker;

/// Index in the slab.
pub(super) type WaiterId = u32;

const NONE: WaiterId = u32::MAX;

/// The sort key of a request among queued ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    class: i16,
    /// Milliseconds: its arrival time plus its offset.
    due: i64,
    /// Order of arrival in the backend.
    arrival: u64,
}

/// The queue of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueOwner {
    /// The backend's: for any server.
    Backend,
    /// That of a server.
    Server(usize),
}

/// A queue of requests: a linked list through the slab.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queue {
    head: WaiterId,
    tail: WaiterId,
    /// Number of queued requests.
    pub(super) length: u32,
    /// Number of requests dequeued to be served; wraps.
    granted: u32,
}

impl Queue {
    pub(super) const EMPTY: Self = Self { head: NONE, tail: NONE, length: 0, granted: 0 };
}

#[derive(Debug)]
enum Phase {
    /// The entry is free; the next free one.
    Free(WaiterId),
    Waiting(Option<Waker>),
    /// It holds a slot of this server.
    Granted(usize),
}

#[derive(Debug)]
struct Waiter {
    phase: Phase,
    place: QueueOwner,
    rank: Rank,
    previous: WaiterId,
    next: WaiterId,
    /// `granted` of the queue when the request joined it.
    joined_at: u32,
    /// Positions in queues that it left before.
    positions: QueuePositions,
}

/// The state of a request that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) positions: QueuePositions,
    /// The server whose slot it holds.
    pub(super) granted: Option<usize>,
}

/// All queued requests of one backend.
#[derive(Debug)]
pub(super) struct Waiters {
    entries: Vec<Waiter>,
    free: WaiterId,
    arrivals: u64,
    /// The latest arrival time without an offset: the clocks of workers differ slightly, and that must not affect the
    /// order.
    latest: i64,
    /// All queued requests by queue and rank; built when a request must be inserted before an earlier one.
    ranked: Option<BTreeMap<(QueueOwner, Rank), WaiterId>>,
}

impl Waiters {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), free: NONE, arrivals: 0, latest: i64::MIN, ranked: None }
    }

    /// Adds a new request to `queue`, which is the one of `place`, after all requests with a lower rank.
    pub(super) fn join(&mut self, queue: &mut Queue, place: QueueOwner, priority: Priority) -> WaiterId {
        self.arrivals += 1;
        let mut due = i64::try_from(priority.now.as_nanos() / 1_000_000).unwrap_or(i64::MAX);
        if priority.offset == 0 {
            self.latest = self.latest.max(due);
            due = self.latest;
        }
        let due = due.saturating_add(priority.offset.into());
        let rank = Rank { class: priority.class, due, arrival: self.arrivals };
        let waiter = Waiter {
            phase: Phase::Waiting(None),
            place,
            rank,
            previous: NONE,
            next: NONE,
            joined_at: queue.granted,
            positions: QueuePositions::default(),
        };
        let id = match self.entries.get(self.free as usize) {
            Some(&Waiter { phase: Phase::Free(next), .. }) => {
                let id = std::mem::replace(&mut self.free, next);
                self.entries[id as usize] = waiter;
                id
            }
            _ => {
                self.entries.push(waiter);
                (self.entries.len() - 1) as WaiterId
            }
        };
        let behind = self.before(queue, place, rank);
        self.link_behind(queue, behind, id);
        id
    }

    /// Returns the last request of `queue` that ranks before a request about to join it.
    fn before(&mut self, queue: &Queue, place: QueueOwner, rank: Rank) -> WaiterId {
        if self.entries.get(queue.tail as usize).is_none_or(|last| last.rank < rank) {
            return queue.tail;
        }
        let entries = &self.entries;
        let ranked = self.ranked.get_or_insert_with(|| {
            let (queued, ids) = (|waiter: &Waiter| matches!(waiter.phase, Phase::Waiting(_)), 0_u32..);
            let waiting = entries.iter().zip(ids).filter(|(waiter, _)| queued(waiter) && waiter.rank != rank);
            waiting.map(|(waiter, id)| ((waiter.place, waiter.rank), id)).collect()
        });
        let first = Rank { class: i16::MIN, due: i64::MIN, arrival: 0 };
        ranked.range((place, first)..(place, rank)).next_back().map_or(NONE, |(_, id)| *id)
    }

    /// Returns the rank of the first request of `queue`.
    pub(super) fn first_rank(&self, queue: &Queue) -> Option<Rank> {
        self.entries.get(queue.head as usize).map(|waiter| waiter.rank)
    }

    /// Returns the queue of a request while it is queued.
    pub(super) fn place(&self, id: WaiterId) -> Option<QueueOwner> {
        let waiter = &self.entries[id as usize];
        matches!(waiter.phase, Phase::Waiting(_)).then_some(waiter.place)
    }

    /// Grants the first request of `queue` a slot of `server`. Returns its waker, to be called after the lock is
    /// released.
    pub(super) fn grant(&mut self, queue: &mut Queue, server: usize) -> Option<Waker> {
        let id = queue.head;
        if id == NONE {
            return None;
        }
        self.unlink(queue, id);
        self.add_position(queue, id);
        queue.granted = queue.granted.wrapping_add(1);
        match std::mem::replace(&mut self.entries[id as usize].phase, Phase::Granted(server)) {
            Phase::Waiting(waker) => waker,
            Phase::Free(_) | Phase::Granted(_) => None,
        }
    }

    /// Moves every request of `from` to the backend's queue `to`, each after those with a lower rank.
    pub(super) fn move_all(&mut self, from: &mut Queue, to: &mut Queue) {
        let mut behind = NONE;
        while from.head != NONE {
            let id = from.head;
            self.unlink(from, id);
            self.add_position(from, id);
            let waiter = &mut self.entries[id as usize];
            (waiter.place, waiter.joined_at) = (QueueOwner::Backend, to.granted);
            let rank = waiter.rank;
            let mut next = if behind == NONE { to.head } else { self.entries[behind as usize].next };
            while next != NONE && self.entries[next as usize].rank < rank {
                behind = next;
                next = self.entries[next as usize].next;
            }
            self.link_behind(to, behind, id);
            behind = id;
        }
    }

    /// Whether a slot was granted to a request; otherwise stores its waker.
    pub(super) fn poll(&mut self, id: WaiterId, waker: &Waker) -> bool {
        match &mut self.entries[id as usize].phase {
            Phase::Granted(_) => true,
            Phase::Waiting(Some(kept)) => {
                kept.clone_from(waker);
                false
            }
            phase => {
                *phase = Phase::Waiting(Some(waker.clone()));
                false
            }
        }
    }

    /// Returns the positions of a request queued in `queue`, or of one that holds a slot.
    pub(super) fn positions(&self, id: WaiterId, queue: &Queue) -> QueuePositions {
        let waiter = &self.entries[id as usize];
        match waiter.phase {
            Phase::Waiting(_) => waiter.positions_with(queue),
            Phase::Granted(_) | Phase::Free(_) => waiter.positions,
        }
    }

    /// Removes a request from the slab, and from its `queue` if it is still queued.
    pub(super) fn leave(&mut self, id: WaiterId, queue: &mut Queue) -> Left {
        let granted = match self.entries[id as usize].phase {
            Phase::Granted(server) => Some(server),
            Phase::Waiting(_) | Phase::Free(_) => {
                self.unlink(queue, id);
                self.add_position(queue, id);
                None
            }
        };
        let waiter = &mut self.entries[id as usize];
        waiter.phase = Phase::Free(std::mem::replace(&mut self.free, id));
        Left { positions: waiter.positions, granted }
    }

    fn add_position(&mut self, queue: &Queue, id: WaiterId) {
        let waiter = &mut self.entries[id as usize];
        waiter.positions = waiter.positions_with(queue);
    }

    fn link_behind(&mut self, queue: &mut Queue, behind: WaiterId, id: WaiterId) {
        let next = if behind == NONE {
            std::mem::replace(&mut queue.head, id)
        } else {
            std::mem::replace(&mut self.entries[behind as usize].next, id)
        };
        match self.entries.get_mut(next as usize) {
            Some(next) => next.previous = id,
            None => queue.tail = id,
        }
        let waiter = &mut self.entries[id as usize];
        (waiter.previous, waiter.next) = (behind, next);
        queue.length += 1;
        if let Some(ranked) = &mut self.ranked {
            ranked.insert((waiter.place, waiter.rank), id);
        }
    }

    fn unlink(&mut self, queue: &mut Queue, id: WaiterId) {
        let Waiter { previous, next, place, rank, .. } = self.entries[id as usize];
        if let Some(ranked) = &mut self.ranked {
            ranked.remove(&(place, rank));
            if ranked.is_empty() {
                self.ranked = None;
            }
        }
        match self.entries.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => queue.head = next,
        }
        match self.entries.get_mut(next as usize) {
            Some(next) => next.previous = previous,
            None => queue.tail = previous,
        }
        queue.length -= 1;
    }
}

impl Waiter {
    /// HAProxy includes the request itself: the first of a queue has position 1.
    fn positions_with(&self, queue: &Queue) -> QueuePositions {
        let passed = queue.granted.wrapping_sub(self.joined_at).wrapping_add(1);
        let mut positions = self.positions;
        match self.place {
            QueueOwner::Backend => positions.backend = positions.backend.wrapping_add(passed),
            QueueOwner::Server(_) => positions.server = positions.server.wrapping_add(passed),
        }
        positions
    }
}
