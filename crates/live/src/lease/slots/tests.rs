//! Leases of slots with a store that is a row of answers.

use super::*;
use crate::{Assignment, BackendPlan, Live, LivePlan, PickContext, ProxyPlan, ServerPlan, ServerSlot};

fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_000_000_000 + millis * 1_000_000)
}

/// The live state of a server with ten slots.
fn live(lost: LostMode) -> Live {
    let servers = vec![ServerPlan { maxconn: Some(10), ..ServerPlan::default() }];
    let backend = BackendPlan { servers, fullconn: 1, ..BackendPlan::default() };
    let proxies = vec![ProxyPlan { backend: Some(backend), ..ProxyPlan::default() }];
    let slots = vec![SlotPlan { proxy: 0, server: 0, store: 3, name: "b/s".into(), lost }];
    Live::new(LivePlan { maxconn: 100, proxies, slots, ..LivePlan::default() }, 7)
}

fn tick(live: &Live, store: StoreState, millis: u64) -> Option<Claim> {
    live.slots.get(0).unwrap().tick(&live.proxies[0], store, at(millis), false)
}

fn settle(live: &Live, claim: &Claim, count: u32, millis: u64) {
    let grant = SlotGrant::Slots { count, nodes: 3, is_contested: true };
    live.slots.get(0).unwrap().settle(&live.proxies[0], claim, grant, at(millis));
}

/// A lease that was granted.
fn leased(lost: LostMode, count: u32) -> Live {
    let live = live(lost);
    let claim = tick(&live, StoreState::Ready, 0).unwrap();
    settle(&live, &claim, count, 5);
    live
}

/// Returns as many slots as requests get.
fn serve(live: &Live, count: usize) -> Vec<ServerSlot> {
    let one = |_| match live.proxies[0].assign(&PickContext::default()) {
        Assignment::Slot(slot) => Some(slot),
        _ => None,
    };
    (0..count).filter_map(one).collect()
}

fn limit(live: &Live) -> u32 {
    live.proxies[0].load(0).unwrap().0.limit
}

#[test]
fn servers_are_found_by_store() {
    let live = live(LostMode::Local);
    let found = |store| live.slots.of_store(store).map(|(index, _)| index).collect::<Vec<_>>();
    assert_eq!((found(3), found(0), live.slots.get(1).is_none()), (vec![0], vec![], true));
}

#[test]
fn nothing_is_served_before_an_answer() {
    let live = live(LostMode::Open);
    assert_eq!((limit(&live), serve(&live, 5).len()), (0, 0));
    assert_eq!(tick(&live, StoreState::Untried, 0), None);
    assert_eq!(limit(&live), 0);
    let claim = tick(&live, StoreState::Ready, 20).unwrap();
    assert_eq!((claim.sequence, claim.most, claim.held, claim.demand, claim.nodes), (1, 10, 0, 0, 0));
    assert_eq!(tick(&live, StoreState::Ready, 600), None, "one at a time");
    settle(&live, &claim, 4, 605);
    assert_eq!((limit(&live), serve(&live, 5).len()), (4, 4));
    // A store cannot grant more than there is.
    let claim = tick(&live, StoreState::Ready, 620).unwrap();
    settle(&live, &claim, u32::MAX, 625);
    assert_eq!(limit(&live), 10);
    live.proxies[0].set_maxconn(0, Some(20));
    for millis in [640, 660] {
        tick(&live, StoreState::Ready, millis);
        assert_eq!(limit(&live), 10, "{millis}");
    }
}

#[test]
fn requests_that_wait_are_served_when_slots_are_granted() {
    let live = live(LostMode::Local);
    let Assignment::Queued(mut ticket) = live.proxies[0].assign(&PickContext::default()) else { panic!() };
    let claim = tick(&live, StoreState::Ready, 0).unwrap();
    assert_eq!((claim.held, claim.demand), (0, 1));
    settle(&live, &claim, 1, 5);
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(ticket.poll_granted(&mut cx).is_ready());
}

#[test]
fn what_is_in_use_is_not_given_back() {
    let live = leased(LostMode::Local, 8);
    let mut served = serve(&live, 6);
    let claim = tick(&live, StoreState::Ready, 300).unwrap();
    assert_eq!((claim.held, claim.demand), (8, 6));
    settle(&live, &claim, 2, 305);
    assert_eq!((limit(&live), serve(&live, 1).len()), (2, 0));
    // Others wait, so that each slot is reported at once.
    for expected in [6, 5, 4, 3, 2] {
        let claim = tick(&live, StoreState::Ready, 320).unwrap();
        assert_eq!(claim.held, expected);
        settle(&live, &claim, 2, 321);
        served.pop();
        assert_eq!(serve(&live, 1).len(), usize::from(served.len() < 2));
    }
}

#[test]
fn slots_that_a_lower_maxconn_gave_back_do_not_return_with_a_higher_one() {
    let live = leased(LostMode::Local, 8);
    let set = |most| live.proxies[0].set_maxconn(0, Some(most));
    set(4);
    let claim = tick(&live, StoreState::Ready, 250).unwrap();
    assert_eq!((claim.most, claim.held), (4, 4));
    set(10);
    for millis in [270, 290] {
        tick(&live, StoreState::Ready, millis);
        assert_eq!(limit(&live), 4, "{millis}");
    }
    settle(&live, &claim, 4, 280);
    assert_eq!(limit(&live), 4);
}

#[test]
fn claims_follow_the_load() {
    let live = leased(LostMode::Local, 2);
    assert_eq!(tick(&live, StoreState::Ready, 240), None);
    let claim = tick(&live, StoreState::Ready, 250).unwrap();
    settle(&live, &claim, 2, 251);
    // In use: every 100 ms. Waiting: at once, then every 50 ms.
    let mut served = serve(&live, 2);
    assert_eq!(tick(&live, StoreState::Ready, 260), None);
    let ask = |from: u64, to: u64| {
        assert_eq!(tick(&live, StoreState::Ready, from), None, "{from}");
        let claim = tick(&live, StoreState::Ready, to).unwrap();
        settle(&live, &claim, 2, to + 1);
    };
    ask(499, 500);
    ask(599, 600);
    let Assignment::Queued(ticket) = live.proxies[0].assign(&PickContext::default()) else { panic!() };
    let claim = tick(&live, StoreState::Ready, 610).unwrap();
    assert_eq!(claim.demand, 3);
    settle(&live, &claim, 2, 611);
    ask(659, 660);
    drop(ticket);
    served.clear();
    ask(709, 710);
    ask(959, 960);
}

#[test]
fn a_lease_ends_by_itself() {
    let rows = [(LostMode::Local, 3), (LostMode::Open, 10), (LostMode::Closed, 0)];
    for (lost, expected) in rows {
        // The store hangs, or is lost: what was granted is valid for five seconds from the claim.
        for store in [StoreState::Ready, StoreState::Lost] {
            let live = leased(lost, 8);
            for millis in (100..5_000).step_by(20) {
                tick(&live, store, millis);
                assert_eq!(limit(&live), 8, "{lost:?} {store:?} {millis}");
            }
            tick(&live, store, 5_000);
            assert_eq!(limit(&live), expected, "{lost:?} {store:?}");
        }
    }
}

#[test]
fn a_node_that_returns_claims_its_share() {
    // Known nodes: three. Beside the leases of the others, no more than a share may be claimed.
    for (lost, used, held) in
        [(LostMode::Local, 0, 3), (LostMode::Open, 0, 3), (LostMode::Open, 9, 9), (LostMode::Closed, 0, 0)]
    {
        let live = leased(lost, 8);
        tick(&live, StoreState::Lost, 5_000);
        let served = serve(&live, used);
        let claim = tick(&live, StoreState::Ready, 5_020).unwrap();
        assert_eq!((claim.held, claim.nodes), (held, 3), "{lost:?} {used}");
        assert_eq!(limit(&live), if lost == LostMode::Closed { 0 } else { 3 }, "{lost:?} {used}");
        // The connection is lost again.
        tick(&live, StoreState::Lost, 5_040);
        assert_eq!(
            limit(&live),
            match lost {
                LostMode::Local => 3,
                LostMode::Open => 10,
                LostMode::Closed => 0,
            }
        );
        drop(served);
    }
    let fresh = live(LostMode::Open);
    tick(&fresh, StoreState::Lost, 0);
    assert_eq!(limit(&fresh), 10);
    let claim = tick(&fresh, StoreState::Ready, 20).unwrap();
    assert_eq!((claim.held, claim.nodes, limit(&fresh)), (0, 0, 0));
}

#[test]
fn answers_to_other_claims_change_nothing() {
    let live = leased(LostMode::Local, 8);
    let old = tick(&live, StoreState::Ready, 250).unwrap();
    live.slots.get(0).unwrap().forget(&old);
    settle(&live, &old, 3, 255);
    assert_eq!(limit(&live), 8);
    let claim = tick(&live, StoreState::Ready, 260).unwrap();
    settle(&live, &old, 3, 265);
    assert_eq!(limit(&live), 8);
    live.slots.get(0).unwrap().settle(&live.proxies[0], &claim, SlotGrant::Outdated, at(270));
    assert_eq!((limit(&live), claim.sequence), (8, 3));
}

#[test]
fn other_data_in_the_store_are_a_loss() {
    let live = leased(LostMode::Local, 8);
    let claim = tick(&live, StoreState::Ready, 250).unwrap();
    live.slots.get(0).unwrap().settle(&live.proxies[0], &claim, SlotGrant::Foreign, at(255));
    assert_eq!(limit(&live), 3);
    let _served = serve(&live, 10);
    assert_eq!(tick(&live, StoreState::Ready, 5_254), None, "it is not asked often");
    assert!(tick(&live, StoreState::Ready, 5_255).is_some());
}

#[test]
fn a_process_that_ends_has_short_leases() {
    let live = leased(LostMode::Local, 8);
    let server = live.slots.get(0).unwrap();
    let claim = server.tick(&live.proxies[0], StoreState::Ready, at(250), true).unwrap();
    assert_eq!((claim.is_leaving, claim.lifetime), (true, Duration::from_secs(1)));
    settle(&live, &claim, 8, 255);
    server.tick(&live.proxies[0], StoreState::Lost, at(1_249), true);
    assert_eq!(limit(&live), 8);
    server.tick(&live.proxies[0], StoreState::Lost, at(1_250), true);
    assert_eq!(limit(&live), 3);
}

#[test]
fn a_server_in_the_place_of_another_has_no_lease() {
    let live = leased(LostMode::Local, 2);
    let proxy = &live.proxies[0];
    proxy.set_admin(0, crate::Admin::Maintenance, at(0));
    assert_eq!(proxy.remove_server(0, at(0)), crate::Removal::Possible);
    assert_eq!(tick(&live, StoreState::Ready, 300), None);
    assert!(proxy.replace_server(&ServerPlan { maxconn: Some(6), ..ServerPlan::default() }, at(1)));
    for millis in (320..6_000).step_by(20) {
        assert_eq!(tick(&live, StoreState::Ready, millis), None);
    }
    assert_eq!(limit(&live), 6);
}

/// A process that ends reports at once, and its lease is not longer than the store's.
#[test]
fn a_process_that_ends_gives_back_what_its_requests_do_not_need() {
    let live = leased(LostMode::Open, 8);
    let held = serve(&live, 3);
    let last = |millis| live.slots.get(0).unwrap().tick(&live.proxies[0], StoreState::Ready, at(millis), true);
    let claim = last(10).unwrap();
    assert_eq!((claim.held, claim.demand, claim.is_leaving, limit(&live)), (3, 3, true, 3));
    // Its answer is lost.
    live.slots.get(0).unwrap().forget(&claim);
    tick(&live, StoreState::Lost, 1_000);
    assert_eq!(limit(&live), 3);
    tick(&live, StoreState::Lost, 1_020);
    assert_eq!(limit(&live), 10, "as 'lost' says");
    let live = leased(LostMode::Open, 8);
    assert!(!live.slots.have_left());
    let claim = live.slots.get(0).unwrap().tick(&live.proxies[0], StoreState::Ready, at(10), true).unwrap();
    assert_eq!((claim.held, limit(&live), live.slots.have_left()), (0, 0, false));
    settle(&live, &claim, 0, 15);
    assert!(live.slots.have_left());
    drop(held);
}
