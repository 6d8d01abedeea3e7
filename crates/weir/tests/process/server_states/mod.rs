//! States of a server after sequences of check results, agent answers, runtime commands and requests, and of a server
//! that tracks it. The table contains the states of HAProxy 3.5 for each sequence; `bench/server_states` records it.
//! Must never wait for a check by time: each check and each agent connection is held open until the sequence answers
//! it.

mod driver;
mod events;

use crate::support::WEIR;
use driver::{Sequence, run};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

const TABLE: &str = include_str!("haproxy-3.5.tsv");

/// The same of servers whose requests are observed.
const OBSERVED: &str = include_str!("haproxy-3.5-observe.tsv");

/// Variants whose servers are down at the start.
const INITIALLY_DOWN: [usize; 2] = [5, 6];

/// The first field of the tracking server.
const FOLLOWER: usize = 11;

/// Backends per process; each runs one sequence.
const BATCH: usize = 100;

/// Sequences of the recorded tables.
const RECORDED: u64 = 800;
const OBSERVED_ONES: u64 = 200;

/// Fields of a state, separated by `|`: the answer to a request, `status` of the server, its operational and administrative
/// state, weight, health and flags of its check, flags and status of its agent, failed checks, transitions to DOWN;
/// status and both states of the server that tracks it; where requests are observed, `hanafail`. A field of the table that is equal to the one before is left empty.
fn parse(line: &str) -> Sequence {
    let mut fields = line.split('\t');
    let variant = fields.next().and_then(|number| number.parse().ok()).expect("a variant");
    let (mut events, mut states) = (Vec::new(), Vec::<String>::new());
    for (event, state) in fields.map(|field| field.split_once('=').expect("event=state")) {
        events.push(event.to_owned());
        let known = states.last().map_or("", String::as_str).split('|').chain(std::iter::repeat(""));
        let whole = state.split('|').zip(known).enumerate();
        let whole = whole.map(|(place, (new, old))| if new.is_empty() && place > 0 { old } else { new.trim_end() });
        states.push(whole.collect::<Vec<_>>().join("|"));
    }
    Sequence { variant, events, states, seed: 0, spoiled: false }
}

/// Returns the row of the table that [`parse`] reads. An empty field after another empty field is written as a blank.
fn row(sequence: &Sequence) -> String {
    let mut text = sequence.variant.to_string();
    let mut before = "";
    for (event, state) in sequence.events.iter().zip(&sequence.states) {
        let known = before.split('|').chain(std::iter::repeat(""));
        let changed = state.split('|').zip(known).enumerate().map(|(place, (new, old))| match new {
            _ if place > 0 && new == old => "",
            "" if place > 0 => " ",
            _ => new,
        });
        let _ = write!(text, "\t{event}={}", changed.collect::<Vec<_>>().join("|"));
        before = state;
    }
    text
}

/// Returns the first step at which a state differs, except where Weir differs from HAProxy on purpose.
fn first_difference(row: &Sequence, shown: &Sequence) -> Option<usize> {
    // With `init-state down` HAProxy shows a tracking server as up until the tracked one changes.
    let fields = if INITIALLY_DOWN.contains(&row.variant) { FOLLOWER } else { usize::MAX };
    let differs = |wanted: &str, found: &str| !wanted.split('|').take(fields).eq(found.split('|').take(fields));
    let step = row.states.iter().zip(&shown.states).position(|(wanted, found)| differs(wanted, found))?;
    // `enable health` with an `init-state` restarts the checks; HAProxy does not reset the state of the server.
    if INITIALLY_DOWN.contains(&row.variant) && row.events[..=step].iter().any(|event| event == "eh") {
        return None;
    }
    // The recovery of an agent ends the stopping state in HAProxy until the next check. In Weir the last check decides.
    let operation = |states: &[String]| states[step].split('|').nth(2).map(str::to_owned);
    let agent = row.events[step].starts_with("a:") || row.events[step] == "g:up";
    let stays = operation(&row.states).as_deref() == Some("2") && operation(&shown.states).as_deref() == Some("3");
    let last_check = row.events[..step].iter().rev().find(|event| event.starts_with('c'));
    (!(agent && stays && last_check.is_some_and(|event| event == "c404"))).then_some(step)
}

#[test]
fn a_server_is_in_the_state_that_haproxy_shows() {
    if let Ok(program) = std::env::var("WEIR_RECORD_SERVER_STATES") {
        return record(&program, "haproxy-3.5.tsv", RECORDED, false);
    }
    compare(TABLE, 500);
}

#[test]
fn a_server_that_is_observed_is_in_the_state_that_haproxy_shows() {
    if let Ok(program) = std::env::var("WEIR_RECORD_SERVER_STATES") {
        return record(&program, "haproxy-3.5-observe.tsv", OBSERVED_ONES, true);
    }
    compare(OBSERVED, 150);
}

/// One table is compared at a time: their checks have little time.
static TURN: Mutex<()> = Mutex::new(());

/// Runs the sequences of a table, of which there are that many at least.
fn compare(table: &'static str, least: usize) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let expected: Vec<Sequence> = table.lines().map(parse).collect();
    assert!(expected.len() >= least);
    let mut different = String::new();
    let mut count = 0;
    for batch in expected.chunks(BATCH) {
        let given = batch.iter().map(|row| Sequence { states: Vec::new(), ..row.clone() }).collect();
        for (row, shown) in batch.iter().zip(run(WEIR, given)) {
            let Some(step) = first_difference(row, &shown) else { continue };
            count += 1;
            let events = row.events[..=step].join(" ");
            let (wanted, found) = (&row.states[step], &shown.states[step]);
            let before = if step > 0 { &row.states[step - 1] } else { "" };
            let _ = writeln!(
                different,
                "{}: {events}\n  before {before}\n  wanted {wanted}\n  found  {found}",
                row.variant
            );
        }
    }
    assert!(count == 0, "{count} of {} sequences differ:\n{different}", expected.len());
}

/// Writes a table: random sequences, with the states that a program shows. One that a check spoils is recorded again.
fn record(program: &str, name: &str, count: u64, observes: bool) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    let mut seeds: Vec<u64> = (1..=count).collect();
    for _ in 0..10 {
        let (batches, mut spoiled) = (std::mem::take(&mut seeds), Vec::new());
        for batch in batches.chunks(BATCH) {
            let sequences = batch.iter().map(|&seed| Sequence::random(seed, observes)).collect();
            for sequence in run(program, sequences) {
                match sequence.spoiled {
                    true => spoiled.push(sequence.seed),
                    false => drop(writeln!(text, "{}", row(&sequence))),
                }
            }
        }
        seeds = spoiled;
    }
    let path = format!("{}/tests/process/server_states/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, text).expect("the table is written");
}
