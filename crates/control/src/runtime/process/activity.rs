//! `show activity`, `show threads`, `show startup-logs`: diagnostics for support (management manual, section 9.3). Must
//! never stop a worker to inspect it.

use std::fmt::Write as _;

use config::spec::RuntimeLevel;

use super::super::{Call, Command, Pending, Run};
use engine::worker::Worker;

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
    let text = &call.state.process.host.startup_logs;
    call.answer.push(text);
    if !text.is_empty() && !text.ends_with('\n') {
        call.answer.push("\n");
    }
}

/// Counters of a worker.
struct Activity {
    /// Counters of its event loop.
    turns: rt::Activity,
    /// Percent of the time that it was not idle.
    busy: u32,
    /// Processor time of its thread.
    used: std::time::Duration,
    tasks: usize,
    sessions: usize,
    buffers: usize,
    streams: u64,
    takeovers: u64,
    /// Connections accepted by the worker, and received from another worker.
    accepted: u64,
    received: u64,
    checks: u64,
    running_checks: u64,
}

impl Activity {
    fn of(worker: &Worker) -> Self {
        let own = &worker.activity;
        Self {
            turns: rt::activity(),
            busy: 100 - rt::idle_percent().min(100),
            used: rt::processor_time(),
            tasks: rt::tasks(),
            sessions: worker.tasks_here(),
            buffers: rt::buffers_in_use(),
            streams: worker.requests(),
            takeovers: worker.links.takeovers(),
            accepted: own.accepted.get(),
            received: own.received.get(),
            checks: own.checks.get(),
            running_checks: own.running_checks.get(),
        }
    }

    /// Returns the values of the lines; counters are relative to the last `clear counters`.
    fn lines(&self, worker: &Worker) -> Vec<u64> {
        let cleared = worker.activity.cleared.borrow();
        let lines = LINES.iter().enumerate().map(|(at, (_, kind, value))| match kind {
            Kind::Counter => value(self).wrapping_sub(cleared.get(at).copied().unwrap_or(0)) & MASK,
            Kind::Gauge | Kind::Average => value(self),
        });
        lines.collect()
    }
}

/// `clear counters`: resets the counters of this worker.
pub(super) fn clear(worker: &Worker) {
    let now = Activity::of(worker);
    *worker.activity.cleared.borrow_mut() = LINES.iter().map(|(_, _, value)| value(&now)).collect();
}

/// Counters wrap at 32 bits, as in HAProxy.
const MASK: u64 = 0xffff_ffff;

/// The type of a line.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Events since the last `clear counters`, summed over the workers.
    Counter,
    /// Current value, summed over the workers.
    Gauge,
    /// Current value, averaged over the workers.
    Average,
}

/// A line of `show activity`: its name, its type, and its value for one worker.
type Line = (&'static str, Kind, fn(&Activity) -> u64);

/// HAProxy's lines that apply to Weir, in HAProxy's order, then Weir's own.
const LINES: &[Line] = &[
    ("ctxsw", Kind::Counter, |one| u64::from(one.turns.calls)),
    ("tasksw", Kind::Counter, |one| u64::from(one.turns.calls).wrapping_sub(one.turns.jobs)),
    ("empty_rq", Kind::Counter, |one| one.turns.idle),
    ("long_rq", Kind::Counter, |one| one.turns.crowded),
    ("curr_rq", Kind::Gauge, |one| one.turns.queued as u64),
    ("loops", Kind::Counter, |one| one.turns.turns),
    ("wake_tasks", Kind::Counter, |one| one.turns.unwaited),
    ("poll_io", Kind::Counter, |one| one.turns.eventful),
    ("poll_exp", Kind::Counter, |one| one.turns.overdue),
    ("poll_drop_fd", Kind::Counter, |one| one.turns.stray),
    ("stream_calls", Kind::Counter, |one| one.turns.tagged),
    ("buf_wait", Kind::Counter, |one| one.turns.memory_waits),
    ("avg_cpu_pct", Kind::Average, |one| u64::from(one.busy)),
    ("avg_loop_us", Kind::Average, |one| u64::from(one.turns.average_micros)),
    ("accepted", Kind::Counter, |one| one.accepted),
    ("accq_pushed", Kind::Counter, |one| one.received),
    ("fd_takeover", Kind::Counter, |one| one.takeovers),
    ("check_started", Kind::Counter, |one| one.checks),
    ("check_active", Kind::Gauge, |one| one.running_checks),
    ("check_running", Kind::Gauge, |one| one.running_checks),
    ("cpu_ms_tot", Kind::Counter, |one| one.used.as_millis() as u64),
    ("tasks", Kind::Gauge, |one| one.tasks as u64),
    ("sessions", Kind::Gauge, |one| one.sessions as u64),
    ("buffers", Kind::Gauge, |one| one.buffers as u64),
    ("streams", Kind::Counter, |one| one.streams),
];

/// `-1` or no argument shows all threads and their sum; 0 the sum; another number that thread.
fn show_activity<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let found = engine::on_every_worker(&call.state.process, |worker| Activity::of(worker).lines(worker)).await;
        // An invalid number counts as 0.
        let which = if call.word(2).is_empty() { -1 } else { call.word(2).parse::<i64>().unwrap_or(0) };
        if !(-1..=i64::try_from(found.len()).unwrap_or(i64::MAX)).contains(&which) {
            call.refuse("Thread ID number must be between -1 and nbthread");
            return Ok(());
        }
        let (now, up) = (rt::wall(), call.state.process.host.uptime());
        let _ = write!(
            call.answer,
            "thread_id: {} (1..{})\ndate_now: {}.{:06}\nuptime_now: {:.6}\n",
            call.state.id + 1,
            found.len(),
            now.seconds,
            now.nanos / 1_000,
            up.as_secs_f64()
        );
        for (at, (name, kind, _)) in LINES.iter().enumerate() {
            let values: Vec<u64> = found.iter().map(|lines| lines.get(at).copied().unwrap_or(0)).collect();
            let sum: u64 = values.iter().sum();
            let sum = if *kind == Kind::Average { sum / values.len().max(1) as u64 } else { sum };
            let _ = write!(call.answer, "{name}: ");
            let _ = match usize::try_from(which) {
                Ok(0) => writeln!(call.answer, "{sum}"),
                Ok(number) => writeln!(call.answer, "{}", values.get(number - 1).copied().unwrap_or(0)),
                Err(_) if values.len() == 1 => writeln!(call.answer, "{sum}"),
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
        let found = engine::on_every_worker(&call.state.process, |worker| {
            let one = Activity::of(worker);
            let lines = one.lines(worker);
            let line = |name| LINES.iter().position(|(own, ..)| *own == name).map_or(0, |at| lines[at]);
            let counts = [line("loops"), line("ctxsw")];
            (one, counts)
        });
        for (number, (one, [loops, calls])) in found.await.into_iter().enumerate() {
            let mark = if number == call.state.id { '*' } else { ' ' };
            let number = number + 1;
            let _ = writeln!(
                call.answer,
                "{mark} Thread {number} : act={} wq={} rq={} tasks={} sessions={} buffers={}\n      \
                 1/{number:<4} loops={loops} ctxsw={calls} prof={}\n             cpu_ns: now={}",
                u32::from(one.turns.queued > 0),
                u32::from(one.turns.has_timers),
                one.turns.queued,
                one.tasks,
                one.sessions,
                one.buffers,
                u32::from(one.turns.measures),
                one.used.as_nanos()
            );
        }
        Ok(())
    })
}
