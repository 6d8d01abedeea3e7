//! Tests of live state: observed behaviour of HAProxy, a naive model with random operations, and contending threads.

mod arrivals;
mod gates;
mod model;
mod outliers;
mod saved_state;
mod scenarios;
mod shares;
mod sizes;
mod states;
mod threads;

use super::*;
use crate::health::Operation;
use base::moment::Moment;
use config::spec::BalanceSpec;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

/// A server of the tests: weight, `maxconn`, `maxqueue`; 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan(u32, u32, u32);

/// A server as planned, at an index of its backend.
fn server(index: usize, &Plan(weight, maxconn, maxqueue): &Plan) -> ServerPlan {
    let limit = |number: u32| (number > 0).then_some(number);
    let id = index as u32 + 1;
    let (maxconn, maxqueue) = (limit(maxconn), limit(maxqueue));
    ServerPlan { index, id, place: id.wrapping_mul(4_096), weight, maxconn, maxqueue, ..ServerPlan::default() }
}

/// Gives a server a limit that depends on the load from `minconn` on, as the compiler does; 0 means none.
fn follow_load(server: &mut ServerPlan, minconn: u32) {
    let minconn = Some(minconn).filter(|minconn| *minconn > 0);
    server.maxconn = server.maxconn.max(minconn);
    server.minconn = minconn.filter(|minconn| Some(*minconn) < server.maxconn);
}

/// A backend with servers as planned.
fn plan(balance: BalanceSpec, servers: &[Plan]) -> BackendPlan {
    let servers = servers.iter().enumerate().map(|(index, plan)| server(index, plan)).collect();
    BackendPlan { servers, balance, fullconn: 1, ..BackendPlan::default() }
}

/// The live state of one proxy in a process for that many connections.
fn live_of(proxy: ProxyPlan, maxconn: u32) -> Live {
    Live::new(LivePlan { maxconn, proxies: vec![proxy], ..LivePlan::default() }, 7)
}

fn state_of(backend: BackendPlan) -> Arc<ProxyState> {
    let proxy = ProxyPlan { backend: Some(backend), ..ProxyPlan::default() };
    Arc::clone(&live_of(proxy, 1_000).proxies[0])
}

fn farm(balance: BalanceSpec, servers: &[Plan]) -> Arc<ProxyState> {
    state_of(plan(balance, servers))
}

fn slot(assignment: Assignment) -> ServerSlot {
    match assignment {
        Assignment::Slot(slot) => slot,
        other => panic!("no slot but {other:?}"),
    }
}

fn ticket(assignment: Assignment) -> QueueTicket {
    match assignment {
        Assignment::Queued(ticket) => ticket,
        other => panic!("no ticket but {other:?}"),
    }
}

const ANY: PickContext = PickContext {
    hash: None,
    random: 0,
    exclude: None,
    server: None,
    forced: false,
    priority: Priority { class: 0, offset: 0, now: Moment::ZERO },
    prefer: None,
};

/// Sets a server to ready or to maintenance.
fn set_enabled(state: &ProxyState, server: usize, enabled: bool) {
    let admin = if enabled { Admin::Ready } else { Admin::Maintenance };
    state.set_admin(server, admin, Moment::ZERO);
}

/// Sets the result of a server's checks.
fn set_up(state: &ProxyState, server: usize, up: bool, now: Moment) {
    let operation = if up { Operation::Up } else { Operation::Down };
    state.force(server, Checker::Health, operation, now);
}

/// A request bound to a server.
fn bound(server: usize) -> PickContext {
    PickContext { server: Some(server), ..ANY }
}

/// Counts the calls of its waker.
#[derive(Debug, Default)]
struct Bell(AtomicUsize);

impl Bell {
    fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        (Arc::clone(&bell), Waker::from(bell))
    }

    fn rings(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Polls once with this waker.
fn poll(ticket: &mut QueueTicket, waker: &Waker) -> Option<ServerSlot> {
    match ticket.poll_granted(&mut Context::from_waker(waker)) {
        Poll::Ready(slot) => Some(slot),
        Poll::Pending => None,
    }
}

/// Pseudo-random numbers from one seed (Knuth's constants).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}
