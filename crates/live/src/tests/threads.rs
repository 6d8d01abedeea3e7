//! Threads that assign, wait, give up and release as fast as they can. A waiting thread is woken or fails after a long
//! time: the timeout detects lost wake-ups, nothing is measured.

use super::*;
use balance::Load;
use config::spec::{HashAffinity, HashMethod, HashSpec};
use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::{Duration, Instant};

const LOST: Duration = Duration::from_secs(20);

/// Wakes a thread.
struct Unpark(thread::Thread, AtomicUsize);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, SeqCst);
        self.0.unpark();
    }
}

fn waker() -> (Arc<Unpark>, Waker) {
    let unpark = Arc::new(Unpark(thread::current(), AtomicUsize::new(0)));
    (Arc::clone(&unpark), Waker::from(unpark))
}

fn wait_for<T>(mut ready: impl FnMut(&Waker) -> Option<T>) -> T {
    let start = Instant::now();
    let (unpark, waker) = waker();
    let mut seen = 0;
    loop {
        if let Some(value) = ready(&waker) {
            return value;
        }
        // Polls again only when woken: polling speculatively would hide a lost wake-up.
        while unpark.1.load(SeqCst) == seen {
            assert!(start.elapsed() < LOST, "a wake-up was lost");
            thread::park_timeout(Duration::from_millis(100));
        }
        seen = unpark.1.load(SeqCst);
    }
}

#[derive(Default)]
struct ObjectCounters {
    queued: AtomicU32,
    granted: AtomicU32,
    given_up: AtomicU32,
    refused: AtomicU32,
    served: AtomicU32,
}

struct Hammer {
    state: Arc<ProxyState>,
    plans: Vec<Plan>,
    /// By server: the number of slots held, by a separate count that never exceeds the real one.
    busy: Vec<AtomicU32>,
    counters: ObjectCounters,
}

impl Hammer {
    fn new(balance: BalanceSpec, plans: &[Plan]) -> Self {
        let busy = plans.iter().map(|_| AtomicU32::new(0)).collect();
        Self { state: farm(balance, plans), plans: plans.to_vec(), busy, counters: ObjectCounters::default() }
    }

    /// With limits between 1 and `maxconn`, which is reached at `fullconn` requests.
    fn following_the_load(balance: BalanceSpec, plans: &[Plan], fullconn: u32) -> Self {
        let mut proxy = plan(balance.clone(), plans);
        proxy.fullconn = fullconn;
        proxy.servers.iter_mut().for_each(|server| follow_load(server, 1));
        Self { state: state_of(proxy), ..Self::new(balance, plans) }
    }

    fn serve(&self, slot: ServerSlot, dice: &mut Dice) {
        let server = slot.server();
        let busy = self.busy[server].fetch_add(1, SeqCst) + 1;
        let Plan(_, maxconn, _) = self.plans[server];
        assert!(maxconn == 0 || busy <= maxconn, "{busy} at server {server} with maxconn {maxconn}");
        for _ in 0..dice.below(3) {
            thread::yield_now();
        }
        self.busy[server].fetch_sub(1, SeqCst);
        self.counters.served.fetch_add(1, SeqCst);
        if dice.below(2) == 0 {
            slot.release();
        }
    }

    fn request(&self, dice: &mut Dice) {
        let some_server = dice.below(self.plans.len());
        let context = PickContext {
            forced: false,
            priority: Priority::default(),
            hash: Some(dice.below(256) as u32),
            random: dice.0,
            exclude: (dice.below(5) == 0).then_some(some_server),
            server: (dice.below(4) == 0).then_some(some_server),
            prefer: (dice.below(4) == 0).then_some(Preference { server: some_server, waiting: dice.below(3) as u32 }),
        };
        match self.state.assign(&context) {
            Assignment::Slot(slot) => self.serve(slot, dice),
            Assignment::Queued(ticket) => self.wait(ticket, dice),
            Assignment::QueueFull => {
                self.counters.refused.fetch_add(1, SeqCst);
            }
            Assignment::Unavailable => panic!("there are servers"),
        }
    }

    fn wait(&self, mut ticket: QueueTicket, dice: &mut Dice) {
        self.counters.queued.fetch_add(1, SeqCst);
        // Some give up at once, some after a poll, some even when their slot may have been granted.
        let patience = dice.below(4);
        if patience < 2 {
            for _ in 0..patience * dice.below(20) {
                if let Some(slot) = poll(&mut ticket, Waker::noop()) {
                    self.counters.granted.fetch_add(1, SeqCst);
                    return self.serve(slot, dice);
                }
                thread::yield_now();
            }
            self.counters.given_up.fetch_add(1, SeqCst);
            return;
        }
        let slot = wait_for(|waker| poll(&mut ticket, waker));
        self.counters.granted.fetch_add(1, SeqCst);
        assert!(ticket.positions() != QueuePositions::default());
        self.serve(slot, dice);
    }

    fn run(&self, threads: u64, requests: u32) {
        thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    let mut dice = Dice(thread);
                    for _ in 0..requests {
                        self.request(&mut dice);
                    }
                });
            }
        });
        let count = |counter: &AtomicU32| counter.load(SeqCst);
        let ObjectCounters { queued, granted, given_up, refused, served } = &self.counters;
        assert_eq!(count(granted) + count(given_up), count(queued));
        assert_eq!(count(served) + count(given_up) + count(refused), threads as u32 * requests);
        assert!(count(queued) > 0, "nobody ever waited: the test shows nothing");
        for server in 0..self.plans.len() {
            assert_eq!(self.state.counts(Some(server)), Counts::default());
        }
        // All slots can be taken again.
        if let Some(Load { limit: 1, .. }) = self.state.load(0).map(|load| load.0).filter(|_| self.plans[0].1 > 1) {
            return;
        }
        let slots: u32 = self.plans.iter().map(|plan| plan.1).sum();
        let all: Vec<ServerSlot> = (0..slots).map(|_| slot(self.state.assign(&ANY))).collect();
        assert!(matches!(self.state.assign(&ANY), Assignment::Queued(_)));
        assert_eq!(all.len() as u32, slots);
    }
}

const ALGORITHMS: &[BalanceSpec] = &[
    BalanceSpec::RoundRobin,
    BalanceSpec::StaticRr,
    BalanceSpec::LeastConn,
    BalanceSpec::First,
    BalanceSpec::Source,
    BalanceSpec::Random { draws: 2 },
];

#[test]
fn no_slot_is_lost_or_given_twice() {
    for balance in ALGORITHMS {
        Hammer::new(balance.clone(), &[Plan(1, 1, 0), Plan(2, 2, 3), Plan(1, 1, 1)]).run(8, 1_500);
    }
}

#[test]
fn limits_that_follow_the_load_lose_nobody_and_are_never_exceeded() {
    for balance in ALGORITHMS {
        Hammer::following_the_load(balance.clone(), &[Plan(1, 3, 0), Plan(2, 4, 3), Plan(1, 2, 1)], 7).run(4, 2_000);
    }
}

#[test]
fn one_slot_for_all() {
    Hammer::new(BalanceSpec::RoundRobin, &[Plan(1, 1, 0)]).run(8, 3_000);
}

#[test]
fn limits_that_change_lose_nobody() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 2, 0), Plan(1, 2, 0)]);
    thread::scope(|scope| {
        for seed in 0..6 {
            let state = &state;
            scope.spawn(move || {
                let mut dice = Dice(seed);
                for _ in 0..1_500 {
                    let context = if dice.below(3) == 0 { bound(0) } else { ANY };
                    match state.assign(&context) {
                        Assignment::Slot(slot) => drop(slot),
                        Assignment::Queued(mut ticket) => drop(wait_for(|waker| poll(&mut ticket, waker))),
                        other => panic!("{other:?}"),
                    }
                }
            });
        }
        let mut dice = Dice(99);
        for _ in 0..2_000 {
            let server = dice.below(2);
            match dice.below(3) {
                0 => state.set_maxconn(server, Some(1 + dice.below(3) as u32)),
                1 => state.set_weight(server, 1 + dice.below(9) as u32),
                // The second server is never disabled, so that one is always available.
                _ => set_enabled(&state, 0, dice.below(2) == 0),
            }
        }
        set_enabled(&state, 0, true);
    });
    assert_eq!([0, 1].map(|server| state.counts(Some(server))), [Counts::default(); 2]);
}

#[test]
fn servers_that_come_and_go_lose_nobody_and_are_never_overloaded() {
    let consistent = HashSpec { method: HashMethod::Consistent, ..HashSpec::default() };
    let factor = HashSpec { balance_factor: Some(125), affinity: HashAffinity::Maxconn, ..consistent };
    for (balance, hash) in [
        (BalanceSpec::RoundRobin, HashSpec::default()),
        (BalanceSpec::LeastConn, HashSpec::default()),
        (BalanceSpec::Source, HashSpec::default()),
        (BalanceSpec::Source, consistent),
        (BalanceSpec::Source, factor),
        (BalanceSpec::Random { draws: 2 }, factor),
    ] {
        let mut proxy = plan(balance, &[Plan(3, 2, 0), Plan(2, 2, 0), Plan(1, 2, 0), Plan(1, 2, 0)]);
        proxy.hash = hash;
        proxy.servers[2].slowstart = Some(Duration::from_millis(20));
        proxy.servers[3].backup = true;
        let state = state_of(proxy);
        let inside: [AtomicU32; 4] = Default::default();
        thread::scope(|scope| {
            for seed in 0..4 {
                let (state, inside) = (&state, &inside);
                scope.spawn(move || {
                    let mut dice = Dice(seed);
                    for _ in 0..1_000 {
                        let context = PickContext { hash: Some(dice.0 as u32), random: dice.0, ..ANY };
                        let slot = match state.assign(&context) {
                            Assignment::Slot(slot) => slot,
                            Assignment::Queued(mut ticket) => wait_for(|waker| poll(&mut ticket, waker)),
                            other => panic!("{other:?}"),
                        };
                        let server = slot.server();
                        assert!(inside[server].fetch_add(1, SeqCst) < 2, "server {server} has more than its maxconn");
                        for _ in 0..dice.below(4) {
                            thread::yield_now();
                        }
                        inside[server].fetch_sub(1, SeqCst);
                        drop(slot);
                    }
                });
            }
            let mut dice = Dice(99);
            for step in 0..2_000 {
                let now = Moment::ZERO + Duration::from_millis(step);
                // The first server is kept, so that one is always available.
                let server = 1 + dice.below(3);
                match dice.below(4) {
                    0 => set_up(&state, server, dice.below(2) == 0, now),
                    1 => state.set_weight(server, dice.below(5) as u32),
                    2 => drop(state.advance(now)),
                    _ => drop(state.set_admin(
                        server,
                        [Admin::Ready, Admin::Drain, Admin::Maintenance][dice.below(3)],
                        now,
                    )),
                }
            }
        });
        for server in 0..4 {
            assert_eq!(state.counts(Some(server)), Counts::default());
        }
    }
}

#[test]
fn every_parked_worker_gets_in_and_never_too_many_at_once() {
    for (bound, workers, rounds) in [(1, 2, 20_000), (2, 6, 5_000)] {
        let process = Arc::new(ProcessState::new(bound, &RatesSpec::default(), None));
        let (inside, parked) = (AtomicU32::new(0), AtomicU32::new(0));
        let work = |worker: u64| {
            let mut dice = Dice(worker);
            for _ in 0..rounds {
                let slot = wait_for(|waker| {
                    let slot = process.enter_or_park(worker, waker);
                    parked.fetch_add(u32::from(slot.is_none()), SeqCst);
                    slot
                });
                assert!(inside.fetch_add(1, SeqCst) < bound);
                for _ in 0..dice.below(8).saturating_sub(5) {
                    thread::yield_now();
                }
                inside.fetch_sub(1, SeqCst);
                drop(slot);
            }
            // A worker that leaves passes on a pending wake-up.
            process.unpark(worker);
        };
        // No worker is admitted until all have parked once: however the threads are scheduled, they contend.
        let others: Vec<_> =
            (0..u64::from(bound)).filter_map(|other| process.enter_or_park(workers + other, Waker::noop())).collect();
        assert_eq!(others.len(), bound as usize);
        thread::scope(|scope| {
            for worker in 0..workers {
                let work = &work;
                scope.spawn(move || work(worker));
            }
            while u64::from(parked.load(SeqCst)) < workers {
                thread::yield_now();
            }
            drop(others);
        });
        assert_eq!(process.actconn(), 0);
    }
}

/// A release and a parking at the same time, round after round, without other threads that could hide a mistake.
#[test]
fn a_release_is_not_missed_by_who_parks_at_that_moment() {
    let process = Arc::new(ProcessState::new(1, &RatesSpec::default(), None));
    let rounds = 20_000;
    let turn = AtomicUsize::new(0);
    // The timeout is for one wait: a busy machine may take long for all rounds.
    let other = |round: usize| {
        let (mut looks, start) = (0, Instant::now());
        while turn.load(SeqCst) < round {
            looks += 1;
            if looks > 500 {
                assert!(start.elapsed() < 2 * LOST, "a wake-up was lost");
                thread::yield_now();
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                other(2 * round - 1);
                drop(wait_for(|waker| process.enter_or_park(7, waker)));
                turn.store(2 * round, SeqCst);
            }
        });
        for round in 1..=rounds {
            let held = process.gate().enter_freely();
            turn.store(2 * round - 1, SeqCst);
            for _ in 0..round % 40 {
                std::hint::spin_loop();
            }
            drop(held);
            other(2 * round);
        }
    });
    assert_eq!(process.actconn(), 0);
}
