//! Streams of one address that are at work at a time: how many there may be, and in which order others of it begin. So an address that
//! asks for as much as it can waits for itself, and leaves places to others. Must never end a stream that has begun.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use policy::program::{Backend, Global};

/// Connections to one address of a server that a machine can make, about: as many as it has local ports.
const PORTS: u32 = 28_000;
/// Streams of an address that may be at work on a worker, however few connections the process takes.
const LEAST: usize = 64;
/// The same for all workers together.
const LEAST_IN_ALL: u32 = 256;

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
}

/// Streams of one address in one scope.
struct Lane {
    key: Key,
    open: Cell<usize>,
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

/// The limit of streams of an address at work on one worker: half of the connections to servers that the process can have, divided by
/// `workers`.
pub fn streams_at_once(global: &Global, workers: usize) -> usize {
    let all = (global.maxconn.min(PORTS) / 2).max(LEAST_IN_ALL);
    (all as usize / workers.max(1)).max(LEAST)
}

/// The limit of uploads of an address at work on one worker: half of the sum of the servers' `maxconn`, divided by `workers`. `None`: a server
/// has no `maxconn`.
pub fn uploads_at_once(backend: &Backend, workers: usize) -> Option<usize> {
    let all = backend.servers.iter().try_fold(0_usize, |all, server| Some(all + server.maxconn? as usize))?;
    Some((all / 2 / workers.max(1)).max(1))
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
        let new = || Rc::new(Lane { key, open: Cell::new(0), waiting: RefCell::default(), left: Cell::new(0) });
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
        self.0.open.set(self.0.open.get() + 1);
        Place(self.share())
    }

    /// A stream begins where fewer than `most` are at work, and else waits where fewer than that do.
    pub fn enter(&self, most: usize) -> Entrance {
        match self.begin_or_wait(most) {
            Ok(place) => Entrance::Begins(place),
            Err(wait) if self.waiting() < most => Entrance::Waits(wait()),
            Err(_) => Entrance::Full,
        }
    }

    /// A stream begins where fewer than `most` are at work, and else waits for its turn.
    pub fn begin_or_wait(&self, most: usize) -> Result<Place, impl FnOnce() -> Turn> {
        if self.0.open.get() < most {
            return Ok(self.begin());
        }
        Err(|| {
            let waiter = Rc::new(Waiter { phase: Cell::new(Phase::Waits), waker: Cell::new(None) });
            self.0.waiting.borrow_mut().push_back(Rc::clone(&waiter));
            Turn { member: self.share(), waiter }
        })
    }

    fn waiting(&self) -> usize {
        self.0.waiting.borrow().len() - self.0.left.get()
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
        let next = loop {
            let next = lane.waiting.borrow_mut().pop_front();
            match next {
                Some(waiter) if waiter.phase.get() == Phase::Left => lane.left.set(lane.left.get() - 1),
                other => break other,
            }
        };
        match next {
            Some(waiter) => {
                waiter.phase.set(Phase::Granted);
                if let Some(waker) = waiter.waker.take() {
                    waker.wake();
                }
            }
            None => lane.open.set(lane.open.get() - 1),
        }
    }
}

impl Turn {
    /// Ready with the place once it is this stream's turn. After that it stays pending for ever.
    pub fn poll(&self, cx: &Context<'_>) -> Poll<Place> {
        if self.waiter.phase.get() == Phase::Granted {
            self.waiter.phase.set(Phase::Left);
            return Poll::Ready(Place(self.member.share()));
        }
        self.waiter.waker.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        match self.waiter.phase.replace(Phase::Left) {
            Phase::Granted => drop(Place(self.member.share())),
            Phase::Waits => {
                let lane = &self.member.0;
                let (left, mut waiting) = (lane.left.get() + 1, lane.waiting.borrow_mut());
                lane.left.set(left);
                if 2 * left > waiting.len() {
                    waiting.retain(|waiter| waiter.phase.get() != Phase::Left);
                    lane.left.set(0);
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

    fn place(member: &Member, most: usize) -> Option<Place> {
        match member.enter(most) {
            Entrance::Begins(place) => Some(place),
            Entrance::Waits(_) | Entrance::Full => None,
        }
    }

    fn turn(member: &Member, most: usize) -> Option<Turn> {
        match member.enter(most) {
            Entrance::Waits(turn) => Some(turn),
            Entrance::Begins(_) | Entrance::Full => None,
        }
    }

    fn granted(turn: &Turn) -> Option<Place> {
        match turn.poll(&Context::from_waker(Waker::noop())) {
            Poll::Ready(place) => Some(place),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_address_waits_for_itself() {
        let (greedy, other) = (member("10.0.0.1:1"), member("10.0.0.2:1"));
        let mut places: Vec<_> = (0..3).map(|_| place(&greedy, 3).unwrap()).collect();
        let turns: Vec<_> = (0..3).map(|_| turn(&greedy, 3).unwrap()).collect();
        assert!(matches!(greedy.enter(3), Entrance::Full));
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
}
