//! Timers on the virtual clock: never early, and late by less than two milliseconds.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;

use crate::rt;
use crate::support::*;
use rt::Timer;

/// Maximum delay of a timer: its wheel's tick, and some rounds of iterations.
const LATEST: Duration = Duration::from_micros(1_100);

#[test]
fn a_day_passes_at_once() {
    rt::sim::run(1, 1, idle(), async {
        let (begun, wall) = (rt::now(), rt::wall());
        rt::sleep(Duration::from_secs(20 * 3600)).await;
        assert!(rt::now() >= begun + Duration::from_secs(20 * 3600));
        assert_eq!(rt::wall().seconds - wall.seconds, 20 * 3600);
    });
}

#[test]
fn pushing_a_deadline_ahead_wakes_seldom_and_never_early() {
    rt::sim::run(1, 1, idle(), async {
        let mut timer = Timer::new();
        let (mut polls, mut pushes) = (0, 0);
        let begun = rt::now();
        timer.arm(Some(begun + Duration::from_secs(30)));
        let mut tick = Timer::new();
        tick.arm(Some(begun + Duration::from_secs(1)));
        poll_fn(|context| {
            polls += 1;
            // Every second for 100 seconds the deadline moves to 30 seconds from then.
            if pushes < 100 && tick.poll_expired(context).is_ready() {
                pushes += 1;
                timer.arm(Some(rt::now() + Duration::from_secs(30)));
                tick.arm((pushes < 100).then(|| rt::now() + Duration::from_secs(1)));
                let _ = tick.poll_expired(context);
            }
            timer.poll_expired(context)
        })
        .await;
        let passed = rt::now().saturating_since(begun);
        assert!(passed >= Duration::from_secs(130) && passed < Duration::from_secs(131), "{passed:?}");
        assert!(polls <= 110, "{polls} polls: one a second, and few for the entries that were too early");
    });
}

#[test]
fn a_disarmed_timer_stays_silent_and_an_earlier_deadline_is_kept() {
    rt::sim::run(1, 1, idle(), async {
        let mut timer = Timer::new();
        let begun = rt::now();
        timer.arm(Some(begun + Duration::from_secs(1)));
        let mut guard = Timer::new();
        guard.arm(Some(begun + Duration::from_secs(5)));
        let expired = poll_fn(|context| {
            let expired = timer.poll_expired(context);
            timer.arm(None);
            if expired.is_ready() { Poll::Ready(true) } else { guard.poll_expired(context).map(|()| false) }
        })
        .await;
        assert!(!expired);
        assert_eq!(timer.deadline(), None);
        timer.arm(Some(rt::now() + Duration::from_secs(60)));
        let _ = poll_fn(|context| Poll::Ready(timer.poll_expired(context))).await;
        let armed = rt::now();
        timer.arm(Some(armed + Duration::from_secs(2)));
        poll_fn(|context| timer.poll_expired(context)).await;
        assert!(rt::now() < armed + Duration::from_secs(2) + LATEST);
    });
}

#[derive(Clone, Debug)]
struct Plan {
    start: u64,
    deadline: u64,
    /// Deadlines that replace the first, and when.
    changes: Vec<(u64, u64)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let micros = prop_oneof![0..5_000u64, 0..500_000u64, 0..3_600_000_000u64];
    let changes = prop::collection::vec((0..2_000_000u64, micros.clone()), 0..4);
    (0..1_000_000u64, micros, changes).prop_map(|(start, deadline, changes)| Plan { start, deadline, changes })
}

/// Arms one timer by a plan; returns its last deadline and when it fired.
async fn follow(plan: Plan) -> (base::Moment, base::Moment) {
    let micros = Duration::from_micros;
    rt::sleep(micros(plan.start)).await;
    let (mut timer, mut change) = (Timer::new(), Timer::new());
    timer.arm(Some(rt::now() + micros(plan.deadline)));
    let mut changes = plan.changes.into_iter();
    let mut next = changes.next();
    change.arm(next.map(|(after, _)| rt::now() + micros(after)));
    poll_fn(|context| {
        if timer.poll_expired(context).is_ready() {
            return Poll::Ready(());
        }
        while change.poll_expired(context).is_ready() {
            if let Some((_, deadline)) = next {
                timer.arm(Some(rt::now() + micros(deadline)));
            }
            next = changes.next();
            change.arm(next.map(|(after, _)| rt::now() + micros(after)));
        }
        timer.poll_expired(context)
    })
    .await;
    (timer.deadline().unwrap(), rt::now())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]
    #[test]
    fn timers_are_never_early_and_hardly_late(seed: u64, plans in prop::collection::vec(plan(), 1..40)) {
        let count = plans.len();
        let fired = rt::sim::run(seed, 1, idle(), async move {
            let fired = Rc::new(RefCell::new(Vec::new()));
            for plan in plans {
                let fired = Rc::clone(&fired);
                rt::spawn(rt::Class::Normal, 0, async move {
                    let result = follow(plan).await;
                    fired.borrow_mut().push(result);
                });
            }
            while fired.borrow().len() < count {
                rt::sleep(Duration::from_secs(1)).await;
            }
            fired.take()
        });
        for (deadline, at) in fired {
            prop_assert!(at >= deadline, "early by {:?}", deadline.saturating_since(at));
            prop_assert!(at <= deadline + LATEST, "late by {:?}", at.saturating_since(deadline));
        }
    }
}

#[test]
fn an_alarm_is_met_to_the_microsecond_and_can_be_set_anew() {
    rt::sim::run(1, 1, idle(), async {
        let mut alarm = rt::Alarm::new().unwrap();
        let begun = rt::now();
        for micros in [10, 1_234, 1_235, 500_000] {
            let moment = begun + Duration::from_micros(micros);
            poll_fn(|context| alarm.poll_at(context, moment)).await.unwrap();
            let late = rt::now().saturating_since(moment);
            assert!(rt::now() >= moment && late < Duration::from_micros(5), "{micros}: {late:?}");
        }
        // The earlier deadline is discarded.
        let mut polls = 0;
        let (early, late) = (rt::now() + Duration::from_secs(1), rt::now() + Duration::from_secs(2));
        poll_fn(|context| {
            polls += 1;
            if polls == 1 {
                assert!(alarm.poll_at(context, early).is_pending());
            }
            alarm.poll_at(context, late)
        })
        .await
        .unwrap();
        assert_eq!(polls, 2);
    });
}

/// Completes after `calls` polls.
async fn counts_down(mut calls: u32) {
    while calls > 1 {
        rt::yield_now().await;
        calls -= 1;
    }
}

#[test]
fn what_tasks_cost_is_known_by_their_functions() {
    under_seeds(|| async {
        rt::spawn(rt::Class::Normal, rt::NO_TAG, counts_down(1));
        rt::measure_tasks(true);
        rt::spawn(rt::Class::Normal, rt::NO_TAG, counts_down(2));
        rt::spawn_with(rt::Class::Background, rt::NO_TAG, 4, counts_down);
        let of = |profile: &rt::Profile| {
            let mut rows = profile.functions.iter().filter(|row| row.name.contains("counts_down"));
            rows.next().map(|row| (row.calls, row.queued))
        };
        assert_eq!(of(&rt::task_profile()), Some((0, 3)), "they are queued");
        rt::sleep(std::time::Duration::from_millis(5)).await;
        let profile = rt::task_profile();
        assert_eq!(of(&profile), Some((7, 0)));
        assert!(profile.since.is_some() && profile.until.is_none());
        rt::measure_tasks(false);
        rt::spawn(rt::Class::Normal, rt::NO_TAG, counts_down(1));
        rt::sleep(std::time::Duration::from_millis(5)).await;
        assert_eq!(of(&rt::task_profile()), Some((7, 0)), "nothing is added any more");
    });
}
