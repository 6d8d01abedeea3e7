//! Servers that drain, go to maintenance, go down and come back: which get requests, what happens to queued ones, and
//! `slowstart`.

use super::*;
use std::time::Duration;

fn at(millis: u64) -> Moment {
    Moment::ZERO + Duration::from_millis(millis)
}

/// The servers of `count` requests that end at once.
fn order(state: &Arc<ProxyState>, count: usize) -> String {
    (0..count)
        .map(|_| match state.assign(&ANY) {
            Assignment::Slot(slot) => char::from(b'a' + slot.server() as u8),
            Assignment::Unavailable => '-',
            other => panic!("{other:?}"),
        })
        .collect()
}

fn backups(allbackups: bool) -> Arc<ProxyState> {
    let mut proxy = plan(BalanceSpec::RoundRobin, &[Plan(1, 0, 0), Plan(1, 0, 0), Plan(2, 0, 0)]);
    proxy.servers[1].backup = true;
    proxy.servers[2].backup = true;
    proxy.allbackups = allbackups;
    state_of(proxy)
}

#[test]
fn backups_serve_while_nobody_else_can() {
    for (all, instead) in [(false, "bbbb"), (true, "ccbccb")] {
        let state = backups(all);
        assert_eq!(order(&state, 4), "aaaa");
        for change in [Admin::Drain, Admin::Maintenance] {
            state.set_admin(0, change, at(0));
            assert_eq!(order(&state, instead.len()), instead, "{all} {change:?}");
            state.set_admin(0, Admin::Ready, at(0));
            assert_eq!(order(&state, 3), "aaa");
        }
        set_up(&state, 0, false, at(0));
        assert_eq!(order(&state, 2).len(), 2);
        set_up(&state, 1, false, at(0));
        assert_eq!(order(&state, 3), "ccc", "the next backup");
        state.set_weight(2, 0);
        assert_eq!(order(&state, 2), "--");
    }
}

#[test]
fn who_drains_still_gets_what_is_bound_to_it_and_who_is_out_does_not() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 0, 0), Plan(1, 0, 0)]);
    state.set_admin(0, Admin::Drain, at(0));
    assert_eq!(order(&state, 3), "bbb");
    assert_eq!(slot(state.assign(&bound(0))).server(), 0);
    for _ in 0..2 {
        state.set_admin(0, Admin::Maintenance, at(0));
        assert_eq!(slot(state.assign(&bound(0))).server(), 1);
        state.set_admin(0, Admin::Ready, at(0));
        set_up(&state, 0, false, at(0));
        assert_eq!(slot(state.assign(&bound(0))).server(), 1, "ready, but down");
        set_up(&state, 0, true, at(0));
        assert_eq!(slot(state.assign(&bound(0))).server(), 0);
    }
    let status = state.status(0).unwrap();
    assert_eq!((status.admin, status.up, status.throttle, status.takes_part), (Admin::Ready, true, 100, true));
    assert_eq!(state.status(7), None);
}

#[test]
fn who_waits_for_a_server_that_goes_down_is_served_by_another() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0), Plan(1, 1, 0)]);
    let (first, _second) = (slot(state.assign(&bound(0))), slot(state.assign(&bound(1))));
    let (bell, waker) = Bell::new();
    let mut waiting = ticket(state.assign(&bound(0)));
    assert!(poll(&mut waiting, &waker).is_none());
    set_up(&state, 0, false, at(0));
    assert_eq!((waiting.server(), bell.rings()), (None, 0), "in the backend's queue now");
    drop(first);
    assert_eq!(bell.rings(), 0, "who is down takes nobody on");
    drop(_second);
    assert_eq!(bell.rings(), 1);
    assert_eq!(poll(&mut waiting, &waker).unwrap().server(), 1);
}

/// Two servers, the first of which has a `slowstart` of 16 seconds.
fn warming(balance: BalanceSpec, weight: u32, maxconn: u32) -> Arc<ProxyState> {
    let mut proxy = plan(balance, &[Plan(weight, maxconn, 0), Plan(weight, 0, 0)]);
    proxy.servers[0].slowstart = Some(Duration::from_millis(16_000));
    state_of(proxy)
}

#[test]
fn a_server_that_comes_back_grows_to_its_full_share() {
    for weight in [1, 100, 256] {
        let state = warming(BalanceSpec::RoundRobin, weight, 0);
        let share = |count: usize| order(&state, count).matches('a').count();
        assert_eq!((share(170), state.advance(at(0))), (85, None), "warm from the start");
        state.set_admin(0, Admin::Drain, at(5));
        state.set_admin(0, Admin::Ready, at(6));
        assert_eq!((share(170), state.advance(at(6))), (85, None), "draining cools nobody down");
        set_up(&state, 0, false, at(1_000));
        set_up(&state, 0, true, at(2_000));
        let mut now = at(2_000);
        for level in 1..=16 {
            order(&state, 600);
            let (count, due) = (17 * 16, 17 * 16 * level / (16 + level));
            assert!(share(count).abs_diff(due) <= 2, "{weight}: {} of {due} at level {level}", share(count));
            assert_eq!(state.status(0).unwrap().throttle, level as u32 * 100 / 16);
            match state.advance(now) {
                Some(next) => now = next,
                None => assert_eq!(level, 16),
            }
            state.advance(now);
        }
        assert_eq!(state.advance(now), None);
    }
}

#[test]
fn maxconn_grows_too_and_lets_in_who_waits() {
    let state = warming(BalanceSpec::StaticRr, 1, 32);
    state.set_admin(0, Admin::Maintenance, at(0));
    state.set_admin(0, Admin::Ready, at(0));
    let held: Vec<ServerSlot> = (0..2).map(|_| slot(state.assign(&bound(0)))).collect();
    let mut waiting = ticket(state.assign(&bound(0)));
    let (bell, waker) = Bell::new();
    assert!(poll(&mut waiting, &waker).is_none());
    let next = state.advance(at(500)).unwrap();
    assert_eq!(bell.rings(), 0);
    state.advance(next);
    assert_eq!((bell.rings(), state.load(0).unwrap().0.limit), (1, 4));
    state.set_maxconn(0, Some(16));
    assert_eq!(state.load(0).unwrap().0.limit, 2, "the share of the new one");
    assert_eq!(state.advance(at(60_000)), None);
    assert_eq!(state.load(0).unwrap().0.limit, 16);
    drop(held);
}
