//! Limits the number of concurrently active streams per client address, and orders those that wait. An address with
//! many streams thus waits for its own streams, and leaves places to other addresses. Above its half of all places, it
//! gets only what others leave free. Must never end a stream that has begun.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use policy::program::{Backend, Global};

/// Approximate number of connections that a machine can make to one address of a server: its number of local ports.
const PORTS: u32 = 28_000;
/// Minimum number of active streams per address and worker, regardless of `maxconn` of the process.
const LEAST: usize = 64;
/// Minimum number of active streams per address on all workers together.
const LEAST_IN_ALL: u32 = 256;

/// Divisor: an address above its half leaves at least this fraction of all places free.
const RESERVE: usize = 16;
/// Interval at which the first waiting stream checks whether other addresses have left a place.
const LOOK: Duration = Duration::from_millis(20);

/// Number of places that an address may take on one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
    /// Number of places that it always gets: half of all, divided by the number of workers.
    pub least: usize,
    /// Number of all places.
    pub all: usize,
}

/// Scope in which places are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Streams of multiplexed connections, for any backend.
    Streams,
    /// Requests to a backend (its index) whose bodies are not complete yet.
    Uploads(usize),
}

/// The clients that are counted as one: an IPv4 address, or the /64 network of an IPv6 address.
type Key = (Scope, IpAddr);

thread_local! {
    static LANES: RefCell<BTreeMap<Key, Rc<Lane>>> = const { RefCell::new(BTreeMap::new()) };
    /// Number of active streams of all addresses ([`Scope::Streams`]).
    static STREAMS: Cell<usize> = const { Cell::new(0) };
}

/// Streams of one address in one scope.
struct Lane {
    key: Key,
    open: Cell<usize>,
    /// Limit of the stream that last had to wait.
    limit: Cell<Limit>,
    waiting: RefCell<VecDeque<Rc<Waiter>>>,
    /// Number of entries in `waiting` whose stream has left.
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

/// A reference to a lane, which is removed with its last reference.
pub struct Member(Rc<Lane>);

/// Place of an active stream. Dropping it admits the next one of its address.
pub struct Place(Member);

/// A stream that waits for a place.
pub struct QueuedStream {
    member: Member,
    waiter: Rc<Waiter>,
}

/// Result of a request for a place.
pub enum PlaceResult {
    /// The stream is admitted.
    Begins(Place),
    /// The stream waits.
    Waits(QueuedStream),
    /// The queue is full: the number of waiting streams equals [`Limit::least`].
    Full,
}

/// Returns the limit of concurrently active streams per address on one of `workers`, derived from the number of server
/// connections that the process can have. `all` is per worker.
pub fn streams_at_once(global: &Global, workers: usize) -> Limit {
    let half = (global.maxconn.min(PORTS) / 2).max(LEAST_IN_ALL);
    let least = (half as usize / workers.max(1)).max(LEAST);
    Limit { least, all: 2 * least }
}

/// Returns the limit of concurrent uploads per address on one of `workers`, derived from the sum of the servers'
/// `maxconn`. `None`: a server has no `maxconn`.
pub fn uploads_at_once(backend: &Backend, workers: usize) -> Option<Limit> {
    let all = backend.servers.iter().try_fold(0_usize, |all, server| Some(all + server.maxconn? as usize))?;
    Some(Limit { least: (all / 2 / workers.max(1)).max(1), all })
}

impl Limit {
    /// Whether an address with `own` of the `used` places may take another one above its half. It must leave free as
    /// many as the others have, so that they can double, and at least a sixteenth of all.
    pub fn leaves_room(self, used: usize, own: usize) -> bool {
        let reserve = used.saturating_sub(own).max(self.all / RESERVE).max(1);
        used.saturating_add(reserve) < self.all
    }
}

/// Returns the part of an address that identifies a client: for IPv6, the /64 network.
fn origin(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

impl Member {
    /// Returns the lane of an address.
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

    /// Returns the number of active streams.
    pub fn open(&self) -> usize {
        self.0.open.get()
    }

    /// Admits a stream unconditionally.
    pub fn begin(&self) -> Place {
        self.0.add();
        Place(self.share())
    }

    /// Admits a stream if the limit allows it; otherwise lets it wait if fewer than [`Limit::least`] are waiting.
    pub fn enter(&self, limit: Limit) -> PlaceResult {
        match self.begin_or_wait(limit, || limit.leaves_room(STREAMS.get(), self.open())) {
            Ok(place) => PlaceResult::Begins(place),
            Err(wait) if self.waiting() < limit.least => PlaceResult::Waits(wait()),
            Err(_) => PlaceResult::Full,
        }
    }

    /// Admits a stream if fewer than [`Limit::least`] are active, or if others leave capacity and none is waiting. The
    /// error creates its turn in the queue.
    pub fn begin_or_wait(
        &self,
        limit: Limit,
        has_room: impl FnOnce() -> bool,
    ) -> Result<Place, impl FnOnce() -> QueuedStream> {
        if self.open() < limit.least || self.waiting() == 0 && has_room() {
            return Ok(self.begin());
        }
        Err(move || {
            let waiter = Rc::new(Waiter { phase: Cell::new(Phase::Waits), waker: Cell::new(None) });
            self.0.limit.set(limit);
            self.0.waiting.borrow_mut().push_back(Rc::clone(&waiter));
            QueuedStream { member: self.share(), waiter }
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

    /// Returns the first waiting stream. Removes the entries before it whose streams have left.
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

    /// Wakes the first waiting stream to check whether it may begin.
    fn wake_next(&self) {
        if let Some(waker) = self.next().and_then(|next| next.waker.take()) {
            waker.wake();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The map holds a reference as well.
        if Rc::strong_count(&self.0) == 2 {
            // A thread that ends has dropped the map.
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
        // Above its half, an address does not get back the place that it releases while others have some: its next
        // stream checks whether they leave capacity.
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

impl QueuedStream {
    /// Ready with the place once it is granted, or if this stream is the first that waits and others leave capacity.
    /// After that it stays pending.
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

    /// Whether it is the first that waits.
    fn is_next(&self) -> bool {
        self.member.0.next().is_some_and(|next| Rc::ptr_eq(&next, &self.waiter))
    }

    /// Waits for the place. `has_room`: whether others leave capacity, which the first waiting stream checks
    /// periodically with the timer `look`.
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

    /// Returns the limit under which it waits.
    pub fn limit(&self) -> Limit {
        self.member.0.limit.get()
    }

    /// Returns the number of places that its address has.
    pub fn own(&self) -> usize {
        self.member.open()
    }

    /// Whether streams of other addresses leave capacity for it ([`Scope::Streams`]).
    pub fn has_room_for_stream(&self) -> bool {
        self.limit().leaves_room(STREAMS.get(), self.own())
    }
}

impl Drop for QueuedStream {
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

    /// A limit without places above the least.
    fn limit(least: usize) -> Limit {
        Limit { least, all: 0 }
    }

    fn place(member: &Member, most: usize) -> Option<Place> {
        match member.enter(limit(most)) {
            PlaceResult::Begins(place) => Some(place),
            PlaceResult::Waits(_) | PlaceResult::Full => None,
        }
    }

    fn turn(member: &Member, most: usize) -> Option<QueuedStream> {
        match member.enter(limit(most)) {
            PlaceResult::Waits(turn) => Some(turn),
            PlaceResult::Begins(_) | PlaceResult::Full => None,
        }
    }

    fn granted(turn: &QueuedStream) -> Option<Place> {
        match turn.poll(&Context::from_waker(Waker::noop()), QueuedStream::has_room_for_stream) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_address_waits_for_itself() {
        let (greedy, other) = (member("10.0.0.1:1"), member("10.0.0.2:1"));
        let mut places: Vec<_> = (0..3).map(|_| place(&greedy, 3).unwrap()).collect();
        let turns: Vec<_> = (0..3).map(|_| turn(&greedy, 3).unwrap()).collect();
        assert!(matches!(greedy.enter(limit(3)), PlaceResult::Full));
        assert!(place(&other, 3).is_some());
        // The port is not part of the key. Unconditionally admitted streams count.
        assert!(place(&member("10.0.0.1:2"), 3).is_none());
        places.push(greedy.begin());
        assert!(turns.iter().all(|turn| granted(turn).is_none()));
        drop(places.pop());
        assert!(granted(&turns[1]).is_none());
        places.push(granted(&turns[0]).unwrap());
        assert!(granted(&turns[0]).is_none());
        // A stream that leaves before its turn, or without having taken it, is skipped.
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

    /// Above its half, an address gets what others leave, and leaves them as much as they have.
    #[test]
    fn an_address_gets_what_others_leave() {
        const LIMIT: Limit = Limit { least: 50, all: 100 };
        let (greedy, other) = (member("10.0.0.4:1"), member("10.0.0.5:1"));
        let begin = |member: &Member| match member.enter(LIMIT) {
            PlaceResult::Begins(place) => Some(place),
            PlaceResult::Waits(_) | PlaceResult::Full => None,
        };
        let mut others: Vec<_> = (0..10).map(|_| begin(&other).unwrap()).collect();
        let mut places: Vec<_> = std::iter::from_fn(|| begin(&greedy)).collect();
        assert_eq!(places.len(), 80);
        let PlaceResult::Waits(turn) = greedy.enter(LIMIT) else { panic!("it waits") };
        // Others are admitted as before: places released above the half go to them.
        others.extend((0..20).map(|_| begin(&other).unwrap()));
        places.truncate(60);
        assert!(granted(&turn).is_none());
        others.truncate(4);
        places.push(granted(&turn).unwrap());
        // Without other addresses, it leaves a few places free.
        drop(others);
        places.extend(std::iter::from_fn(|| begin(&greedy)));
        assert_eq!(places.len(), 94);
    }
}
