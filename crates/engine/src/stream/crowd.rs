//! Streams of one address that are at work at a time: how many there may be, and in which order others of it begin. So an address that
//! asks for as much as it can waits for itself, and leaves places to others. Beyond a half it gets what others leave free. Must never
//! end a stream that has begun.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use policy::program::{Backend, Global};

/// Connections to one address of a server that a machine can make, about: as many as it has local ports.
const PORTS: u32 = 28_000;
/// Streams of an address that may be at work on a worker, however few connections the process takes.
const LEAST: usize = 64;
/// The same for all workers together.
const LEAST_IN_ALL: u32 = 256;

/// The part of all places that an address leaves free at least, once it has a half.
const RESERVE: usize = 16;
/// How often the first stream that waits looks whether others have left a place.
const LOOK: Duration = Duration::from_millis(20);

/// How many places an address may take on one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
    /// The places that it gets in any case: a half of all, divided among the workers.
    pub least: usize,
    /// All that there are.
    pub all: usize,
}

/// Where places are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Streams of connections that carry several, whatever they ask for.
    Streams,
    /// Requests to a backend whose bodies are still to come.
    Uploads(usize),
}

/// The clients that are counted as one: an address, or the half of one that a network of IPv6 has in common.
type Key = (Scope, IpAddr);

thread_local! {
    static LANES: RefCell<BTreeMap<Key, Rc<Lane>>> = const { RefCell::new(BTreeMap::new()) };
    /// Streams at work, of all addresses ([`Scope::Streams`]).
    static STREAMS: Cell<usize> = const { Cell::new(0) };
}

/// Streams of one address in one scope.
struct Lane {
    key: Key,
    open: Cell<usize>,
    /// Of the stream that has asked last.
    limit: Cell<Limit>,
    waiting: RefCell<VecDeque<Rc<Waiter>>>,
    /// Entries of `waiting` whose stream has left.
    left: Cell<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waits,
    Granted,
    Left,
}

struct Waiter {
    phase: Cell<Phase>,
    waker: Cell<Option<Waker>>,
}

/// A handle of a lane, which is forgotten with the last one.
pub struct Member(Rc<Lane>);

/// One stream at work. Dropping it lets the next one of its address begin.
pub struct Place(Member);

/// A stream that waits for its turn.
pub struct Turn {
    member: Member,
    waiter: Rc<Waiter>,
}

/// The answer to a stream that asks for a place.
pub enum Entrance {
    /// It begins.
    Begins(Place),
    /// It waits.
    Waits(Turn),
    /// As many wait as may be at work.
    Full,
}

/// The limit of streams of an address at work on one of `workers`: of the connections to servers that the process can have. All
/// are those of that worker.
pub fn streams_at_once(global: &Global, workers: usize) -> Limit {
    let half = (global.maxconn.min(PORTS) / 2).max(LEAST_IN_ALL);
    let least = (half as usize / workers.max(1)).max(LEAST);
    Limit { least, all: 2 * least }
}

/// The limit of uploads of an address at work on one of `workers`: of the sum of the servers' `maxconn`. `None`: a server has no `maxconn`.
pub fn uploads_at_once(backend: &Backend, workers: usize) -> Option<Limit> {
    let all = backend.servers.iter().try_fold(0_usize, |all, server| Some(all + server.maxconn? as usize))?;
    Some(Limit { least: (all / 2 / workers.max(1)).max(1), all })
}

impl Limit {
    /// Whether an address that has `own` of the `used` places may take another one beyond its half: it leaves as many free as the others
    /// have, so that they may become twice as many, and a few where there are none.
    pub fn leaves_room(self, used: usize, own: usize) -> bool {
        let reserve = used.saturating_sub(own).max(self.all / RESERVE).max(1);
        used.saturating_add(reserve) < self.all
    }
}

/// The part of an address that identifies a client: of IPv6, the network of 64 bits.
fn origin(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

impl Member {
    /// The streams of an address.
    pub fn of(scope: Scope, address: SocketAddr) -> Self {
        let key = (scope, origin(address));
        let new = || {
            let (waiting, left) = (RefCell::default(), Cell::new(0));
            Rc::new(Lane { key, open: Cell::new(0), limit: Cell::default(), waiting, left })
        };
        Self(LANES.with_borrow_mut(|lanes| Rc::clone(lanes.entry(key).or_insert_with(new))))
    }

    fn share(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    /// Streams at work.
    pub fn open(&self) -> usize {
        self.0.open.get()
    }

    /// A stream begins, however many are at work.
    pub fn begin(&self) -> Place {
        self.0.add();
        Place(self.share())
    }

    /// A stream begins where the limit allows it, and else waits where fewer than the least of that do.
    pub fn enter(&self, limit: Limit) -> Entrance {
        match self.begin_or_wait(limit, || limit.leaves_room(STREAMS.get(), self.open())) {
            Ok(place) => Entrance::Begins(place),
            Err(wait) if self.waiting() < limit.least => Entrance::Waits(wait()),
            Err(_) => Entrance::Full,
        }
    }

    /// A stream begins where fewer than the least of the limit are at work, or if others leave room and nothing waits. Else it waits for
    /// its turn.
    pub fn begin_or_wait(&self, limit: Limit, has_room: impl FnOnce() -> bool) -> Result<Place, impl FnOnce() -> Turn> {
        if self.open() < limit.least || self.waiting() == 0 && has_room() {
            return Ok(self.begin());
        }
        Err(move || {
            let waiter = Rc::new(Waiter { phase: Cell::new(Phase::Waits), waker: Cell::new(None) });
            self.0.limit.set(limit);
            self.0.waiting.borrow_mut().push_back(Rc::clone(&waiter));
            Turn { member: self.share(), waiter }
        })
    }

    fn waiting(&self) -> usize {
        self.0.waiting.borrow().len() - self.0.left.get()
    }
}

impl Lane {
    fn add(&self) {
        self.open.set(self.open.get() + 1);
        if self.key.0 == Scope::Streams {
            STREAMS.set(STREAMS.get() + 1);
        }
    }

    fn subtract(&self) {
        self.open.set(self.open.get() - 1);
        if self.key.0 == Scope::Streams {
            STREAMS.set(STREAMS.get() - 1);
        }
    }

    /// The first stream that waits. Those that have left before it are forgotten.
    fn next(&self) -> Option<Rc<Waiter>> {
        let mut waiting = self.waiting.borrow_mut();
        while let Some(waiter) = waiting.front() {
            if waiter.phase.get() == Phase::Waits {
                return Some(Rc::clone(waiter));
            }
            self.left.set(self.left.get() - 1);
            waiting.pop_front();
        }
        None
    }

    /// The first stream that waits looks whether it may begin.
    fn wake_next(&self) {
        if let Some(waker) = self.next().and_then(|next| next.waker.take()) {
            waker.wake();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The map has one as well.
        if Rc::strong_count(&self.0) == 2 {
            // Threads that end have dropped the map.
            let _ = LANES.try_with(|lanes| lanes.try_borrow_mut().map(|mut lanes| lanes.remove(&self.0.key)));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let lane = &self.0.0;
        lane.subtract();
        if lane.waiting.borrow().is_empty() {
            return;
        }
        // An address that has more than its half gets no place for the one that it gives back while others have some: the next one looks
        // whether they leave room.
        let is_alone = lane.key.0 == Scope::Streams && STREAMS.get() == lane.open.get();
        if (lane.open.get() < lane.limit.get().least || is_alone)
            && let Some(next) = lane.next()
        {
            lane.waiting.borrow_mut().pop_front();
            lane.add();
            next.phase.set(Phase::Granted);
            if let Some(waker) = next.waker.take() {
                waker.wake();
            }
        }
        lane.wake_next();
    }
}

impl Turn {
    /// Ready with the place once it is this stream's turn, or if it is the first that waits and others leave room. After that it
    /// stays pending for ever.
    fn poll(&self, cx: &Context<'_>, has_room: impl FnOnce(&Self) -> bool) -> Poll<Place> {
        if self.waiter.phase.get() == Phase::Granted {
            self.waiter.phase.set(Phase::Left);
            return Poll::Ready(Place(self.member.share()));
        }
        self.waiter.waker.set(Some(cx.waker().clone()));
        if !(self.is_next() && has_room(self)) {
            return Poll::Pending;
        }
        self.member.0.waiting.borrow_mut().pop_front();
        self.waiter.phase.set(Phase::Left);
        let place = self.member.begin();
        self.member.0.wake_next();
        Poll::Ready(place)
    }

    /// Whether no other one waits before it.
    fn is_next(&self) -> bool {
        self.member.0.next().is_some_and(|next| Rc::ptr_eq(&next, &self.waiter))
    }

    /// Waits for the place. `has_room`: whether others leave room, which the first that waits asks now and then; `look` is its timer.
    pub fn poll_place(
        &self,
        cx: &mut Context<'_>,
        look: &mut rt::Timer,
        has_room: impl FnOnce(&Self) -> bool,
    ) -> Poll<Place> {
        let polled = self.poll(cx, has_room);
        if polled.is_pending() && self.is_next() {
            look.arm(Some(rt::now() + LOOK));
            if look.poll_expired(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        polled
    }

    /// The limit that it waits under.
    pub fn limit(&self) -> Limit {
        self.member.0.limit.get()
    }

    /// Places that its address has.
    pub fn own(&self) -> usize {
        self.member.open()
    }

    /// Whether streams of other addresses leave room for it ([`Scope::Streams`]).
    pub fn has_room_for_stream(&self) -> bool {
        self.limit().leaves_room(STREAMS.get(), self.own())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        match self.waiter.phase.replace(Phase::Left) {
            Phase::Granted => drop(Place(self.member.share())),
            Phase::Waits => {
                let lane = &self.member.0;
                let mut waiting = lane.waiting.borrow_mut();
                let was_first = waiting.front().is_some_and(|first| Rc::ptr_eq(first, &self.waiter));
                lane.left.set(lane.left.get() + 1);
                if 2 * lane.left.get() > waiting.len() {
                    waiting.retain(|waiter| waiter.phase.get() != Phase::Left);
                    lane.left.set(0);
                }
                drop(waiting);
                if was_first {
                    lane.wake_next();
                }
            }
            Phase::Left => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(address: &str) -> Member {
        Member::of(Scope::Streams, address.parse().unwrap())
    }

    /// No place but the least.
    fn limit(least: usize) -> Limit {
        Limit { least, all: 0 }
    }

    fn place(member: &Member, most: usize) -> Option<Place> {
        match member.enter(limit(most)) {
            Entrance::Begins(place) => Some(place),
            Entrance::Waits(_) | Entrance::Full => None,
        }
    }

    fn turn(member: &Member, most: usize) -> Option<Turn> {
        match member.enter(limit(most)) {
            Entrance::Waits(turn) => Some(turn),
            Entrance::Begins(_) | Entrance::Full => None,
        }
    }

    fn granted(turn: &Turn) -> Option<Place> {
        match turn.poll(&Context::from_waker(Waker::noop()), Turn::has_room_for_stream) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_address_waits_for_itself() {
        let (greedy, other) = (member("10.0.0.1:1"), member("10.0.0.2:1"));
        let mut places: Vec<_> = (0..3).map(|_| place(&greedy, 3).unwrap()).collect();
        let turns: Vec<_> = (0..3).map(|_| turn(&greedy, 3).unwrap()).collect();
        assert!(matches!(greedy.enter(limit(3)), Entrance::Full));
        assert!(place(&other, 3).is_some());
        // Ports make no difference. Streams that begin without asking count.
        assert!(place(&member("10.0.0.1:2"), 3).is_none());
        places.push(greedy.begin());
        assert!(turns.iter().all(|turn| granted(turn).is_none()));
        drop(places.pop());
        assert!(granted(&turns[1]).is_none());
        places.push(granted(&turns[0]).unwrap());
        assert!(granted(&turns[0]).is_none());
        // What leaves before its turn or without having taken it is passed over.
        let mut turns = turns.into_iter().skip(1);
        drop(turns.next());
        drop(places);
        let last = turns.next().unwrap();
        assert_eq!(greedy.open(), 1);
        drop(last);
        assert_eq!(greedy.open(), 0);
    }

    #[test]
    fn nothing_is_kept_of_those_that_have_left() {
        let greedy = member("10.0.0.3:1");
        let first = place(&greedy, 1).unwrap();
        for _ in 0..1000 {
            drop(turn(&greedy, 1).unwrap());
            assert!(greedy.0.waiting.borrow().len() < 2);
        }
        drop((greedy, first));
        assert!(LANES.with_borrow(|lanes| !lanes.contains_key(&(Scope::Streams, "10.0.0.3".parse().unwrap()))));
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let first = member("[2001:db8:1:2::1]:1");
        let _place = place(&first, 1).unwrap();
        assert!(place(&member("[2001:db8:1:2:ffff::9]:1"), 1).is_none());
        assert!(place(&member("[2001:db8:1:3::1]:1"), 1).is_some());
        assert_eq!(origin("[::ffff:10.0.0.1]:1".parse().unwrap()), "10.0.0.1".parse::<IpAddr>().unwrap());
    }

    /// Beyond a half, an address gets what others leave, and leaves them as much as they have.
    #[test]
    fn an_address_gets_what_others_leave() {
        const LIMIT: Limit = Limit { least: 50, all: 100 };
        let (greedy, other) = (member("10.0.0.4:1"), member("10.0.0.5:1"));
        let begin = |member: &Member| match member.enter(LIMIT) {
            Entrance::Begins(place) => Some(place),
            Entrance::Waits(_) | Entrance::Full => None,
        };
        let mut others: Vec<_> = (0..10).map(|_| begin(&other).unwrap()).collect();
        let mut places: Vec<_> = std::iter::from_fn(|| begin(&greedy)).collect();
        assert_eq!(places.len(), 80);
        let Entrance::Waits(turn) = greedy.enter(LIMIT) else { panic!("it waits") };
        // Others begin as before: what ends beyond the half goes to them.
        others.extend((0..20).map(|_| begin(&other).unwrap()));
        places.truncate(60);
        assert!(granted(&turn).is_none());
        others.truncate(4);
        places.push(granted(&turn).unwrap());
        // Nothing beside it: it leaves a few.
        drop(others);
        places.extend(std::iter::from_fn(|| begin(&greedy)));
        assert_eq!(places.len(), 94);
    }
}
