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
    tasks: usize,
    sessions: usize,
    buffers: usize,
    streams: u64,
    accepted: u64,
}

impl Activity {
    fn of(worker: &std::rc::Rc<Worker>) -> Self {
        Self {
            tasks: rt::tasks(),
            sessions: worker.sessions_here(),
            buffers: rt::buffers_in_use(),
            streams: worker.requests(),
            accepted: worker.tallies().process.connections.get(),
        }
    }
}

/// One line of `show activity`: its name, and what it shows of a worker.
type Line = (&'static str, fn(&Activity) -> u64);

const LINES: &[Line] = &[
    ("tasks", |one| one.tasks as u64),
    ("sessions", |one| one.sessions as u64),
    ("buffers", |one| one.buffers as u64),
    ("streams", |one| one.streams),
    ("accepted", |one| one.accepted),
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
        for (name, value) in LINES {
            let values: Vec<u64> = found.iter().map(value).collect();
            let sum: u64 = values.iter().sum();
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
            let _ = writeln!(
                call.answer,
                "{mark} Thread {} : act={} tasks={} sessions={} buffers={}",
                number + 1,
                u32::from(one.sessions > 0),
                one.tasks,
                one.sessions,
                one.buffers
            );
        }
        Ok(())
    })
}
