//! `debug counters` (management manual, section 9.3): abnormal events in the process and of its peers. Must never count
//! one.

use std::fmt::Write as _;

use config::spec::RuntimeLevel;
use engine::worker::{Process, Worker};
use live::counters::{Http2Counters, ObjectCounters, QuicCounters};

use super::super::{Call, Command, Pending, Run};

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "debug counters",
    "debug counters [?|all|bug|cnt|chk|glt]*",
    "dump/reset rare event counters",
    Run::Gradual(counters),
)
.at(RuntimeLevel::Operator)];

/// A counter: type, code location, condition and value.
type Row = (&'static str, &'static str, &'static str, fn(&CounterSources<'_>) -> u64);

/// The sources of the counters.
struct CounterSources<'a> {
    process: &'a Process,
    proxies: &'a [usize],
    /// By worker: tasks that panicked, and waits for memory.
    here: &'a [(u64, u64)],
}

impl CounterSources<'_> {
    fn objects(&self, of: impl Fn(&ObjectCounters) -> u64) -> u64 {
        let workers = self.process.counters.workers.iter();
        workers.flat_map(|worker| self.proxies.iter().map(|index| of(&worker.proxies[*index].front))).sum()
    }

    fn http3(&self, of: impl Fn(&QuicCounters) -> &live::counters::Count) -> u64 {
        self.proxies.iter().map(|index| self.process.counters.quic(*index, true, &of)).sum()
    }

    fn http2(&self, front: bool, of: impl Fn(&Http2Counters) -> &live::counters::Count) -> u64 {
        self.proxies.iter().map(|index| self.process.counters.http2(*index, front, &of)).sum()
    }
}

/// HAProxy's types: BUG must never happen, CHK should not, CNT may, GLT is a protocol glitch of a peer.
const ROWS: &[Row] = &[
    ("BUG", "executor.rs run()", "a task panicked", |found| found.here.iter().map(|here| here.0).sum()),
    ("CHK", "conclude.rs conclude()", "a stream ended with an internal error", |found| {
        found.objects(|counters| counters.internal_errors.get())
    }),
    ("CHK", "rules/mod.rs judge()", "a rule's change did not fit", |found| {
        found.objects(|counters| counters.failed_rewrites.get())
    }),
    ("CNT", "memory_waits.rs poll_memory()", "a task waited for memory", |found| {
        found.here.iter().map(|here| here.1).sum()
    }),
    ("CNT", "memory.rs alloc()", "memory was refused", |_| base::memory::PROCESS.failed() as u64),
    ("GLT", "h2/server.rs", "glitches of clients", |found| found.http2(true, |counters| &counters.glitches)),
    ("GLT", "h3/connection.rs", "glitches of clients", |found| found.http3(|counters| &counters.glitches)),
    ("GLT", "h2/client.rs", "glitches of servers", |found| found.http2(false, |counters| &counters.glitches)),
    ("GLT", "h2/server.rs", "connections of clients ended by an error of HTTP/2", |found| {
        found.http2(true, |counters| &counters.connection_errors)
    }),
    ("GLT", "h2/client.rs", "connections to servers ended by an error of HTTP/2", |found| {
        found.http2(false, |counters| &counters.connection_errors)
    }),
];

/// The arguments of the command.
struct CountersQuery {
    /// Changes the counters.
    changes: bool,
    resets: bool,
    all: bool,
    kinds: Vec<String>,
}

/// Parses the arguments. `None`: an unknown word.
fn read(words: &[String]) -> Option<CountersQuery> {
    let mut wish = CountersQuery { changes: false, resets: false, all: false, kinds: Vec::new() };
    for word in words {
        match word.as_str() {
            "show" => {}
            "on" | "off" => wish.changes = true,
            "reset" => (wish.changes, wish.resets) = (true, true),
            "all" => wish.all = true,
            kind @ ("bug" | "chk" | "cnt" | "glt") => wish.kinds.push(kind.to_ascii_uppercase()),
            _ => return None,
        }
    }
    Some(wish)
}

fn counters<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let words = call.words.get(2..).unwrap_or_default();
        let Some(wish) = read(words) else {
            call.refuse(
                "Expects an optional action ('reset','show','on','off'), optional types ('bug','chk','cnt','glt') and \
                 optionally 'all' to even dump null counters.",
            );
            return Ok(());
        };
        // `on` and `off` have no effect: events are always counted.
        if wish.changes && (!call.permits(RuntimeLevel::Admin) || !wish.resets) {
            return Ok(());
        }
        let here = engine::on_every_worker(&call.state.process, |_| {
            let activity = rt::activity();
            (activity.panics, activity.memory_waits)
        })
        .await;
        let proxies: Vec<usize> = call.generation.program.proxies.iter().map(|proxy| proxy.index).collect();
        let found = CounterSources { process: &call.state.process, proxies: &proxies, here: &here };
        let wanted = |row: &Row| wish.kinds.is_empty() || wish.kinds.iter().any(|kind| kind == row.0);
        // As in HAProxy, an empty list has no header.
        let mut head = "Count     Type Location function(): \"condition\" [comment]\n";
        let mut resets = call.state.activity.resets.borrow_mut();
        resets.resize(ROWS.len(), 0);
        for (row, reset) in ROWS.iter().zip(resets.iter_mut()).filter(|(row, _)| wanted(row)) {
            let (kind, place, comment, value) = row;
            let value = value(&found);
            if wish.resets {
                *reset = value;
                continue;
            }
            // `clear counters` may have reset the value in between.
            let value = value.checked_sub(*reset).unwrap_or(value);
            if value > 0 || wish.all {
                call.answer.push(std::mem::take(&mut head));
                let _ = writeln!(call.answer, "{value:<10} {kind} {place}: \"{comment}\"");
            }
        }
        Ok(())
    })
}
