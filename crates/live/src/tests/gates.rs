//! Limits of connections, parked workers.

use super::*;

fn process(bound: u32) -> Arc<ProcessState> {
    Arc::new(ProcessState::new(bound, &RatesSpec::default(), None))
}

#[test]
fn a_release_wakes_exactly_one_in_order_of_arrival() {
    let process = process(1);
    let held = process.gate().enter_freely().unwrap();
    assert!(process.gate().enter_freely().is_none());
    let bells = [Bell::new(), Bell::new(), Bell::new()];
    for (key, (_, waker)) in (0..).zip(&bells) {
        assert!(process.enter_or_park(key, waker).is_none());
    }
    drop(held);
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.rings()), [1, 0, 0]);
    // Another caller is faster: the woken one parks again, after the others.
    let quick = process.enter_or_park(9, Waker::noop()).unwrap();
    assert!(process.enter_or_park(0, &bells[0].1).is_none());
    drop(quick);
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.rings()), [1, 1, 0]);
    drop(process.enter_or_park(1, &bells[1].1).unwrap());
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.rings()), [1, 1, 1]);
}

#[test]
fn parking_again_replaces_the_waker_and_entering_forgets_it() {
    let process = process(1);
    let held = process.gate().enter_freely().unwrap();
    let [(old, old_waker), (new, new_waker)] = [Bell::new(), Bell::new()];
    assert!(process.enter_or_park(5, &old_waker).is_none());
    assert!(process.enter_or_park(5, &new_waker).is_none());
    drop(held);
    assert_eq!((old.rings(), new.rings()), (0, 1));
    drop(process.enter_or_park(5, &new_waker).unwrap());
    assert_eq!(new.rings(), 1);
}

#[test]
fn a_worker_that_will_not_come_back_passes_its_wake_up_on() {
    let process = process(1);
    let held = process.gate().enter_freely().unwrap();
    let bells = [Bell::new(), Bell::new(), Bell::new()];
    for (key, (_, waker)) in (0..).zip(&bells) {
        assert!(process.enter_or_park(key, waker).is_none());
    }
    process.unpark(1);
    drop(held);
    process.unpark(0);
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.rings()), [1, 0, 1]);
}

#[test]
fn a_raised_bound_wakes_as_many_as_find_room_and_a_lowered_one_nobody() {
    let process = process(2);
    let mut held: Vec<Inside<'_>> = (0..2).map(|_| process.gate().enter_freely().unwrap()).collect();
    let bells = [Bell::new(), Bell::new(), Bell::new()];
    for (key, (_, waker)) in (0..).zip(&bells) {
        assert!(process.enter_or_park(key, waker).is_none());
    }
    process.gate().set_bound(4);
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.rings()), [1, 1, 0]);
    held.extend([0, 1].map(|key: usize| process.enter_or_park(key as u64, &bells[key].1).unwrap()));
    process.gate().set_bound(2);
    held.truncate(2);
    assert_eq!((bells[2].0.rings(), process.actconn()), (0, 2));
    held.clear();
    assert!(bells[2].0.rings() >= 1);
}

#[test]
fn frontends_and_addresses_have_gates_of_their_own() {
    let live = live(1_000, 2);
    let state = &live.proxies[0];
    let waker = Waker::noop();
    let first = state.enter_bind_or_park(0, 1, waker).unwrap();
    assert!(state.enter_bind_or_park(0, 1, waker).is_none());
    let free = [state.enter_bind_or_park(1, 2, waker), state.enter_bind_or_park(1, 2, waker)];
    assert!(free.iter().all(Option::is_some));
    drop((first, free));
    assert!(state.enter_bind_or_park(0, 1, waker).is_some());
    let slots = [state.frontend_gate().enter_freely(), state.enter_frontend_or_park(1, waker)];
    assert!(slots.iter().all(Option::is_some) && state.frontend_gate().enter_freely().is_none());
    assert_eq!((state.feconn(), state.frontend_gate().bound()), (2, 2));
    drop(slots);
    assert_eq!(state.feconn(), 0);
}

/// A process for `maxconn` connections with one frontend for `front`, whose first address accepts one.
fn live(maxconn: u32, front: u32) -> Live {
    let frontend = FrontendPlan {
        maxconn: front,
        sessions_a_second: None,
        binds: vec![Some(1), None],
        secure_binds: vec![false; 2],
    };
    live_of(ProxyPlan { frontend: Some(frontend), ..ProxyPlan::default() }, maxconn)
}

#[test]
fn an_entry_is_counted_everywhere_or_nowhere() {
    let live = live(3, 2);
    let counts = || (live.proxies[0].feconn(), live.process.actconn());
    let first = live.enter_or_park(0, 0, 1, Waker::noop()).unwrap();
    assert!(live.enter_or_park(0, 0, 2, Waker::noop()).is_none(), "the address is full");
    assert_eq!(counts(), (1, 1));
    let second = live.enter_or_park(0, 1, 3, Waker::noop()).unwrap();
    assert!(live.enter_or_park(0, 1, 4, Waker::noop()).is_none(), "the frontend is full");
    assert_eq!(counts(), (2, 2));
    let other = [live.process.gate().enter_freely().unwrap()];
    drop(second);
    let more = live.process.gate().enter_freely().unwrap();
    assert!(live.enter_or_park(0, 1, 4, Waker::noop()).is_none(), "the process is full");
    assert_eq!(counts(), (1, 3));
    drop((first, other, more));
    assert_eq!(counts(), (0, 0));
    assert!(live.enter_or_park(7, 0, 1, Waker::noop()).is_none(), "there is no such frontend");
}

#[test]
fn the_usual_way_in_is_for_where_nobody_waits_and_no_rate_is_bounded() {
    let live = live(3, 2);
    let counts = || (live.proxies[0].feconn(), live.process.actconn());
    let first = live.enter_freely(0, 0).unwrap();
    assert!(live.enter_freely(0, 0).is_none(), "the address is full");
    let second = live.enter_freely(0, 1).unwrap();
    assert!(live.enter_freely(0, 1).is_none(), "the frontend is full");
    assert_eq!(counts(), (2, 2));
    let (bell, waker) = Bell::new();
    assert!(live.enter_or_park(0, 1, 1, &waker).is_none());
    drop(first);
    assert_eq!((counts(), bell.rings()), ((1, 1), 1));
    assert!(live.enter_or_park(0, 0, 1, &waker).is_some());
    let throttle = live.proxies[0].session_throttle();
    throttle.set_limit(1000);
    assert!(live.enter_freely(0, 0).is_none(), "somebody has to count");
    throttle.set_limit(0);
    assert!(live.enter_freely(0, 0).is_some() && live.enter_freely(7, 0).is_none());
    drop(second);
    assert_eq!(counts(), (0, 0));
}

#[test]
fn who_is_woken_at_one_gate_and_stops_at_another_passes_the_wake_up_on() {
    let live = live(10, 1);
    let [(first, first_waker), (second, second_waker)] = [Bell::new(), Bell::new()];
    let held = live.enter_or_park(0, 1, 9, Waker::noop()).unwrap();
    assert!(live.enter_or_park(0, 0, 1, &first_waker).is_none());
    assert!(live.enter_or_park(0, 1, 2, &second_waker).is_none());
    // The first one's address fills up before it retries.
    let _bind = live.proxies[0].enter_bind_or_park(0, 3, Waker::noop()).unwrap();
    drop(held);
    assert_eq!((first.rings(), second.rings()), (1, 0));
    assert!(live.enter_or_park(0, 0, 1, &first_waker).is_none());
    assert_eq!(second.rings(), 1);
    assert!(live.enter_or_park(0, 1, 2, &second_waker).is_some());
}

#[test]
fn who_gives_up_is_not_woken() {
    let live = live(10, 1);
    let [(first, first_waker), (second, second_waker)] = [Bell::new(), Bell::new()];
    let held = live.enter_or_park(0, 1, 9, Waker::noop()).unwrap();
    assert!(live.enter_or_park(0, 1, 1, &first_waker).is_none());
    assert!(live.enter_or_park(0, 1, 2, &second_waker).is_none());
    live.unpark(0, 1, 1);
    drop(held);
    assert_eq!((first.rings(), second.rings()), (0, 1));
}
