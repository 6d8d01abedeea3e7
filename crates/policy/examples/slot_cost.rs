//! Prints the cost of shared live state per request: nanoseconds for one assignment and its release, for every balance
//! algorithm, with one thread, with two threads at a backend each, with two at one backend, and the same with two
//! microseconds of other work per request (a small fraction of a real request's), which is subtracted.
//!
//! `cargo run --release -p weir-policy --example slot_cost [ALGORITHM]`

#![allow(clippy::print_stdout)]

use config::environment::Environment;
use config::keyword::SpecOptions;
use config::spec::Family;
use config::{InputFile, LanguageOptions, LoadOptions};
use live::{Assignment, Local, PickContext, ProxyState};
use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::Barrier;
use std::time::Instant;

/// Requests per round.
const REQUESTS: u32 = 400;

const ROUNDS: u64 = 4_000;

/// Iterations of work per request: about two microseconds.
const WORK: u32 = 1_000;

const ALGORITHMS: &[&str] = &["roundrobin", "static-rr", "leastconn", "first", "source", "source consistent", "random"];

fn main() {
    println!(
        "{:<26}{:>10}{:>14}{:>16}{:>14}",
        "ns a request", "1 thread", "2, one each", "2, one backend", "with work"
    );
    let wanted = std::env::args().nth(1);
    for balance in ALGORITHMS.iter().filter(|name| wanted.as_deref().is_none_or(|wanted| wanted == **name)) {
        for servers in [3, 100] {
            let Some(live) = live(balance, servers) else { continue };
            let (one, each, both) = ([&live[0]], [&live[0], &live[1]], [&live[0], &live[0]]);
            let with_work = measure(&both, WORK).zip(measure_work()).map(|(all, work)| all - work);
            let costs = [measure(&one, 0), measure(&each, 0), measure(&both, 0), with_work]
                .map(|cost| cost.map_or("busy".to_owned(), |cost| format!("{cost:.0}")));
            let name = format!("{balance}, {servers} servers");
            println!("{name:<26}{:>10}{:>14}{:>16}{:>14}", costs[0], costs[1], costs[2], costs[3]);
        }
    }
}

/// Creates two backends in succession.
fn live(balance: &str, servers: usize) -> Option<Vec<Arc<ProxyState>>> {
    let mut text = "defaults\n timeout connect 1s\n timeout server 1s\n".to_owned();
    for backend in ["a", "b"] {
        let (balance, hash_type) = balance.split_once(' ').unwrap_or((balance, "map-based"));
        text += &format!("backend {backend}\n balance {balance}\n hash-type {hash_type}\n");
        for server in 1..=servers {
            text += &format!(" server s{server} 127.0.0.1:{}\n", 10_000 + server);
        }
    }
    let file = InputFile { name: "slot_cost".to_owned(), bytes: text.into_bytes() };
    let options = LoadOptions {
        language: LanguageOptions::default(),
        spec: SpecOptions::default(),
        local_peer: "localhost".to_owned(),
    };
    let mut loaded = config::load(&[file], Environment::default(), &options);
    let program = weir_policy::compile(
        &loaded.spec,
        &mut NoNames,
        &weir_policy::SystemLimits::default(),
        &mut loaded.diagnostics,
    )?;
    Some(program.live(7).proxies.iter().cloned().collect())
}

struct NoNames;

impl weir_policy::Resolver for NoNames {
    fn resolve(&mut self, _: &str, _: Family) -> Result<IpAddr, String> {
        Err("no names here".to_owned())
    }
}

/// Measures nanoseconds per request: the median of the rounds in which the threads really ran concurrently. `None` if
/// the machine was too busy for a single one.
fn measure(states: &[&Arc<ProxyState>], work: u32) -> Option<f64> {
    side_by_side(states.len(), |thread, seed| run(states[thread], seed, work))
}

/// Measures the time of the work alone.
fn measure_work() -> Option<f64> {
    side_by_side(2, |_, _| (0..REQUESTS).for_each(|_| work(WORK)))
}

/// Measures nanoseconds per request of any operation.
fn side_by_side(count: usize, run: impl Fn(usize, u64) + Sync) -> Option<f64> {
    let barrier = Barrier::new(count);
    let threads: Vec<Vec<Round>> = std::thread::scope(|scope| {
        let threads = (0..count).map(|thread| {
            let (barrier, run) = (&barrier, &run);
            scope.spawn(move || {
                let round = |round: u64| {
                    barrier.wait();
                    let (before, start) = (preemptions(), Instant::now());
                    run(thread, round + thread as u64 * ROUNDS);
                    let end = Instant::now();
                    Round { start, end, disturbed: preemptions() != before }
                };
                (0..ROUNDS).map(round).collect()
            })
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let rounds = (0..ROUNDS as usize).map(|round| threads.iter().map(|thread| thread[round]).collect::<Vec<_>>());
    let mut good: Vec<u128> = rounds.filter_map(|round| time_together(&round)).collect();
    good.sort_unstable();
    good.get(good.len() / 2).map(|took| *took as f64 / count as f64 / f64::from(REQUESTS))
}

/// Times of one thread in a round.
#[derive(Clone, Copy)]
struct Round {
    start: Instant,
    end: Instant,
    /// The thread was preempted.
    disturbed: bool,
}

/// Returns the total time of all threads, if none was preempted and they overlapped for at least nine tenths of it.
fn time_together(round: &[Round]) -> Option<u128> {
    let (start, end) = (round.iter().map(|thread| thread.start).max()?, round.iter().map(|thread| thread.end).min()?);
    let together = end.saturating_duration_since(start).as_nanos() * round.len() as u128;
    let total = round.iter().map(|thread| thread.end.duration_since(thread.start).as_nanos()).sum();
    (!round.iter().any(|thread| thread.disturbed) && together * 10 >= total * 9).then_some(total)
}

/// Returns the number of involuntary context switches of this thread.
fn preemptions() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    text.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?.trim().parse().ok()
}

fn run(state: &Arc<ProxyState>, seed: u64, pause: u32) {
    let local = Local::new(Arc::clone(state));
    let mut random = seed;
    for _ in 0..REQUESTS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let hash = Some((random >> 32) as u32);
        match ProxyState::assign_with(local.clone(), &PickContext { hash, random, ..PickContext::default() }) {
            Assignment::Slot(slot) => {
                work(pause);
                black_box(slot.release());
            }
            other => unreachable!("without limits nobody waits: {other:?}"),
        }
    }
}

/// Keeps the processor busy without accessing memory.
fn work(steps: u32) {
    let mut number = 1_u64;
    for _ in 0..steps {
        number = black_box(number.wrapping_mul(6_364_136_223_846_793_005));
    }
}
