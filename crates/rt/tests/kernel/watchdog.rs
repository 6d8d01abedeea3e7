//! The watchdog, with tasks that block their worker until they have been reported.

use crate::rt;
use rt::watchdog::{Stage, Stall};
use rt::{Class, Config, Watchdog};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The content of a report.
#[derive(Debug, PartialEq)]
struct StallReport {
    worker: u16,
    tag: Option<u64>,
    stage: Stage,
}

/// Runs two workers. On the second one, a task with a tag does not return before the report that `until` waits for.
fn watched(warn_after: Duration, give_up_after: Duration, until: fn(&Stall<'_>) -> bool) -> (Vec<StallReport>, usize) {
    let free = Arc::new(AtomicBool::new(false));
    let told = Arc::new(Mutex::new((Vec::new(), 0)));
    let (release, notes) = (Arc::clone(&free), Arc::clone(&told));
    let report = move |stall: &Stall<'_>| {
        let mut notes = notes.lock().unwrap();
        notes.0.push(StallReport { worker: stall.worker, tag: stall.tag, stage: stall.stage });
        notes.1 = stall.frames.len();
        if until(stall) {
            release.store(true, Ordering::SeqCst);
        }
    };
    let watchdog = Some(Watchdog { warn_after, give_up_after, report: Arc::new(report), afterwards: Some(note) });
    let config = Config { workers: 2, watchdog, ..Config::default() };
    let main: rt::Main = Arc::new(move |worker| {
        let free = Arc::clone(&free);
        Box::pin(async move {
            if worker == 1 {
                rt::spawn(Class::Normal, 77, async move {
                    while !free.load(Ordering::SeqCst) {
                        std::hint::spin_loop();
                    }
                    // The mailbox is read before this runs again.
                    rt::yield_now().await;
                    rt::stop();
                });
            }
        })
    });
    std::thread::spawn(move || rt::run(&config, main).unwrap()).join().unwrap();
    Arc::into_inner(told).unwrap().into_inner().unwrap()
}

static AFTERWARDS: AtomicU64 = AtomicU64::new(0);

fn note(tag: u64, _: Stage) {
    assert!(rt::is_on_worker());
    AFTERWARDS.store(tag, Ordering::SeqCst);
}

#[test]
fn a_task_that_does_not_return_is_reported_with_its_tag_and_its_place() {
    let day = Duration::from_secs(86_400);
    let (told, frames) = watched(Duration::from_millis(20), day, |_| true);
    assert_eq!(told[0], StallReport { worker: 1, tag: Some(77), stage: Stage::Slow });
    assert_eq!(AFTERWARDS.load(Ordering::SeqCst), 77);
    assert!(frames > 3 || cfg!(not(target_env = "gnu")), "{frames}");
}

#[test]
fn one_that_never_returns_is_given_up() {
    let (told, _) = watched(Duration::from_millis(20), Duration::from_millis(60), |stall| stall.stage == Stage::Stuck);
    assert_eq!(told.last().unwrap(), &StallReport { worker: 1, tag: Some(77), stage: Stage::Stuck });
}
