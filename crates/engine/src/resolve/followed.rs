//! One name that is followed: what is known of it, which servers take their addresses from it, who waits for it. Must never
//! ask for it.

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::Duration;

use base::moment::Moment;
use policy::program::AddressChoice;
use policy::resolve::{Addresses, Services, SrvTarget};
use wire::dns::Name;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question {
    pub name: Name,
    /// Of addresses: IPv4 first.
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

/// A server that follows a name: its proxy's index and its own.
pub(super) type Member = (usize, usize);

/// A server that follows a service.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Follower {
    pub member: Member,
    /// What it stands for.
    pub place: Option<SrvTarget>,
    /// It follows the host of that place, whose address did not come along.
    pub follows_host: bool,
}

/// What is known of a name.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub addresses: Addresses,
    pub services: Services,
    /// When a good answer came last; at first, when following began.
    pub valid: Moment,
    /// When a resolution ended last, and whether it was good.
    pub ended: Option<(Moment, bool)>,
}

/// One name.
pub(super) struct Followed {
    pub question: Question,
    pub known: RefCell<Known>,
    pub followers: RefCell<Vec<Follower>>,
    waiting: RefCell<Vec<Waker>>,
    /// Resolutions that have ended.
    pub rounds: Cell<u64>,
    /// A task is at work.
    pub is_running: Cell<bool>,
    hurries: Cell<bool>,
    is_over: Cell<bool>,
    sleeper: Cell<Option<Waker>>,
}

impl Followed {
    pub(super) fn new(question: Question) -> Self {
        Self {
            question,
            known: RefCell::new(Known { valid: rt::now(), ..Known::default() }),
            followers: RefCell::default(),
            waiting: RefCell::default(),
            rounds: Cell::new(0),
            is_running: Cell::new(false),
            hurries: Cell::new(false),
            is_over: Cell::new(false),
            sleeper: Cell::default(),
        }
    }

    /// It is not asked for, and its answers have expired.
    pub(super) fn is_stale(&self, valid: Duration) -> bool {
        let fresh = |(ended, good)| good && rt::now().saturating_since(ended) < valid;
        !self.is_running.get() && self.followers.borrow().is_empty() && !self.known.borrow().ended.is_some_and(fresh)
    }

    /// The next resolution begins now.
    pub(super) fn hurry(&self) {
        self.hurries.set(true);
        if let Some(waker) = self.sleeper.take() {
            waker.wake();
        }
    }

    /// It is not asked for again.
    pub(super) fn give_up(&self) {
        self.is_over.set(true);
        self.hurry();
    }

    /// Whether it need not be resolved again.
    pub(super) fn is_done(&self) -> bool {
        self.is_over.get() || (self.followers.borrow().is_empty() && !self.hurries.get())
    }

    /// Waits until it is due, or until a request asks for it at once.
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

    /// A resolution begins.
    pub(super) fn begin(&self) {
        self.hurries.set(false);
    }

    /// It has ended.
    pub(super) fn end(&self) {
        self.rounds.set(self.rounds.get() + 1);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// Waits for the end of the resolution under way.
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
