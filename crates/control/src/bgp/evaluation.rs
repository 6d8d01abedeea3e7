//! Evaluates the conditions of a section whenever a server changes its state, and in an interval. Must never evaluate a condition
//! that needs a stream.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use config::spec::LogLevel;
use engine::health_watch::HealthWatch;
use engine::service::streamless_context::lend_process;
use policy::program::BgpCondition;

use super::speakers::SpeakerTasks;

/// Maximum interval between two evaluations: not everything that a condition reads reports its changes.
const INTERVAL: Duration = Duration::from_millis(500);

/// Evaluates the conditions of a section until the process leaves.
pub(super) async fn keep(tasks: Rc<SpeakerTasks>) {
    tasks.worker.watch_stop().await;
    let mut timer = rt::Timer::new();
    let mut is_watching = false;
    poll_fn(|cx| {
        if !std::mem::replace(&mut is_watching, true) {
            tasks.worker.process.service::<HealthWatch>().watch(cx);
        }
        poll_stopped(&tasks, &mut timer, cx)
    })
    .await;
}

fn poll_stopped(tasks: &SpeakerTasks, timer: &mut rt::Timer, cx: &mut Context<'_>) -> Poll<()> {
    if tasks.is_over() {
        return Poll::Ready(());
    }
    let now = rt::now();
    let wanted = evaluate(tasks);
    let settled = tasks.with(|state| {
        let before: Vec<_> = (0..wanted.len()).map(|route| state.routes.current(route)).collect();
        wanted.iter().enumerate().for_each(|(route, wanted)| state.routes.want(route, *wanted));
        let is_changed = state.routes.settle(now);
        let changes = before.into_iter().enumerate().filter(|(route, before)| state.routes.current(*route) != *before);
        let changes: Vec<_> = changes.map(|(route, _)| (route, state.routes.current(route))).collect();
        (is_changed.then_some(changes), state.routes.deadline())
    });
    let (changes, deadline) = settled.unwrap_or_default();
    if let Some(changes) = changes {
        tasks.wake_neighbors();
        let routes = tasks.routes();
        for (route, current) in changes {
            let Some(plan) = routes.get(route) else { continue };
            let what = if current.is_some() { "announced" } else { "withdrawn" };
            tasks.log(LogLevel::Notice, &format!("{} is {what}", plan.prefix));
        }
    }
    timer.arm(deadline.into_iter().chain([now + INTERVAL]).min());
    if timer.poll_expired(cx).is_ready() {
        cx.waker().wake_by_ref();
    }
    Poll::Pending
}

/// Returns for each route the first announcement whose condition holds.
fn evaluate(tasks: &SpeakerTasks) -> Vec<Option<usize>> {
    let generation = tasks.worker.generation();
    let Some(speaker) = generation.program.bgp.get(tasks.section) else { return Vec::new() };
    lend_process(&tasks.worker, &generation, &speaker.name, |context| {
        let first = |conditions: &Vec<BgpCondition>| conditions.iter().position(|condition| condition.holds(context));
        speaker.conditions.iter().map(first).collect()
    })
}
