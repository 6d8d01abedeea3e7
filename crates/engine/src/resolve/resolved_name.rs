//! One name that is resolved periodically: its answers, the servers that use its addresses, the tasks that wait for it. Must
//! never send a query.

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::Duration;

use base::moment::Moment;
use live::ServerPlace;
use policy::program::AddressChoice;
use policy::resolve::{Addresses, Services, SrvTarget};
use wire::dns::Name;

/// A name to resolve, and the preferred address family.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub name: Name,
    /// For addresses: IPv4 is queried first.
    pub prefers_ipv4: bool,
}

impl Question {
    pub(super) fn new(name: &Name, choice: &AddressChoice) -> Self {
        Self { name: name.clone(), prefers_ipv4: choice.prefers_ipv4 && !name.is_service() }
    }

    pub(super) fn choice(&self) -> AddressChoice {
        AddressChoice { prefers_ipv4: self.prefers_ipv4, ..AddressChoice::default() }
    }
}

/// A server that uses the addresses or services of a name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Follower {
    pub member: ServerPlace,
    /// The SRV target that is assigned to it.
    pub place: Option<SrvTarget>,
    /// It follows the host of that target by a query of its own, because the answer contained no address.
    pub follows_host: bool,
}

/// Results of the resolutions of a name.
#[derive(Debug, Default)]
pub(super) struct NameRecords {
    pub addresses: Addresses,
    pub services: Services,
    /// Time of the last valid answer; initially the start of resolving.
    pub valid: Moment,
    /// End of the last resolution, and whether it succeeded.
    pub ended: Option<(Moment, bool)>,
}

/// A name and its state.
pub(super) struct Followed {
    pub question: Question,
    pub known: RefCell<NameRecords>,
    pub followers: RefCell<Vec<Follower>>,
    waiting: RefCell<Vec<Waker>>,
    /// Number of resolutions that have ended.
    pub rounds: Cell<u64>,
    /// A task resolves the name.
    pub is_running: Cell<bool>,
    hurries: Cell<bool>,
    is_over: Cell<bool>,
    sleeper: Cell<Option<Waker>>,
}

impl Followed {
    pub(super) fn new(question: Question) -> Self {
        Self {
            question,
            known: RefCell::new(NameRecords { valid: rt::now(), ..NameRecords::default() }),
            followers: RefCell::default(),
            waiting: RefCell::default(),
            rounds: Cell::new(0),
            is_running: Cell::new(false),
            hurries: Cell::new(false),
            is_over: Cell::new(false),
            sleeper: Cell::default(),
        }
    }

    /// Whether no server follows the name, no task resolves it, and its answers have expired.
    pub(super) fn is_stale(&self, valid: Duration) -> bool {
        let fresh = |(ended, good)| good && rt::now().saturating_since(ended) < valid;
        !self.is_running.get() && self.followers.borrow().is_empty() && !self.known.borrow().ended.is_some_and(fresh)
    }

    /// Starts the next resolution at once.
    pub(super) fn hurry(&self) {
        self.hurries.set(true);
        if let Some(waker) = self.sleeper.take() {
            waker.wake();
        }
    }

    /// Stops resolving the name.
    pub(super) fn give_up(&self) {
        self.is_over.set(true);
        self.hurry();
    }

    /// Whether the name need not be resolved again.
    pub(super) fn is_done(&self) -> bool {
        self.is_over.get() || (self.followers.borrow().is_empty() && !self.hurries.get())
    }

    /// Waits until the next resolution is due, or requested at once.
    pub(super) async fn sleep(&self, until: Moment) {
        let mut timer = rt::Timer::new();
        timer.arm(Some(until));
        std::future::poll_fn(|cx| {
            if self.hurries.get() {
                return std::task::Poll::Ready(());
            }
            self.sleeper.set(Some(cx.waker().clone()));
            timer.poll_expired(cx)
        })
        .await;
        self.sleeper.take();
    }

    /// Marks the start of a resolution.
    pub(super) fn begin(&self) {
        self.hurries.set(false);
    }

    /// Marks the end of a resolution, and wakes the waiting tasks.
    pub(super) fn end(&self) {
        self.rounds.set(self.rounds.get() + 1);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// Waits for the end of the current resolution.
    pub(super) async fn ended(&self) {
        let before = self.rounds.get();
        std::future::poll_fn(|cx| {
            if self.rounds.get() != before {
                return std::task::Poll::Ready(());
            }
            self.waiting.borrow_mut().push(cx.waker().clone());
            std::task::Poll::Pending
        })
        .await;
    }
}
