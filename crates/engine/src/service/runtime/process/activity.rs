//! `show activity`, `show threads`, `show startup-logs`: what support asks for (management manual, section 9.3). Must
//! never stop a worker to look at it.

use std::fmt::Write as _;

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Pending, Run};
use crate::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "show startup-logs",
        "show startup-logs",
        "report logs emitted during HAProxy startup",
        Run::Now(show_startup_logs),
    )
    .at(RuntimeLevel::Operator),
    Command::new(
        "show activity",
        "show activity [-1|0|thread_num]",
        "show per-thread activity stats (for support/developers)",
        Run::Gradual(show_activity),
    )
    .at(RuntimeLevel::Operator),
    Command::new("show threads", "show threads", "show some threads debugging information", Run::Gradual(show_threads)),
];

fn show_startup_logs(call: &mut Call<'_, Worker>) {
    let text = &call.state.shared.host.startup_logs;
    call.answer.push(text);
    if !text.is_empty() && !text.ends_with('\n') {
        call.answer.push("\n");
    }
}

/// What a worker tells of itself.
struct Activity {
    /// Of its loop.
    turns: rt::Activity,
    /// Percent of its time that it did not wait.
    busy: u32,
    /// Processor time of its thread.
    used: std::time::Duration,
    tasks: usize,
    sessions: usize,
    buffers: usize,
    streams: u64,
    accepted: u64,
}

impl Activity {
    fn of(worker: &std::rc::Rc<Worker>) -> Self {
        Self {
            turns: rt::activity(),
            busy: 100 - rt::idle_percent().min(100),
            used: rt::processor_time(),
            tasks: rt::tasks(),
            sessions: worker.sessions_here(),
            buffers: rt::buffers_in_use(),
            streams: worker.requests(),
            accepted: worker.tallies().process.connections.get(),
        }
    }
}

/// What the first number of a line is.
#[derive(Clone, Copy, PartialEq)]
enum Whole {
    Sum,
    Average,
}

/// One line of `show activity`: its name, what it shows of all workers, and of one.
type Line = (&'static str, Whole, fn(&Activity) -> u64);

/// HAProxy's lines that mean something here, in its order, and then those of Weir alone.
const LINES: &[Line] = &[
    ("ctxsw", Whole::Sum, |one| u64::from(one.turns.calls)),
    ("curr_rq", Whole::Sum, |one| one.turns.queued as u64),
    ("loops", Whole::Sum, |one| one.turns.turns),
    ("poll_io", Whole::Sum, |one| one.turns.eventful),
    ("cpu_ms_tot", Whole::Sum, |one| one.used.as_millis() as u64),
    ("avg_cpu_pct", Whole::Average, |one| u64::from(one.busy)),
    ("accepted", Whole::Sum, |one| one.accepted),
    ("tasks", Whole::Sum, |one| one.tasks as u64),
    ("sessions", Whole::Sum, |one| one.sessions as u64),
    ("buffers", Whole::Sum, |one| one.buffers as u64),
    ("streams", Whole::Sum, |one| one.streams),
];

/// `-1`, or nothing, shows all threads and their sum; 0 the sum; a number that thread alone.
fn show_activity<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let found = crate::on_every_worker(&call.state.shared, Activity::of).await;
        // What is no number counts as 0.
        let which = if call.word(2).is_empty() { -1 } else { call.word(2).parse::<i64>().unwrap_or(0) };
        if !(-1..=i64::try_from(found.len()).unwrap_or(i64::MAX)).contains(&which) {
            call.refuse("Thread ID number must be between -1 and nbthread");
            return Ok(());
        }
        let (now, up) = (rt::wall(), call.state.shared.host.uptime());
        let _ = write!(
            call.answer,
            "thread_id: {} (1..{})\ndate_now: {}.{:06}\nuptime_now: {:.6}\n",
            call.state.id + 1,
            found.len(),
            now.seconds,
            now.nanos / 1_000,
            up.as_secs_f64()
        );
        for (name, whole, value) in LINES {
            let values: Vec<u64> = found.iter().map(value).collect();
            let sum: u64 = values.iter().sum();
            let sum = if *whole == Whole::Average { sum / values.len().max(1) as u64 } else { sum };
            let _ = write!(call.answer, "{name}: ");
            let _ = match usize::try_from(which) {
                Ok(0) => writeln!(call.answer, "{sum}"),
                Ok(number) => writeln!(call.answer, "{}", values.get(number - 1).copied().unwrap_or(0)),
                Err(_) => {
                    let values: Vec<String> = values.iter().map(u64::to_string).collect();
                    writeln!(call.answer, "{sum} [ {} ]", values.join(" "))
                }
            };
        }
        Ok(())
    })
}

fn show_threads<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let found = crate::on_every_worker(&call.state.shared, Activity::of).await;
        for (number, one) in found.iter().enumerate() {
            let mark = if number == call.state.id { '*' } else { ' ' };
            let number = number + 1;
            let _ = writeln!(
                call.answer,
                "{mark} Thread {number} : act={} rq={} tasks={} sessions={} buffers={}\n      \
                 1/{number:<4} loops={} ctxsw={}\n             cpu_ns: now={}",
                u32::from(one.turns.queued > 0),
                one.turns.queued,
                one.tasks,
                one.sessions,
                one.buffers,
                one.turns.turns,
                one.turns.calls,
                one.used.as_nanos()
            );
        }
        Ok(())
    })
}
