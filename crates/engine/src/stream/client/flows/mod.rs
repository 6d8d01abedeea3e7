//! Load balancing of datagrams (`udp-lb`): a worker's view of one UDP socket, and the flows of its clients. Must never queue a
//! datagram.

mod begin;
mod flow;
mod flow_table;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};

use live::counters::{Count, DatagramCounters};
use rt::net::{DatagramSocket, Datagrams, ReceiveBatch};

use crate::datagram_queue::Order;
use crate::datagram_sockets::{DatagramListening, DatagramPlace};
use crate::frontends::Opening;
use crate::quic_listener::{enter, opening};
use crate::service::activity::count;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::succession::Succession;
use crate::worker::Worker;
use flow::Flow;
use flow_table::{FlowKey, FlowTable};

/// Number of batches that are processed before other tasks run.
const BATCHES: usize = 16;

/// Outcome of a flow that had to make room for another one.
const EVICTED: Outcome = Outcome::new(Cause::Resource, Phase::Data);

/// A UDP socket and its flows.
pub(super) struct Listener {
    worker: Rc<Worker>,
    socket: DatagramSocket,
    place: DatagramPlace,
    /// Identifies the listener among those that wait for a slot.
    key: u64,
    /// Datagrams of the socket that the system has not taken, as far as they are counted.
    unsent: Cell<u64>,
    table: RefCell<FlowTable<Rc<Flow>>>,
}

/// Serves a UDP socket until the process stops and its last flow has ended. `accepting` is dropped as soon as no further flow
/// begins.
pub(crate) async fn serve<A>(worker: Rc<Worker>, place: DatagramListening, number: usize, accepting: A) {
    let (place, socket) = place.split();
    worker.watch_stop().await;
    let succession = worker.process.service::<Succession>().clone();
    // An older process that receives from the same socket stops first.
    std::future::poll_fn(|cx| succession.predecessors().poll_taken(cx)).await;
    let key = ((worker.id as u64) << 32) | number as u64;
    let listener = Rc::new(Listener { worker, socket, place, key, unsent: Cell::new(0), table: RefCell::default() });
    let (mut accepting, mut batch) = (Some(accepting), ReceiveBatch::new());
    std::future::poll_fn(|cx| poll(cx, &listener, &mut accepting, &mut batch)).await;
}

/// Ready once no flow may begin, and none is left.
fn poll<A>(
    cx: &mut Context<'_>,
    listener: &Rc<Listener>,
    accepting: &mut Option<A>,
    batch: &mut ReceiveBatch,
) -> Poll<()> {
    let Listener { place, socket, .. } = &**listener;
    let state = opening(place, &listener.worker.process);
    process_orders(cx, place);
    if place.is_taken() {
        // The task is woken by an order when the socket is to be read again.
        socket.stop_watching();
    } else {
        receive(cx, listener, state, batch);
    }
    let is_in_use = place.note_connections(listener.table.borrow().len() > 0);
    if state == Opening::Shut {
        accepting.take();
        if !is_in_use {
            return Poll::Ready(());
        }
    }
    Poll::Pending
}

/// Receives what has arrived. A receive error is one of the system, and tried again with the next arrival.
fn receive(cx: &mut Context<'_>, listener: &Rc<Listener>, state: Opening, batch: &mut ReceiveBatch) {
    for _ in 0..BATCHES {
        let Poll::Ready(received) = listener.socket.poll_receive(cx, batch) else { return };
        if received.is_err() {
            break;
        }
        for datagrams in batch.iter() {
            listener.take(&datagrams, state);
        }
        batch.clear();
    }
    cx.waker().wake_by_ref();
}

/// Answers the questions of other processes: there are no handshakes.
fn process_orders(cx: &mut Context<'_>, place: &DatagramPlace) {
    let Some(queue) = place.queue() else { return };
    while let Poll::Ready(order) = queue.poll_next(cx) {
        if let Order::Report(part) = order {
            part.report(Vec::new());
        }
    }
}

impl Listener {
    /// Passes datagrams of a client on: to the server of their flow, or to one that is chosen now.
    fn take(self: &Rc<Self>, datagrams: &Datagrams<'_>, state: Opening) {
        let key = FlowKey { peer: datagrams.peer, local: datagrams.local_ip };
        let known = self.table.borrow().find(&key).map(|(place, flow)| (place, Rc::clone(flow)));
        if let Some((place, flow)) = known {
            if datagrams.stride > flow.settings.payload {
                return self.count(datagrams.iter().count(), |counters| &counters.oversized);
            }
            if let Ok(is_sent) = flow.forward(datagrams) {
                if !is_sent {
                    self.count(datagrams.iter().count(), |counters| &counters.unsent);
                }
                let mut table = self.table.borrow_mut();
                table.touch(place, flow.standing());
                if flow.is_used_up() {
                    table.detach(place);
                }
                return;
            }
            // The server has rejected an earlier datagram: this one goes to another flow.
            self.forget(&flow);
            flow.end(flow::REJECTED);
        }
        if state == Opening::Open {
            self.begin(key, datagrams);
        }
    }

    /// Begins a flow, if limits and rates allow it now.
    fn begin(self: &Rc<Self>, key: FlowKey, datagrams: &Datagrams<'_>) {
        let worker = &self.worker;
        let generation = worker.generation();
        let owner = self.place.owner();
        let payload = generation.proxy(owner.frontend).flows.as_ref().map(|flows| flows.payload);
        if payload.is_none_or(|most| datagrams.stride > most) {
            return self.count(datagrams.iter().count(), |counters| &counters.oversized);
        }
        let is_privileged = generation.program.global.reject_privileged_ports && datagrams.peer.port() < 1024;
        if is_privileged || rt::memory_is_scarce() {
            return self.count(datagrams.iter().count(), |counters| &counters.refused);
        }
        let slots = enter(worker, owner, self.key).or_else(|| {
            self.evict();
            enter(worker, owner, self.key)
        });
        let Some(slots) = slots else { return self.count(datagrams.iter().count(), |counters| &counters.refused) };
        count(&worker.activity.accepted);
        let Some(flow) = begin::begin(self, datagrams, slots) else { return };
        let place = self.table.borrow_mut().insert(key, Rc::clone(&flow));
        flow.place.set(Some(place));
        if flow.forward(datagrams).is_err() {
            flow.end(flow::REJECTED);
        } else if flow.is_used_up() {
            self.table.borrow_mut().detach(place);
        }
        flow.end_if_answered();
        let (tag, listener) = (flow.session.tag(), Rc::clone(self));
        rt::spawn_with(rt::Class::Normal, tag, (listener, flow), |(listener, flow)| flow::run(listener, flow));
    }

    /// Counts datagrams or flows.
    fn count(&self, number: usize, of: impl FnOnce(&DatagramCounters) -> &Count) {
        let generation = self.worker.generation();
        let frontend = generation.frontend(self.place.owner().frontend);
        of(frontend.counters.datagrams.used()).add(number as u64);
    }

    /// Counts the datagrams of a socket that the system has not taken since `counted`.
    fn count_unsent(&self, socket: &DatagramSocket, counted: &Cell<u64>) {
        let counts = socket.counts();
        let unsent = counts.unsent + counts.too_large;
        let before = counted.replace(unsent);
        if unsent != before {
            self.count((unsent - before) as usize, |counters| &counters.unsent);
        }
    }

    /// Ends the flow of this socket that is worth least, and frees its slot.
    fn evict(&self) {
        let evicted = {
            let mut table = self.table.borrow_mut();
            let place = table.oldest();
            place.and_then(|place| table.remove(place))
        };
        if let Some(flow) = evicted {
            self.count(1, |counters| &counters.evicted);
            flow.place.set(None);
            drop(flow.session.take_slots());
            flow.end(EVICTED);
        }
    }

    /// Removes a flow from the table.
    fn forget(&self, flow: &Flow) {
        if let Some(place) = flow.place.take() {
            self.table.borrow_mut().remove(place);
            if self.table.borrow().len() == 0 {
                self.wake();
            }
        }
    }

    /// Wakes the task of the socket: its last flow has ended.
    fn wake(&self) {
        if let Some(queue) = self.place.queue() {
            queue.wake();
        }
    }
}
