//! Pace of requests: limits, constant rates, ramp-ups, pauses; and latency that only a constant rate reveals.

use weir_tools::load::plan::{Pace, Plan};

use crate::support::*;

/// Asserts a count within 2 per cent, and two.
fn about(count: u64, expected: u64) {
    let most = expected / 50 + 2;
    assert!(count.abs_diff(expected) <= most, "{count} instead of {expected}");
}

#[test]
fn a_limit_is_kept_and_reached() {
    for (threads, rate) in [(1, 100.0), (3, 1_000.0)] {
        let plan = Plan { connections: 9, threads, duration: Some(seconds(4)), pace: Pace::AtMost(rate), ..plan() };
        let run = run(plan, |scope| async move { drop(serve(&scope, SERVER, || 1)) });
        about(run.total.answers, 4 * rate as u64);
        run.seconds[..4].iter().for_each(|second| about(second.3, rate as u64));
    }
}

#[test]
fn a_limit_does_not_make_up_for_a_slow_peer() {
    let plan = Plan { connections: 16, duration: Some(seconds(4)), pace: Pace::AtMost(1_000.0), ..plan() };
    let run = run(plan, |scope| async move { drop(serve(&scope, SERVER, || if elapsed() < 2_000 { 100 } else { 1 })) });
    about(run.seconds[1].3, 160);
    assert!(run.seconds[2].3 <= 1_030, "{}", run.seconds[2].3);
}

#[test]
fn rate_and_connections_rise_linearly() {
    let pace = Pace::AtMost(400.0);
    let ramp_up = seconds(4);
    let plan = Plan { connections: 7, duration: Some(seconds(6)), pace, ramp_up, ..plan() };
    let run = run(plan, |scope| async move { drop(serve(&scope, SERVER, || 1)) });
    let (open, answers): (Vec<u64>, Vec<u64>) = run.seconds.iter().map(|second| (second.2, second.3)).unzip();
    assert_eq!(open[..6], [2, 4, 6, 7, 7, 0], "all are closed at the end");
    for (count, expected) in answers.iter().zip([50, 150, 250, 350, 400, 400]) {
        about(*count, expected);
    }
}

#[test]
fn a_ramp_up_without_a_rate_is_one_of_connections() {
    let plan = Plan { connections: 9, duration: Some(seconds(3)), ramp_up: seconds(2), ..plan() };
    let run = run(plan, |scope| async move { drop(serve(&scope, SERVER, || 50)) });
    assert_eq!(run.seconds.iter().take(3).map(|second| second.2).collect::<Vec<_>>(), [5, 9, 9]);
}

#[test]
fn a_pause_follows_each_answer() {
    let plan = Plan { connections: 2, duration: Some(seconds(2)), think: millis(90), ..plan() };
    let run = run(plan, |scope| async move { drop(serve(&scope, SERVER, || 9)) });
    about(run.total.answers, 40);
    assert!(run.total.last_byte.mean() < 15e6, "the pause is no part of the answer's time");
}

#[test]
fn a_constant_rate_shows_a_stall_that_a_closed_loop_hides() {
    let stalls = || if (2_000..4_000).contains(&elapsed()) { 4_000 - elapsed() } else { 1 };
    let of = |pace| {
        let plan = Plan { connections: 4, threads: 2, duration: Some(seconds(8)), pace, ..plan() };
        run(plan, move |scope| async move { drop(serve(&scope, SERVER, stalls)) }).total
    };
    let hidden = of(Pace::AsFastAsAnswered);
    assert!(hidden.last_byte.histogram.value_at_quantile(0.99) < 10_000_000, "four answers of thousands were slow");
    let shown = of(Pace::Constant(100.0));
    about(shown.answers, 800);
    assert_eq!(shown.answers, shown.requests);
    let at = |quantile| shown.last_byte.histogram.value_at_quantile(quantile) / 1_000_000;
    // A quarter of the requests was due in the stall, and waited a second on average.
    assert!(at(0.70) < 20, "{}", at(0.70));
    assert!((700..1_200).contains(&at(0.87)), "{}", at(0.87));
    assert!((1_900..2_100).contains(&at(1.0)), "{}", at(1.0));
}

#[test]
fn a_constant_rate_is_even_and_late_by_microseconds() {
    let plan = Plan { connections: 16, duration: Some(seconds(2)), pace: Pace::Constant(2_000.0), ..plan() };
    let run = run(plan, |scope| async move { drop(serve(&scope, SERVER, || 0)) });
    assert_eq!(run.total.answers, 4_000, "not one of those that are due behind the end");
    // Some hundred microseconds for each direction, including connections and single bytes.
    assert!(run.total.last_byte.mean() < 1.2e6, "{}", run.total.last_byte.mean());
}

#[test]
fn what_was_due_and_never_sent_is_counted_with_how_long_it_waited() {
    let plan = Plan { duration: Some(seconds(4)), pace: Pace::Constant(100.0), ..plan() };
    let never = || if elapsed() < 2_000 { 1 } else { 1_000_000 };
    let run = run(plan, move |scope| async move { drop(serve(&scope, SERVER, never)) });
    about(run.total.answers, 200);
    about(run.total.unanswered, 200);
    assert_eq!(run.total.requests, run.total.answers + 1, "one was sent and never answered");
    assert_eq!(run.total.last_byte.len(), run.total.answers + run.total.unanswered);
    let at = |quantile| run.total.last_byte.histogram.value_at_quantile(quantile) / 1_000_000;
    assert!((900..1_100).contains(&at(0.75)) && at(0.99) > 1_900, "{} {}", at(0.75), at(0.99));
    assert!(run.length > seconds(33) && run.length < seconds(35), "answers are waited for, and not for ever");
}
