//! The process as a whole: the values of `show info` and the load of its threads. Must never count anything.

use std::rc::Rc;

use engine::worker::Worker;
use live::ServerCounts;

use super::answer::{Answer, put};
use super::json::{Commas, JsonValue, Quoted, Seconds};
use super::objects::{each, write_counts};
use super::request::DashboardRequest;
use crate::field::Value;
use crate::statistics::B;
use crate::statistics::process::{ProcessInfo, ROWS, look};

/// The load of a worker.
pub(super) struct Thread {
    here: (u64, u64),
    /// Percent of the time that it was not idle.
    busy: u32,
    /// Processor time of its thread in milliseconds.
    used: u128,
    sessions: usize,
}

fn thread(worker: &Rc<Worker>) -> Thread {
    Thread {
        here: look(worker),
        busy: 100 - rt::idle_percent().min(100),
        used: rt::processor_time().as_millis(),
        sessions: worker.tasks_here(),
    }
}

/// Collects the load of every worker.
pub(super) async fn threads(asked: &DashboardRequest) -> Vec<Thread> {
    engine::on_every_worker(&asked.worker.process, thread).await
}

/// Seconds since the Unix epoch, with milliseconds.
pub(super) fn time() -> String {
    Seconds(rt::wall()).to_string()
}

/// Writes the members `process` and `threads`; `names`: the values of `show info`; `None`: all of them.
pub(super) fn write(asked: &DashboardRequest, threads: &[Thread], names: Option<&[&str]>, out: &mut String) {
    let here: Vec<(u64, u64)> = threads.iter().map(|thread| thread.here).collect();
    let info = ProcessInfo::gather(&asked.worker, &asked.generation.program, &here, true);
    out.push_str("\"process\":{");
    let mut commas = Commas::default();
    let rows = ROWS.iter().filter(|row| names.is_none_or(|names| names.contains(&row.field.name)));
    for row in rows {
        // As on the page: the version is shown only if the configuration says so.
        let is_version = matches!(row.field.name, "Version" | "Release_date" | "Build info" | "Implementation");
        let value = (row.value)(&info);
        if value != Value::None && (!is_version || asked.page().is_some_and(|page| page.shows_version)) {
            put(out, format_args!("{}{}:{}", commas.next(), Quoted(row.field.name), JsonValue(&value)));
        }
    }
    out.push_str("},\"threads\":[");
    let mut commas = Commas::default();
    for Thread { busy, used, sessions, .. } in threads {
        let comma = commas.next();
        put(out, format_args!("{comma}{{\"busy_pct\":{busy},\"cpu_ms\":{used},\"sessions\":{sessions}}}"));
    }
    out.push(']');
}

/// Returns the numbers of servers by state, over all backends that are shown.
async fn server_counts(asked: &DashboardRequest, answer: &mut Answer) -> ServerCounts {
    let mut counts = ServerCounts::default();
    each(asked, answer, B, |_| true, |object, _| counts += object.server_counts().unwrap_or_default()).await;
    counts
}

/// `overview`.
pub(super) async fn show(asked: DashboardRequest, mut answer: Answer) {
    let threads = threads(&asked).await;
    let program = &asked.generation.program;
    let shown = || program.proxies.iter().filter(|proxy| asked.shows(proxy));
    let mut text = format!("{{\"time\":{},\"admin\":{},", time(), asked.admin());
    put(
        &mut text,
        format_args!(
            "\"config\":{},\"frontends\":{},\"backends\":{},\"servers\":{},",
            super::configuration::is_shown(&asked),
            shown().filter(|proxy| proxy.frontend.is_some()).count(),
            shown().filter(|proxy| proxy.backend.is_some()).count(),
            shown().map(|proxy| proxy.servers().count()).sum::<usize>(),
        ),
    );
    write(&asked, &threads, None, &mut text);
    let counts = server_counts(&asked, &mut answer).await;
    text.push_str(",\"server_counts\":");
    write_counts(&counts, &mut text);
    text.push_str("}\n");
    answer.begin_json();
    answer.push(&text);
}
