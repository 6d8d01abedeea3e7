//! `eject-outliers`: which servers are ejected, for how long, and which never are.

use super::*;
use config::spec::OutlierSpec;
use std::time::Duration;

const OK: Observation = Observation { took: Some(Duration::from_millis(10)), failed: false };
const FAILED: Observation = Observation { took: None, failed: true };

fn at(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn watched(servers: usize, outliers: OutlierSpec) -> Arc<ProxyState> {
    let mut proxy = plan(BalanceSpec::RoundRobin, &vec![Plan(1, 0, 0); servers]);
    proxy.outliers = Some(outliers);
    state_of(proxy)
}

fn errors(percent: u32) -> OutlierSpec {
    OutlierSpec { errors: Some(percent), ..OutlierSpec::default() }
}

/// Reports that number of consecutive failures; returns the ejection if there is one.
fn fail(state: &ProxyState, server: usize, times: usize, now: Moment) -> Option<Ejection> {
    (0..times).find_map(|_| state.heed(server, FAILED, now))
}

#[test]
fn who_fails_too_often_gets_nothing_for_longer_and_longer() {
    let state = watched(4, errors(50));
    assert_eq!(fail(&state, 0, 19, at(0)), None, "too few to judge");
    let first = state.heed(0, FAILED, at(1)).unwrap();
    assert_eq!((first.period, first.ejected, first.left), (Duration::from_secs(30), 1, 3));
    assert_eq!(first.reason, Reason::Errors { failed: 20, of: 20 });
    assert!((0..12).all(|_| slot(state.assign(&ANY)).server() != 0));
    assert_eq!(slot(state.assign(&bound(0))).server(), 1, "who is bound to it goes elsewhere");
    assert!(state.status(0).unwrap().ejected);
    // Requests that were in flight are no longer counted.
    assert_eq!(fail(&state, 0, 50, at(2)), None);
    assert!(!state.end_ejection(0, at(29_000), at(30_001)), "that was another one");
    assert!(state.end_ejection(0, first.until, at(30_001)));
    assert!(!state.end_ejection(0, first.until, at(30_001)));
    let second = fail(&state, 0, 20, at(31_000)).unwrap();
    assert_eq!(second.period, Duration::from_secs(60));
    assert!(state.end_ejection(0, second.until, at(91_000)));
    // Without failures the level decreases step by step.
    for step in 0..40 {
        assert_eq!(state.heed(0, OK, at(91_000 + step * 5_000)), None);
    }
    assert_eq!(fail(&state, 0, 40, at(400_000)).unwrap().period, Duration::from_secs(30));
}

#[test]
fn failures_are_a_share_of_what_the_window_saw() {
    let state = watched(2, errors(50));
    (0..40).for_each(|_| assert_eq!(state.heed(0, OK, at(0)), None));
    assert_eq!(fail(&state, 0, 39, at(1)), None);
    assert!(state.heed(0, FAILED, at(2)).is_some());
    let state = watched(2, errors(50));
    (0..19).for_each(|_| assert_eq!(state.heed(0, FAILED, at(0)), None));
    assert_eq!(fail(&state, 0, 19, at(11_000)), None, "the window has gone on");
}

#[test]
fn some_are_always_left() {
    for most in [0, 10, 50, 100] {
        let state = watched(5, OutlierSpec { max_ejected: most, ..errors(10) });
        let ejected = (0..5).filter(|server| fail(&state, *server, 30, at(0)).is_some()).count();
        assert_eq!(ejected, (5 * most as usize / 100).clamp(1, 4), "{most}");
        assert!(matches!(state.assign(&ANY), Assignment::Slot(_)));
    }
    let alone = watched(1, errors(10));
    assert_eq!(fail(&alone, 0, 100, at(0)), None);
}

#[test]
fn who_is_slower_than_the_others_is_ejected_where_that_is_asked_for() {
    let slow = Observation { took: Some(Duration::from_millis(100)), failed: false };
    for (latency, expected) in [(None, false), (Some(300), true), (Some(2_000), false)] {
        let state = watched(3, OutlierSpec { latency, ..OutlierSpec::default() });
        let mut found = None;
        for _ in 0..64 {
            for (server, seen) in [(1, OK), (2, OK), (0, slow)] {
                found = found.or(state.heed(server, seen, at(5)));
            }
        }
        assert_eq!(found.is_some(), expected, "{latency:?}");
        if let Some(ejection) = found {
            let (mean, others) = (Duration::from_millis(100), Duration::from_millis(10));
            assert_eq!(ejection.reason, Reason::Latency { mean, others });
        }
    }
}

#[test]
fn the_administrators_word_counts_more() {
    let state = watched(3, errors(50));
    let ejection = fail(&state, 0, 20, at(0)).unwrap();
    state.set_admin(0, Admin::Ready, at(1));
    assert!(!state.status(0).unwrap().ejected);
    assert!(!state.end_ejection(0, ejection.until, at(30_000)));
    let ejection = fail(&state, 0, 20, at(40_000)).unwrap();
    state.set_admin(0, Admin::Maintenance, at(40_001));
    assert!(state.end_ejection(0, ejection.until, at(140_000)));
    assert!((0..6).all(|_| slot(state.assign(&ANY)).server() != 0), "it is still in maintenance");
}
