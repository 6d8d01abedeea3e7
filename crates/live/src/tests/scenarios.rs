//! Observed behaviour of HAProxy 2.6 and 3.5 with queues, positions and counts, case by case.

use super::*;

#[test]
fn the_backend_queue_is_served_in_order_and_positions_count_the_request_itself() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0)]);
    let mut held = slot(state.assign(&ANY));
    let mut tickets: Vec<QueueTicket> = (0..4).map(|_| ticket(state.assign(&ANY))).collect();
    for (number, ticket) in (1..).zip(&mut tickets) {
        assert!(poll(ticket, Waker::noop()).is_none());
        // HAProxy logged beconn 4, 3, 2, 1 and srv_conn 0 here.
        assert_eq!(held.release(), Counts { beconn: 5 - number, srv_conn: 0 });
        held = poll(ticket, Waker::noop()).unwrap();
        assert_eq!(ticket.positions(), QueuePositions { server: 0, backend: number });
    }
    assert_eq!(held.release(), Counts::default());
}

#[test]
fn requests_that_a_hash_binds_wait_in_their_servers_queue() {
    let state = farm(BalanceSpec::Source, &[Plan(1, 1, 2), Plan(1, 1, 2)]);
    let client = PickContext { hash: Some(0x0a00_0001), ..ANY };
    let held = slot(state.assign(&client));
    assert_eq!(held.server(), 1);
    let mut first = ticket(state.assign(&client));
    let second = ticket(state.assign(&client));
    assert_eq!(first.server(), Some(1));
    assert!(matches!(state.assign(&client), Assignment::QueueFull));
    assert_eq!(state.bound_server(&client), Some(1));
    assert_eq!(state.counts(Some(1)), Counts { beconn: 3, srv_conn: 1 });
    drop(held);
    assert_eq!(poll(&mut first, Waker::noop()).unwrap().server(), 1);
    assert_eq!(first.positions(), QueuePositions { server: 1, backend: 0 });
    // `first` released its slot at once: it is passed to the second one.
    assert_eq!(second.positions(), QueuePositions { server: 2, backend: 0 });
    drop(second);
    assert_eq!(state.counts(Some(1)), Counts::default());
}

#[test]
fn a_slot_goes_to_the_oldest_of_the_servers_own_queue_and_the_backends() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0), Plan(1, 1, 0)]);
    let (mut held, other) = (slot(state.assign(&ANY)), slot(state.assign(&ANY)));
    // The cookies of HAProxy's test were: none, a, none, a, b, none, a, none.
    let contexts = [ANY, bound(0), ANY, bound(0), bound(1), ANY, bound(0), ANY];
    let mut tickets: Vec<QueueTicket> = contexts.iter().map(|context| ticket(state.assign(context))).collect();
    let expected = [(0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 0), (0, 4)];
    for (number, (server, backend)) in [0, 1, 2, 3, 5, 6, 7].into_iter().zip(expected) {
        drop(held);
        held = poll(&mut tickets[number], Waker::noop()).unwrap();
        assert_eq!(held.server(), 0);
        assert_eq!(tickets[number].positions(), QueuePositions { server, backend });
    }
    assert!(poll(&mut tickets[4], Waker::noop()).is_none());
    drop(other);
    assert_eq!(poll(&mut tickets[4], Waker::noop()).unwrap().server(), 1);
    assert_eq!(tickets[4].positions(), QueuePositions { server: 1, backend: 0 });
}

#[test]
fn a_request_that_gives_up_does_not_count_for_those_behind_it() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0)]);
    let held = slot(state.assign(&ANY));
    let (first, mut second) = (ticket(state.assign(&ANY)), ticket(state.assign(&ANY)));
    assert_eq!(first.positions(), QueuePositions { server: 0, backend: 1 });
    drop(first);
    drop(held);
    drop(poll(&mut second, Waker::noop()).unwrap());
    assert_eq!(second.positions(), QueuePositions { server: 0, backend: 1 });
}

#[test]
fn a_ticket_that_was_granted_and_not_taken_passes_its_slot_on() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0)]);
    let held = slot(state.assign(&ANY));
    let bells = [Bell::new(), Bell::new(), Bell::new()];
    let mut tickets: Vec<QueueTicket> = (0..3).map(|_| ticket(state.assign(&ANY))).collect();
    for (ticket, (_, waker)) in tickets.iter_mut().zip(&bells) {
        assert!(poll(ticket, waker).is_none());
    }
    drop(held);
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.rings()), [1, 0, 0]);
    drop(tickets.remove(0));
    assert_eq!(bells.each_ref().map(|(bell, _)| bell.rings()), [1, 1, 0]);
    assert_eq!(state.counts(Some(0)), Counts { beconn: 2, srv_conn: 1 });
    let taken = poll(&mut tickets[0], &bells[1].1).unwrap();
    assert!(poll(&mut tickets[0], &bells[1].1).is_none(), "a ticket is good for one slot");
    drop(tickets);
    assert_eq!(taken.release(), Counts::default());
    assert_eq!(bells[2].0.rings(), 0);
}

#[test]
fn servers_that_are_disabled_or_weigh_nothing_get_no_traffic_by_the_balance() {
    let mut proxy = plan(BalanceSpec::RoundRobin, &[Plan(1, 0, 0), Plan(0, 0, 0)]);
    proxy.servers[0].disabled = true;
    let state = state_of(proxy);
    assert!(matches!(state.assign(&ANY), Assignment::Unavailable));
    // Persistence reaches the server without weight, not the disabled one.
    assert_eq!(slot(state.assign(&bound(1))).server(), 1);
    assert!(matches!(state.assign(&bound(0)), Assignment::Unavailable));
    assert!(matches!(farm(BalanceSpec::LeastConn, &[]).assign(&ANY), Assignment::Unavailable));
    set_enabled(&state, 0, true);
    assert_eq!(slot(state.assign(&ANY)).server(), 0);
}

#[test]
fn the_first_backup_server_stands_in_and_requests_wait_in_its_own_queue() {
    let mut proxy = plan(BalanceSpec::RoundRobin, &[Plan(1, 0, 0), Plan(0, 0, 0), Plan(1, 1, 0), Plan(1, 0, 0)]);
    for server in &mut proxy.servers[1..] {
        server.backup = true;
    }
    proxy.servers[0].disabled = true;
    let state = state_of(proxy);
    let held = slot(state.assign(&ANY));
    assert_eq!(held.server(), 2);
    let waiting = ticket(state.assign(&ANY));
    assert_eq!((waiting.server(), waiting.positions()), (Some(2), QueuePositions { server: 1, backend: 0 }));
    set_enabled(&state, 0, true);
    assert_eq!(slot(state.assign(&ANY)).server(), 0);
}

#[test]
fn leastconn_counts_those_that_wait_and_fills_a_maxqueue_before_the_backends_queue() {
    let state = farm(BalanceSpec::LeastConn, &[Plan(1, 1, 2), Plan(1, 1, 1)]);
    let _held = [slot(state.assign(&ANY)), slot(state.assign(&ANY))];
    let tickets: Vec<QueueTicket> = (0..5).map(|_| ticket(state.assign(&ANY))).collect();
    let places: Vec<Option<usize>> = tickets.iter().map(QueueTicket::server).collect();
    assert_eq!(places, [Some(0), Some(1), Some(0), None, None]);
}

#[test]
fn a_redispatch_avoids_the_failed_server_while_another_one_will_do() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0), Plan(1, 1, 0)]);
    let again = PickContext { exclude: Some(0), ..ANY };
    let other = slot(state.assign(&again));
    assert_eq!(other.server(), 1);
    let same = slot(state.assign(&again));
    assert_eq!(same.server(), 0);
    assert!(matches!(state.assign(&again), Assignment::Queued(_)));
}

#[test]
fn more_room_serves_those_who_wait_at_once() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0)]);
    let held = slot(state.assign(&ANY));
    let (bell, waker) = Bell::new();
    let mut tickets = [ANY, bound(0), ANY].map(|context| ticket(state.assign(&context)));
    for ticket in &mut tickets {
        assert!(poll(ticket, &waker).is_none());
    }
    state.set_maxconn(0, Some(3));
    assert_eq!(bell.rings(), 2);
    let slots = [0, 1].map(|number| poll(&mut tickets[number], &waker).unwrap());
    assert_eq!(state.counts(Some(0)), Counts { beconn: 4, srv_conn: 3 });
    state.set_maxconn(0, Some(1));
    drop(slots);
    assert_eq!((bell.rings(), state.counts(Some(0)).srv_conn), (2, 1));
    drop(held);
    assert_eq!((bell.rings(), state.counts(Some(0)).srv_conn), (3, 1));
}

#[test]
fn the_queue_of_a_server_that_is_disabled_goes_to_the_others_by_age() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0), Plan(1, 1, 0)]);
    let held = [slot(state.assign(&ANY)), slot(state.assign(&ANY))];
    let mut tickets = [bound(0), ANY, bound(0), ANY].map(|context| ticket(state.assign(&context)));
    set_enabled(&state, 0, false);
    let [first, mut slot] = held;
    drop(first);
    for ticket in &mut tickets {
        assert_eq!(ticket.server(), None);
        drop(slot);
        slot = poll(ticket, Waker::noop()).unwrap();
        assert_eq!(slot.server(), 1);
    }
    // Passed through both queues: the positions add up.
    assert_eq!(tickets[0].positions(), QueuePositions { server: 1, backend: 1 });
    assert_eq!(tickets[3].positions(), QueuePositions { server: 0, backend: 4 });
}

#[test]
fn a_static_algorithm_heeds_weight_zero_only() {
    let state = farm(BalanceSpec::StaticRr, &[Plan(1, 0, 0), Plan(1, 0, 0)]);
    let order = |count: usize| (0..count).map(|_| slot(state.assign(&ANY)).server()).collect::<Vec<_>>();
    state.set_weight(0, 5);
    assert_eq!(order(4), [0, 1, 0, 1]);
    state.set_weight(0, 0);
    assert_eq!(order(3), [1, 1, 1]);
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 0, 0), Plan(1, 0, 0)]);
    state.set_weight(0, 5);
    let order: Vec<usize> = (0..12).map(|_| slot(state.assign(&ANY)).server()).collect();
    assert_eq!(order.iter().filter(|server| **server == 0).count(), 10);
}

#[test]
fn classes_go_first_then_those_that_came_first_with_their_offset() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 1, 0)]);
    let mut held = slot(state.assign(&ANY));
    // Class, offset, arrival in milliseconds; the order in which they are served.
    let rows = [
        ((0, 0, 100), 4),
        ((0, 0, 101), 5),
        ((1, -500_000, 102), 8),
        ((-1, 0, 103), 2),
        ((0, 50, 104), 7),
        ((0, -50, 105), 3),
        ((-1, -10, 106), 1),
        // A worker's clock that is slightly late does not affect the order.
        ((0, 0, 99), 6),
    ];
    let mut tickets: Vec<(usize, QueueTicket)> = Vec::new();
    for ((class, offset, millis), turn) in rows {
        let now = Moment::from_nanos(millis * 1_000_000);
        let context = PickContext { priority: Priority { class, offset, now }, ..ANY };
        tickets.push((turn, ticket(state.assign(&context))));
    }
    // A request that gives up leaves the others in order.
    tickets.retain(|(turn, _)| *turn != 5);
    tickets.sort_by_key(|(turn, _)| *turn);
    for (turn, ticket) in &mut tickets {
        assert!(poll(ticket, Waker::noop()).is_none(), "{turn}");
        drop(held);
        held = poll(ticket, Waker::noop()).unwrap_or_else(|| panic!("not the turn of {turn}"));
    }
    drop(held);
    assert_eq!(state.counts(None), Counts::default());
}

#[test]
fn a_request_that_is_forced_goes_to_a_server_in_maintenance() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 0, 0), Plan(1, 0, 0)]);
    state.set_admin(1, Admin::Maintenance, Moment::ZERO);
    assert!(state.is_usable(0) && !state.is_usable(1) && !state.is_usable(2));
    let bound = PickContext { server: Some(1), ..ANY };
    assert_eq!(slot(state.assign(&bound)).server(), 0);
    assert_eq!(slot(state.assign(&PickContext { forced: true, ..bound })).server(), 1);
}
