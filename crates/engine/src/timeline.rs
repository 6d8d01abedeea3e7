//! Records events for the dashboard (`live::timeline`), while a configuration with one is served. Otherwise an event costs the test
//! of a flag. Must never decide what happens.

use std::rc::Rc;

use base::WallTime;
use live::timeline::{Author, Timeline, TimelineEvent, TimelineKind};
use policy::program::{Proxy, Server};

use crate::worker::{Process, Worker};

/// Turns the timeline, and the collection of errors' log lines, on or off as the newest configuration requires: at the start of a
/// worker, and after a reload in place.
pub(crate) fn follow(worker: &Rc<Worker>, is_reload: bool) {
    let timeline = worker.process.service::<Timeline>();
    let has_dashboard = worker.generation().program.has_dashboard();
    let was_on = timeline.turn(has_dashboard);
    worker.process.log_targets.keep_errors(has_dashboard);
    let (kind, text) = match is_reload {
        false if was_on => return,
        false => (TimelineKind::Start, "The process serves."),
        // One event for all workers.
        true if worker.id != 0 => return,
        true => (TimelineKind::Reload, "Another configuration is served."),
    };
    timeline.record(rt::wall(), TimelineEvent::of_process(kind, Author::Process, text));
}

/// Records that the process stops, on the first worker.
pub(crate) fn stopping(worker: &Worker) {
    if worker.id == 0 {
        record(&worker.process, rt::wall, || {
            TimelineEvent::of_process(TimelineKind::Stop, Author::Process, "The process accepts no new connections.")
        });
    }
}

/// Records that a certificate, a CA file or a CRL file was exchanged at a time. May be called on any thread.
pub fn certificate(process: &Process, name: &str, who: Author, time: WallTime) {
    record(
        process,
        || time,
        || {
            let text = format!("{name} was exchanged.");
            let event = TimelineEvent::of_process(TimelineKind::Certificate, who, text);
            TimelineEvent { name: name.into(), ..event }
        },
    );
}

/// Records an event of a server.
pub(crate) fn server(
    process: &Process,
    kind: TimelineKind,
    who: Author,
    proxy: &Proxy,
    server: &Server,
    text: impl FnOnce() -> String,
) {
    record(process, rt::wall, || TimelineEvent::of_server(kind, who, &proxy.name, &server.name, text()));
}

fn record(process: &Process, time: impl FnOnce() -> WallTime, event: impl FnOnce() -> TimelineEvent) {
    let timeline = process.service::<Timeline>();
    if timeline.is_on() {
        timeline.record(time(), event());
    }
}
