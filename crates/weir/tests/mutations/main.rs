//! Mutates valid configurations, thousands at a time: for any input, loading terminates, reports the position of each
//! error, and is deterministic. If HAProxy 3.5 is installed, a sample is compared with its results.
//!
//! A run is repeated by its seed: `MUTATIONS_SEED`, `MUTATIONS_COUNT`, and `MUTATIONS_COMPARED` for the sample;
//! `HAPROXY=…` selects another HAProxy.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod compare;
mod known;
mod mutate;
mod reading;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Timeout of a run that hangs; normal runs take a fraction of it.
const PATIENCE: Duration = Duration::from_secs(120);

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs a job for every number below `count` on all processors; returns the messages of failed ones.
fn each(count: usize, job: impl Fn(usize) -> Result<(), String> + Send + Sync + Clone + 'static) -> Vec<String> {
    let workers = thread::available_parallelism().map_or(2, std::num::NonZero::get).min(8);
    let (sender, receiver) = mpsc::channel();
    for worker in 0..workers {
        let (sender, job) = (sender.clone(), job.clone());
        thread::spawn(move || {
            for number in (worker..count).step_by(workers) {
                let found = catch_unwind(AssertUnwindSafe(|| job(number)));
                let found = found.unwrap_or_else(|_| Err("it panics".to_owned()));
                if sender.send((number, found)).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut open: std::collections::BTreeSet<usize> = (0..count).collect();
    let mut failed = Vec::new();
    while !open.is_empty() {
        let Ok((number, found)) = receiver.recv_timeout(PATIENCE) else {
            failed.push(format!("no end of one of these: {:?}", open.iter().take(workers * 2).collect::<Vec<_>>()));
            break;
        };
        open.remove(&number);
        failed.extend(found.err().map(|why| format!("mutant {number}: {why}")));
    }
    failed
}

#[test]
fn the_corpus_is_good() {
    for (name, text) in mutate::corpus() {
        let told: Vec<String> = reading::read(&text).into_iter().filter(|line| !line.starts_with("[DIAG]")).collect();
        assert_eq!(told, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn whatever_is_written_is_read_to_its_end() {
    let (seed, count) = (number("MUTATIONS_SEED", 1) as u64, number("MUTATIONS_COUNT", 2_000));
    let corpus = mutate::corpus();
    let failed = each(count, move |number| {
        let text = mutate::mutant(&corpus, seed, number);
        let found = reading::read(&text);
        // Some are loaded twice: the messages must depend only on the text.
        if number % 8 == 0 && reading::read(&text) != found {
            return Err("it reads differently the second time".to_owned());
        }
        Ok(())
    });
    assert!(failed.is_empty(), "seed {seed}:\n{}", failed.join("\n"));
}

#[test]
fn haproxy_refuses_the_same() {
    let Some(haproxy) = compare::haproxy() else {
        eprintln!("SKIPPED: HAProxy 3.5 is not installed, no verdict is compared");
        return;
    };
    let (seed, count) = (number("MUTATIONS_SEED", 1) as u64, number("MUTATIONS_COMPARED", 100));
    let corpus = mutate::corpus();
    let failed = each(count.div_ceil(PIECE), move |piece| {
        let numbers = piece * PIECE..((piece + 1) * PIECE).min(count);
        let found = compare::differences(&haproxy, &corpus, seed, numbers);
        if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Mutants compared per batch.
const PIECE: usize = 25;
