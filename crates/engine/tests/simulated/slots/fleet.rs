//! Several nodes with the live state of Weir, and a store that executes the script. The test is the network between them, and the
//! requests.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use config::spec::LostMode;
use engine::store::slots::script;
use live::lease::slots::{Claim, SlotPlan, StoreState, TICK};
use live::{Assignment, BackendPlan, Live, LivePlan, PickContext, ProxyPlan, QueueTicket, ServerPlan, ServerSlot};
use testkit::sleep;
use wire::resp::OwnedReply;

use crate::redis::{Answer, Redis};
use crate::world::*;

const KEY: &str = "weir:slots:b/s";
/// Duration of a request in milliseconds: the least, and the spread.
const SHORTEST: u64 = 5;
const SPREAD: u64 = 40;

/// A node: its requests, and its commands on their way.
struct Node {
    live: Live,
    number: u64,
    /// Milliseconds from a claim to its execution, and from there to the answer.
    delay: u64,
    /// Requests that it has at a time, served or waiting.
    load: usize,
    store: StoreState,
    /// It is stopped: its clients are still served.
    is_leaving: bool,
    sent: VecDeque<(u64, Claim)>,
    answered: VecDeque<(u64, Claim, OwnedReply)>,
    served: Vec<(u64, ServerSlot)>,
    waiting: Vec<QueueTicket>,
    finished: usize,
}

impl Node {
    fn new(number: u64, maxconn: u32, lost: LostMode) -> Self {
        let servers = vec![ServerPlan { maxconn: Some(maxconn), ..ServerPlan::default() }];
        let backend = BackendPlan { servers, fullconn: 1, ..BackendPlan::default() };
        let proxies = vec![ProxyPlan { backend: Some(backend), ..ProxyPlan::default() }];
        let slots = vec![SlotPlan { proxy: 0, server: 0, store: 0, name: "b/s".into(), lost }];
        Self {
            live: Live::new(LivePlan { maxconn: 10_000, proxies, slots, ..LivePlan::default() }, number),
            number,
            delay: 1,
            load: 0,
            store: StoreState::Ready,
            is_leaving: false,
            sent: VecDeque::new(),
            answered: VecDeque::new(),
            served: Vec::new(),
            waiting: Vec::new(),
            finished: 0,
        }
    }

    /// Loses the connection to the store, with all that is on its way.
    fn lose(&mut self) {
        self.store = StoreState::Lost;
        self.sent.clear();
        self.answered.clear();
    }

    /// One millisecond of the connection to the store.
    fn exchange(&mut self, redis: &Redis, now: u64) {
        let (slots, proxy) = (&self.live.slots, &self.live.proxies[0]);
        let server = slots.get(0).unwrap();
        while self.sent.front().is_some_and(|sent| sent.0 <= now)
            && let Some((_, claim)) = self.sent.pop_front()
        {
            let answer = execute(redis, self.number, &claim);
            self.answered.push_back((now + self.delay, claim, answer));
        }
        while self.answered.front().is_some_and(|answer| answer.0 <= now)
            && let Some((_, claim, answer)) = self.answered.pop_front()
        {
            let grant = script::grants(&answer, 1).unwrap()[0];
            server.settle(proxy, &claim, grant, rt::now());
        }
        // Nodes are not in step.
        if (now + 7 * self.number).is_multiple_of(TICK.as_millis() as u64)
            && let Some(claim) = server.tick(proxy, self.store, rt::now(), self.is_leaving)
        {
            assert_eq!(self.store, StoreState::Ready);
            self.sent.push_back((now + self.delay, claim));
        }
    }

    /// One millisecond of its requests.
    fn work(&mut self, now: u64) {
        let before = self.served.len();
        self.served.retain(|(end, _)| *end > now);
        self.finished += before - self.served.len();
        let mut cx = Context::from_waker(Waker::noop());
        let mut begun = Vec::new();
        self.waiting.retain_mut(|ticket| match ticket.poll_granted(&mut cx) {
            Poll::Ready(slot) => {
                begun.push(slot);
                false
            }
            Poll::Pending => true,
        });
        while self.served.len() + begun.len() + self.waiting.len() < self.load {
            match self.live.proxies[0].assign(&PickContext::default()) {
                Assignment::Slot(slot) => begun.push(slot),
                Assignment::Queued(ticket) => self.waiting.push(ticket),
                other => panic!("{other:?}"),
            }
        }
        self.waiting.truncate(self.load.saturating_sub(self.served.len() + begun.len()));
        self.served.extend(begun.into_iter().map(|slot| (now + SHORTEST + rt::random() % SPREAD, slot)));
    }
}

/// Executes the script in the store.
fn execute(redis: &Redis, node: u64, claim: &Claim) -> OwnedReply {
    let arguments = script::arguments(&[KEY.into()], node, std::slice::from_ref(claim));
    evaluate(redis, arguments.into_iter().map(|argument| String::from_utf8(argument).unwrap()))
}

fn evaluate(redis: &Redis, arguments: impl Iterator<Item = String>) -> OwnedReply {
    let mut command = vec!["EVAL".to_owned(), String::from_utf8(script::TEXT.to_vec()).unwrap()];
    command.extend(arguments);
    let Answer::Array(elements) = redis.command(&command.iter().map(String::as_str).collect::<Vec<_>>()) else {
        panic!("no answer")
    };
    let number = |element| match element {
        Answer::Integer(number) => OwnedReply::Integer(number),
        other => panic!("{other:?}"),
    };
    OwnedReply::Array(elements.into_iter().map(number).collect())
}

/// A fleet, and the largest number of requests that the server had.
struct Fleet {
    redis: Redis,
    nodes: Vec<Node>,
    now: u64,
    /// Requests at a time: the most, and the sum over all milliseconds since [`Fleet::measure`].
    most: usize,
    sum: usize,
    since: u64,
}

impl Fleet {
    fn new(count: u64, maxconn: u32, lost: LostMode) -> Self {
        let nodes = (1..=count).map(|number| Node::new(number, maxconn, lost)).collect();
        Self { redis: Redis::default(), nodes, now: 0, most: 0, sum: 0, since: 0 }
    }

    fn with_delay(mut self, delay: u64) -> Self {
        self.nodes.iter_mut().for_each(|node| node.delay = delay);
        self
    }

    fn load(&mut self, loads: &[usize]) {
        self.nodes.iter_mut().zip(loads).for_each(|(node, load)| node.load = *load);
    }

    async fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now += 1;
            for node in &mut self.nodes {
                node.exchange(&self.redis, self.now);
                node.work(self.now);
            }
            let served = self.served().iter().sum::<usize>();
            self.most = self.most.max(served);
            self.sum += served;
            sleep(1).await;
        }
    }

    /// Returns the requests that the server has, of each node.
    fn served(&self) -> Vec<usize> {
        self.nodes.iter().map(|node| node.served.len()).collect()
    }

    /// Begins to measure.
    fn measure(&mut self) {
        (self.most, self.sum, self.since) = (0, 0, self.now);
        self.nodes.iter_mut().for_each(|node| node.finished = 0);
    }

    /// Returns the average number of requests at a time since [`Self::measure`], in hundredths.
    fn average(&self) -> usize {
        100 * self.sum / (self.now - self.since) as usize
    }

    fn finished(&self) -> Vec<usize> {
        self.nodes.iter().map(|node| node.finished).collect()
    }
}

/// Runs a script that needs nothing but time.
fn simulate<F: Future<Output = ()> + 'static>(script: impl Fn() -> F) {
    listen("http-request deny").workers(&[1]).seeds(0..1).run(|_world| script());
}

#[test]
fn the_server_never_has_more_requests_than_its_maxconn_and_its_slots_are_used() {
    // Loads of the nodes, and the delay of the store: the whole capacity is used if there are requests for it.
    let rows: [(&[usize], u32, u64); 7] = [
        (&[50], 10, 1),
        (&[50, 50], 10, 1),
        (&[50, 0], 10, 1),
        (&[2, 50, 0], 10, 20),
        (&[50, 7, 50, 3], 20, 5),
        (&[1, 1, 1, 1], 10, 1),
        (&[50, 50, 50], 10, 50),
    ];
    simulate(move || async move {
        for (loads, maxconn, delay) in rows {
            let mut fleet = Fleet::new(loads.len() as u64, maxconn, LostMode::Local).with_delay(delay);
            fleet.load(loads);
            fleet.run(3_000).await;
            assert!(fleet.most <= maxconn as usize, "{loads:?}: {}", fleet.most);
            fleet.measure();
            fleet.run(5_000).await;
            let wanted = loads.iter().sum::<usize>().min(maxconn as usize);
            // A slot that is free may be on its way.
            assert!(fleet.average() >= 92 * wanted, "{loads:?}: {} of {wanted}", fleet.average());
            assert!(fleet.most <= maxconn as usize, "{loads:?}: {}", fleet.most);
        }
    });
}

#[test]
fn answers_follow_from_what_all_nodes_have_reported() {
    // Of ten slots: the node, what it holds and needs; what it may use, the number of nodes, and whether one lacks slots.
    let rows = [
        ("1", 0, 0, [10, 1, 0]),
        ("2", 0, 0, [0, 2, 0]),
        ("1", 10, 0, [5, 2, 0]),
        ("2", 0, 0, [0, 2, 0]),
        ("1", 5, 0, [5, 2, 0]),
        ("2", 0, 0, [5, 2, 0]),
        ("2", 5, 9, [5, 2, 1]),
        ("1", 5, 0, [1, 2, 1]),
        ("1", 1, 0, [1, 2, 1]),
        ("2", 5, 9, [9, 2, 0]),
        ("1", 1, 9, [1, 2, 1]),
        ("2", 9, 9, [5, 2, 1]),
        ("2", 7, 9, [5, 2, 1]),
        ("1", 1, 9, [3, 2, 1]),
        // One that holds what nobody has granted.
        ("3", 20, 20, [4, 3, 0]),
        ("1", 3, 9, [3, 3, 0]),
        ("3", 4, 20, [4, 3, 0]),
        ("3", 3, 20, [3, 3, 1]),
    ];
    simulate(move || async move {
        let redis = Redis::default();
        let ask = |node: &str, sequence: usize, held: i32, demand: i32| {
            let numbers = [sequence as i32, 10, held, demand, 0].map(|number| number.to_string());
            let words = ["1", KEY, node, "5000000", "0"].map(str::to_owned);
            evaluate(&redis, words.into_iter().chain(numbers))
        };
        // What cannot be divided goes to the third node then.
        let wall = rt::wall();
        sleep(6_000 - (wall.seconds as u64 % 6) * 1_000 - u64::from(wall.nanos / 1_000_000) + 5_000).await;
        ask("1", 1, 0, 0);
        sleep(1_000).await;
        for (at, (node, held, demand, expected)) in rows.into_iter().enumerate() {
            let answer = ask(node, at + 2, held, demand);
            assert_eq!(answer, OwnedReply::Array(expected.map(OwnedReply::Integer).into()), "{at}");
        }
    });
}

#[test]
fn nodes_that_queue_have_equal_parts() {
    simulate(|| async {
        for (maxconn, loads) in [(10, [50, 50, 50]), (10, [200, 20, 1]), (1, [9, 9, 9]), (2, [50, 3, 9])] {
            let mut fleet = Fleet::new(3, maxconn, LostMode::Local);
            fleet.load(&loads);
            fleet.run(4_000).await;
            fleet.measure();
            fleet.run(12_000).await;
            assert!(fleet.most <= maxconn as usize, "{maxconn} {loads:?}: {}", fleet.most);
            let finished = fleet.finished();
            let (least, most) = (finished[..2].iter().min().unwrap(), finished[..2].iter().max().unwrap());
            assert!(most - least <= most / 5, "{maxconn} {loads:?}: {finished:?}");
            assert!(finished[2] > 0, "{maxconn} {loads:?}: {finished:?}");
        }
    });
}

#[test]
fn loads_that_change_are_followed_within_half_a_second() {
    simulate(|| async {
        let mut fleet = Fleet::new(3, 12, LostMode::Local);
        fleet.run(2_000).await;
        let idle: Vec<u32> = fleet.nodes.iter().map(|node| node.live.slots.get(0).unwrap().report().leased).collect();
        assert_eq!(idle, [4, 4, 4], "each can begin at once");
        for loads in [[50, 0, 0], [0, 50, 0], [50, 50, 50], [0, 0, 50], [3, 0, 9], [0, 0, 0]] {
            fleet.load(&loads);
            fleet.run(500).await;
            fleet.measure();
            fleet.run(1_000).await;
            let wanted = loads.iter().sum::<usize>().min(12);
            assert!(fleet.average() >= 90 * wanted, "{loads:?}: {}", fleet.average());
            assert!(fleet.most <= 12, "{loads:?}: {}", fleet.most);
        }
    });
}

#[test]
fn slots_of_a_node_that_dies_return() {
    simulate(|| async {
        let mut fleet = Fleet::new(2, 10, LostMode::Local);
        fleet.load(&[50, 50]);
        fleet.run(3_000).await;
        fleet.nodes.remove(0);
        fleet.run(4_000).await;
        assert_eq!(fleet.served(), [5], "the lease has not expired");
        fleet.run(1_500).await;
        assert_eq!(fleet.served(), [10]);
        // One that is stopped gives back what its requests do not need, and its last lease is short.
        let mut fleet = Fleet::new(2, 10, LostMode::Local);
        fleet.load(&[3, 50]);
        fleet.run(3_000).await;
        fleet.nodes[0].is_leaving = true;
        fleet.run(500).await;
        fleet.nodes.remove(0);
        fleet.run(1_500).await;
        assert_eq!((fleet.served(), fleet.most), (vec![10], 10));
    });
}

#[test]
fn a_store_that_was_emptied_learns_the_leases_first() {
    simulate(|| async {
        for _ in 0..5 {
            let mut fleet = Fleet::new(2, 12, LostMode::Local);
            fleet.load(&[50, 2]);
            fleet.run(3_000).await;
            fleet.redis.command(&["DEL", KEY]);
            // A new node is the first that the store hears of.
            let mut third = Node::new(3, 12, LostMode::Local);
            (third.load, third.delay) = (50, 0);
            fleet.nodes.insert(0, third);
            fleet.load(&[50, 50, 50]);
            fleet.run(12_000).await;
            assert!(fleet.most <= 12, "{}", fleet.most);
            assert_eq!(fleet.served(), [4, 4, 4]);
        }
    });
}

#[test]
fn a_lease_is_valid_until_it_expires_and_then_the_word_decides() {
    simulate(|| async {
        // Requests in progress when a lease expires end by themselves.
        let rows = [(LostMode::Local, [6, 6], 18), (LostMode::Open, [12, 12], 24), (LostMode::Closed, [0, 0], 12)];
        for (lost, expected, most) in rows {
            let mut fleet = Fleet::new(2, 12, lost);
            fleet.load(&[50, 2]);
            fleet.run(3_000).await;
            fleet.nodes.iter_mut().for_each(Node::lose);
            fleet.load(&[50, 50]);
            fleet.run(4_000).await;
            assert_eq!(fleet.served().iter().sum::<usize>(), 12, "{lost:?}");
            assert!(fleet.served()[0] >= 9, "{lost:?}: {:?}", fleet.served());
            fleet.run(2_000).await;
            assert_eq!(fleet.served(), expected, "{lost:?}");
            assert!(fleet.most <= most, "{lost:?}: {}", fleet.most);
            // They return one after the other, to a store that has forgotten them.
            fleet.measure();
            for at in 0..2 {
                fleet.nodes[at].store = StoreState::Ready;
                fleet.run(3_000).await;
            }
            assert!(lost == LostMode::Open || fleet.most <= 12, "{lost:?}: {}", fleet.most);
            fleet.measure();
            fleet.run(7_000).await;
            assert_eq!((fleet.served(), fleet.most), (vec![6, 6], 12), "{lost:?}");
        }
    });
}

#[test]
fn a_node_that_never_had_an_answer_has_no_slots_until_the_store_is_lost() {
    simulate(|| async {
        for (lost, expected) in [(LostMode::Local, 12), (LostMode::Open, 12), (LostMode::Closed, 0)] {
            let mut fleet = Fleet::new(1, 12, lost);
            fleet.load(&[50]);
            fleet.nodes[0].store = StoreState::Untried;
            fleet.run(3_000).await;
            assert_eq!(fleet.served(), [0]);
            fleet.nodes[0].store = StoreState::Lost;
            fleet.run(100).await;
            assert_eq!(fleet.served(), [expected], "{lost:?}");
            // A store that knows nothing grants nothing for a second: other nodes may have slots.
            let mut fleet = Fleet::new(1, 12, lost);
            fleet.load(&[50]);
            fleet.run(950).await;
            assert_eq!(fleet.served(), [0]);
            fleet.run(150).await;
            assert_eq!(fleet.served(), [12]);
        }
    });
}

#[test]
fn the_smallest_maxconn_of_all_nodes_holds() {
    simulate(|| async {
        let mut fleet = Fleet::new(2, 12, LostMode::Local);
        fleet.load(&[50, 50]);
        fleet.run(3_000).await;
        let set = |fleet: &Fleet, most| fleet.nodes[1].live.proxies[0].set_maxconn(0, most);
        for (most, expected) in [(Some(6), 6), (Some(20), 12), (Some(4), 4), (Some(12), 12)] {
            set(&fleet, most);
            fleet.run(1_000).await;
            fleet.measure();
            fleet.run(1_000).await;
            assert_eq!(fleet.most, expected, "{most:?}");
        }
        // Without a limit, a node has no lease.
        set(&fleet, None);
        fleet.run(6_000).await;
        assert_eq!(fleet.served(), [12, 50]);
        set(&fleet, Some(12));
        fleet.run(3_000).await;
        fleet.measure();
        fleet.run(1_000).await;
        assert_eq!((fleet.served(), fleet.most), (vec![6, 6], 12));
    });
}

#[test]
fn claims_that_are_late_change_nothing() {
    simulate(|| async {
        let mut fleet = Fleet::new(2, 12, LostMode::Local);
        fleet.load(&[50, 0]);
        fleet.run(1_200).await;
        let server = || fleet.nodes[0].live.slots.get(0).unwrap();
        // A claim that stays on its way while its connection is closed, and later ones pass it.
        let mut late = None;
        while late.is_none() {
            late = server().tick(&fleet.nodes[0].live.proxies[0], StoreState::Ready, rt::now(), false);
            sleep(10).await;
        }
        fleet.nodes[0].lose();
        fleet.run(50).await;
        fleet.nodes[0].store = StoreState::Ready;
        fleet.run(2_000).await;
        let answer = execute(&fleet.redis, 1, &late.unwrap());
        assert_eq!(answer, OwnedReply::Array([-2, 2, 0].map(OwnedReply::Integer).into()));
        fleet.load(&[50, 50]);
        fleet.run(2_000).await;
        assert!(fleet.most <= 12);
    });
}

#[test]
fn values_of_others_are_foreign() {
    let node = |text: &str| format!("1 0;{text};");
    let rows = [
        String::new(),
        "x".to_owned(),
        "1 0".to_owned(),
        "1 0;x;".to_owned(),
        "-1 0;".to_owned(),
        node("1 1 5 5 9 0"),
        node("1 1 5 5 9 2 9"),
        node("g 1 5 5 9 0 9"),
        node("1 1 -5 5 9 0 9"),
        node("1 1 5 5 9 0 9;1"),
        format!("1 0;{}", "1 1 1 1 1 0 1;".repeat(10_000)),
    ];
    simulate(move || {
        let rows = rows.clone();
        async move {
            for text in rows {
                let mut fleet = Fleet::new(1, 9, LostMode::Local);
                fleet.redis.set(KEY, text.as_bytes());
                fleet.load(&[50]);
                fleet.run(200).await;
                let report = fleet.nodes[0].live.slots.get(0).unwrap().report();
                assert_eq!((report.state, report.leased), ("LOST", 9), "{text}");
                assert_eq!(fleet.redis.command(&["GET", KEY]), Answer::Text(text.clone().into()), "{text}");
                // It is asked again.
                fleet.redis.command(&["DEL", KEY]);
                fleet.run(7_000).await;
                assert_eq!(fleet.nodes[0].live.slots.get(0).unwrap().report().state, "LEASED", "{text}");
            }
        }
    });
}
