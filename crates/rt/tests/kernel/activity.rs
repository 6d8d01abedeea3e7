//! The counters of a worker's event loop. Nothing here depends on how long an iteration takes.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::rt;
use crate::support::*;
use rt::{Activity, Class, NO_TAG};

/// Returns the difference of the counters since `start`.
fn since(start: Activity) -> Activity {
    let now = rt::activity();
    Activity {
        turns: now.turns - start.turns,
        unwaited: now.unwaited - start.unwaited,
        idle: now.idle - start.idle,
        crowded: now.crowded - start.crowded,
        calls: now.calls.wrapping_sub(start.calls),
        jobs: now.jobs - start.jobs,
        tagged: now.tagged - start.tagged,
        ..now
    }
}

#[test]
fn iterations_that_leave_tasks_queued_and_do_not_wait_are_counted() {
    on_one_worker(|| async {
        turns(1).await;
        let start = rt::activity();
        turns(10).await;
        let found = since(start);
        assert_eq!((found.turns, found.calls, found.jobs, found.idle), (10, 10, 0, 0));
        assert_eq!((found.crowded, found.unwaited), (10, 10));
    });
}

#[test]
fn calls_of_jobs_and_of_tasks_with_a_tag_are_counted_apart() {
    on_one_worker(|| async {
        turns(1).await;
        let start = rt::activity();
        rt::spawn(Class::Normal, 7, turns(2));
        rt::spawn(Class::Normal, NO_TAG, turns(2));
        rt::post(0, Box::new(|| {}));
        turns(5).await;
        let found = since(start);
        assert_eq!((found.jobs, found.tagged, found.calls), (1, 3, 1 + 3 + 3 + 5));
    });
}

/// Runs a job after `count` others, each in an iteration of its own.
fn after(count: usize, last: fn()) {
    rt::post(0, Box::new(move || if count == 0 { last() } else { after(count - 1, last) }));
}

#[test]
fn iterations_without_a_task_are_counted() {
    thread_local!(static WAITING: Cell<Option<Waker>> = const { Cell::new(None) });
    on_one_worker(|| async {
        turns(1).await;
        let start = rt::activity();
        let called = Rc::new(Cell::new(false));
        // Each job but the last is all that its iteration runs; the last one wakes this task.
        after(3, || WAITING.take().into_iter().for_each(Waker::wake));
        poll_fn(|context| {
            if called.replace(true) {
                return Poll::Ready(());
            }
            WAITING.set(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        let found = since(start);
        assert_eq!((found.jobs, found.idle), (4, 3));
    });
}
