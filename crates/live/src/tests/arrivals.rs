//! Servers are added and removed: the guarantees of load balancing hold at all times.

use super::*;

const ALGORITHMS: [BalanceSpec; 5] = [
    BalanceSpec::RoundRobin,
    BalanceSpec::LeastConn,
    BalanceSpec::First,
    BalanceSpec::Random { draws: 2 },
    BalanceSpec::Source,
];

/// A server for the next index, as `add server` would create it.
pub(super) fn another(index: usize, weight: u32, maxconn: u32) -> ServerPlan {
    server(index, &Plan(weight, maxconn, 0))
}

/// The expected state of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ExpectedState {
    Ready,
    Out,
    Removed,
}

#[test]
fn no_slot_is_lost_and_nothing_goes_where_it_must_not_while_servers_come_and_go() {
    for (seed, balance) in (1..).zip(ALGORITHMS.iter().cycle().take(40)) {
        let mut dice = Dice(seed);
        let state = farm(balance.clone(), &[Plan(1, 3, 0), Plan(2, 3, 0)]);
        let mut known = vec![ExpectedState::Ready, ExpectedState::Ready];
        let mut held: Vec<ServerSlot> = Vec::new();
        let mut waiting: Vec<QueueTicket> = Vec::new();
        let (_, waker) = Bell::new();
        for step in 0..600 {
            let now = Moment::from_nanos(step);
            match dice.below(12) {
                0 if known.len() < 30 => {
                    let server = another(known.len(), 1 + dice.below(4) as u32, 1 + dice.below(3) as u32);
                    assert!(state.add_server(&server, now));
                    assert!(!state.add_server(&server, now), "a place is given once");
                    known.push(ExpectedState::Out);
                }
                1 if dice.below(2) == 0 => {
                    let server = dice.below(known.len());
                    let other = another(server, 1 + dice.below(4) as u32, 1 + dice.below(3) as u32);
                    let is_gone = known[server] == ExpectedState::Removed;
                    assert_eq!(state.replace_server(&other, now), is_gone, "{balance:?} {seed} {step}");
                    if is_gone {
                        known[server] = ExpectedState::Out;
                        let status = state.status(server).unwrap();
                        assert_eq!(
                            (status.weight, status.load.limit),
                            (other.weight, other.maxconn.unwrap_or(u32::MAX))
                        );
                    }
                }
                1 | 2 => {
                    let server = dice.below(known.len());
                    let busy = held.iter().any(|slot| slot.server() == server);
                    let expected = match known[server] {
                        ExpectedState::Removed => Removal::Unknown,
                        ExpectedState::Ready => Removal::InService,
                        ExpectedState::Out if busy => Removal::Busy,
                        ExpectedState::Out => Removal::Possible,
                    };
                    assert_eq!(state.remove_server(server, now), expected, "{balance:?} {seed} {step}");
                    if expected == Removal::Possible {
                        known[server] = ExpectedState::Removed;
                    }
                }
                3 | 4 => {
                    let server = dice.below(known.len());
                    let ready = dice.below(2) == 0;
                    state.set_admin(server, if ready { Admin::Ready } else { Admin::Maintenance }, now);
                    if known[server] != ExpectedState::Removed {
                        known[server] = if ready { ExpectedState::Ready } else { ExpectedState::Out };
                    }
                }
                5..8 if !held.is_empty() => drop(held.swap_remove(dice.below(held.len()))),
                8 if !waiting.is_empty() => drop(waiting.swap_remove(dice.below(waiting.len()))),
                _ => {
                    let request = PickContext {
                        random: (dice.below(1 << 30) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
                        hash: Some(dice.below(1 << 30) as u32),
                        server: (dice.below(3) == 0).then(|| dice.below(known.len())),
                        ..ANY
                    };
                    match state.assign(&request) {
                        Assignment::Slot(slot) => {
                            assert_eq!(known[slot.server()], ExpectedState::Ready, "{balance:?} {seed} {step}");
                            held.push(slot);
                        }
                        Assignment::Queued(ticket) => waiting.push(ticket),
                        Assignment::QueueFull => {}
                        Assignment::Unavailable => {
                            assert!(!known.contains(&ExpectedState::Ready), "{balance:?} {seed} {step}");
                        }
                    }
                }
            }
            waiting.retain_mut(|ticket| match poll(ticket, &waker) {
                Some(slot) => {
                    held.push(slot);
                    false
                }
                None => true,
            });
            for (server, known) in known.iter().enumerate() {
                let of = held.iter().filter(|slot| slot.server() == server).count() as u32;
                assert_eq!(state.counts(Some(server)).srv_conn, of, "{balance:?} {seed} {step}");
                assert!(*known != ExpectedState::Removed || of == 0);
            }
        }
        drop(waiting);
        drop(held);
        assert_eq!(state.counts(None).beconn, 0, "{balance:?}");
    }
}

#[test]
fn weights_hold_for_who_is_there() {
    for balance in [BalanceSpec::RoundRobin, BalanceSpec::LeastConn] {
        let state = farm(balance.clone(), &[Plan(1, 0, 0), Plan(2, 0, 0)]);
        assert!(state.add_server(&another(2, 5, 0), Moment::ZERO));
        state.set_admin(2, Admin::Ready, Moment::ZERO);
        let shares = |state: &Arc<ProxyState>| {
            let mut shares = [0_u32; 3];
            let slots: Vec<ServerSlot> = (0..800).map(|_| slot(state.assign(&ANY))).collect();
            slots.iter().for_each(|slot| shares[slot.server()] += 1);
            shares
        };
        assert_eq!(shares(&state), [100, 200, 500], "{balance:?}");
        state.set_admin(1, Admin::Maintenance, Moment::ZERO);
        assert_eq!(state.remove_server(1, Moment::ZERO), Removal::Possible);
        let [first, gone, last] = shares(&state);
        assert!(gone == 0 && first.abs_diff(133) <= 2 && last.abs_diff(667) <= 2, "{balance:?} {first} {last}");
    }
}

#[test]
fn who_is_bound_to_a_server_that_was_removed_is_not_sent_there_even_by_force() {
    let state = farm(BalanceSpec::RoundRobin, &[Plan(1, 0, 0), Plan(1, 0, 0)]);
    state.set_admin(0, Admin::Maintenance, Moment::ZERO);
    assert_eq!(slot(state.assign(&PickContext { forced: true, ..bound(0) })).server(), 0);
    assert_eq!(state.remove_server(0, Moment::ZERO), Removal::Possible);
    assert_eq!(slot(state.assign(&PickContext { forced: true, ..bound(0) })).server(), 1);
}
