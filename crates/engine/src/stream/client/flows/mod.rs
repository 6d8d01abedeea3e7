//! Load balancing of datagrams (`udp-lb`): a worker's view of one UDP socket, and the flows of its clients. Must never queue a
//! datagram, except the first ones of a QUIC connection.

mod answers;
mod begin;
mod client_socket;
mod connection_ids;
mod flow;
mod flow_ids;
mod flow_table;
mod held_hellos;
mod quic_passthrough;

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use policy::program::QuicPassthrough;
use rt::net::{Datagrams, ReceiveBatch};

use crate::datagram_entry::{NoEntry, enter, opening};
use crate::datagram_queue::Order;
use crate::datagram_sockets::{DatagramListening, DatagramPlace};
use crate::frontends::Opening;
use crate::service::activity::count;
use crate::stream_state::Outcome;
use crate::succession::Succession;
use crate::worker::Worker;
use begin::FlowHint;
use client_socket::ClientSocket;
use connection_ids::ConnectionIds;
use flow::{Flow, GONE, REJECTED, Rejected};
use flow_table::{FlowKey, FlowPlace, FlowTable};
use held_hellos::Hold;
use quic_passthrough::{Destination, Passthrough, note_continued};

/// Number of batches that are processed before other tasks run.
const BATCHES: usize = 16;

/// Number of reports about answers that are read before other tasks run.
const REJECTIONS: usize = 256;

/// Pause after an error of the system, about memory for example.
const REST: Duration = Duration::from_millis(100);

/// A UDP socket and its flows.
struct Listener {
    clients: Rc<ClientSocket>,
    /// Identifies the listener among those that wait for a slot.
    key: u64,
    table: RefCell<FlowTable<Rc<Flow>>>,
    /// Used with `option quic-passthrough`.
    quic: Passthrough,
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
    let quic = Passthrough::new(key, worker.process.service::<ConnectionIds>().clone());
    let clients = Rc::new(ClientSocket::new(worker, socket, place));
    let listener = Rc::new(Listener { clients, key, table: RefCell::default(), quic });
    let (mut accepting, mut reception) = (Some(accepting), Reception::default());
    std::future::poll_fn(|cx| poll(cx, &listener, &mut accepting, &mut reception)).await;
}

/// State of receiving.
#[derive(Default)]
struct Reception {
    batch: ReceiveBatch,
    /// Ends the pause after an error of the system.
    pause: rt::Timer,
    /// Ends the wait for a ClientHello.
    wait: rt::Timer,
}

/// Ready once no flow may begin, and none is left.
fn poll<A>(
    cx: &mut Context<'_>,
    listener: &Rc<Listener>,
    accepting: &mut Option<A>,
    reception: &mut Reception,
) -> Poll<()> {
    let ClientSocket { place, socket, worker, .. } = &*listener.clients;
    let state = opening(place, &worker.process);
    process_orders(cx, place);
    if place.is_taken() {
        // The task is woken by an order when the socket is to be read again.
        socket.stop_watching();
    } else if reception.pause.deadline().is_none() || reception.pause.poll_expired(cx).is_ready() {
        reception.pause.arm(None);
        receive(cx, listener, state, reception);
        listener.end_gone(cx);
    }
    listener.end_waits(cx, &mut reception.wait, state);
    let is_in_use = place.note_connections(listener.table.borrow().len() > 0);
    if state == Opening::Shut {
        accepting.take();
        if !is_in_use {
            return Poll::Ready(());
        }
    }
    Poll::Pending
}

/// Receives what has arrived.
fn receive(cx: &mut Context<'_>, listener: &Rc<Listener>, state: Opening, reception: &mut Reception) {
    let Reception { batch, pause, .. } = reception;
    for _ in 0..BATCHES {
        match listener.clients.socket.poll_receive(cx, batch) {
            Poll::Pending => return,
            Poll::Ready(Ok(())) => batch.iter().for_each(|datagrams| listener.take(&datagrams, state)),
            Poll::Ready(Err(_)) => {
                pause.arm(Some(rt::now() + REST));
                let _ = pause.poll_expired(cx);
                return;
            }
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
    /// Passes datagrams of a client on. Those that the kernel has joined are separated if they may belong to several flows.
    fn take(self: &Rc<Self>, datagrams: &Datagrams<'_>, state: Opening) {
        let generation = self.clients.worker.generation();
        let settings = generation.proxy(self.clients.place.owner().frontend).flows.as_ref();
        let datagrams = &self.clients.simplified(datagrams);
        let Some(settings) = settings.filter(|flows| flows.are_apart) else { return self.pass(datagrams, state) };
        if let Some(quic) = settings.quic {
            return self.pass_quic(datagrams, state, quic);
        }
        for bytes in datagrams.iter() {
            self.pass(&Datagrams { bytes, stride: bytes.len().max(1), ..*datagrams }, state);
        }
    }

    /// Passes datagrams of one flow on: to its server, or to one that is chosen now.
    fn pass(self: &Rc<Self>, datagrams: &Datagrams<'_>, state: Opening) {
        let key = FlowKey { peer: datagrams.peer, local: datagrams.local_ip };
        let rest = match self.find(&key) {
            Some((place, flow)) => self.pass_on(place, &flow, datagrams),
            None => Err(*datagrams),
        };
        if let Err(rest) = rest {
            self.begin(key, &rest, state, FlowHint::default());
        }
    }

    /// Returns the flow of a client.
    fn find(&self, key: &FlowKey) -> Option<(FlowPlace, Rc<Flow>)> {
        self.table.borrow().find(key).map(|(place, flow)| (place, Rc::clone(flow)))
    }

    /// Passes datagrams on to the server of a flow.
    ///
    /// # Errors
    /// Those that were not sent: the server has rejected an earlier one; these go to another flow.
    fn pass_on<'a>(&self, place: FlowPlace, flow: &Flow, datagrams: &Datagrams<'a>) -> Result<(), Datagrams<'a>> {
        let Some(datagrams) = self.clients.fitting(datagrams, flow.settings.payload) else { return Ok(()) };
        let is_sent = flow.forward(&datagrams, &mut self.clients.marked.borrow_mut()).map_err(|rejected| {
            flow.forget_ids();
            self.forget(flow);
            flow.end(REJECTED);
            rejected.rest(&datagrams)
        })?;
        self.count_unsent(is_sent, &datagrams);
        let mut table = self.table.borrow_mut();
        table.touch(place, flow.standing());
        if flow.is_used_up() {
            table.detach(place);
        }
        Ok(())
    }

    /// Passes datagrams of QUIC on, each within the flow of its connection.
    fn pass_quic(self: &Rc<Self>, datagrams: &Datagrams<'_>, state: Opening, settings: QuicPassthrough) {
        let key = FlowKey { peer: datagrams.peer, local: datagrams.local_ip };
        let mut rest = *datagrams;
        if let Some((place, flow)) = self.find(&key)
            && flow.ids.get().is_some_and(|ids| ids.borrow_mut().are_current(datagrams))
        {
            match self.pass_on(place, &flow, datagrams) {
                Ok(()) => return,
                Err(unsent) => rest = unsent,
            }
        }
        for bytes in rest.iter() {
            let datagram = Datagrams { bytes, stride: bytes.len().max(1), ..rest };
            let destination = || {
                let generation = self.clients.worker.generation();
                let proxy = generation.proxy(self.clients.place.owner().frontend);
                self.quic.destination(&self.table.borrow(), &key, bytes, proxy, settings)
            };
            let mut next = destination();
            if let Destination::Flow(place, flow) = &next {
                if self.pass_on(*place, flow, &datagram).is_ok() {
                    continue;
                }
                // Its IDs are forgotten now.
                next = destination();
            }
            match next {
                Destination::Hello => self.hold(key, &datagram, state),
                Destination::New(server) => self.begin(key, &datagram, state, FlowHint { contents: None, server }),
                Destination::Flow(place, flow) => {
                    let _ = self.pass_on(place, &flow, &datagram);
                }
            }
        }
    }

    /// Holds a datagram until the ClientHello of its connection is complete.
    fn hold(self: &Rc<Self>, key: FlowKey, datagram: &Datagrams<'_>, state: Opening) {
        let generation = self.clients.worker.generation();
        let settings = generation.proxy(self.clients.place.owner().frontend).flows.as_ref();
        if settings.is_none_or(|flows| datagram.stride > flows.payload) {
            return self.clients.count(1, |counters| &counters.oversized);
        }
        if state != Opening::Open || rt::memory_is_scarce() {
            return self.clients.count(1, |counters| &counters.refused);
        }
        let added = self.quic.held.borrow_mut().add(key, datagram.bytes, rt::now());
        match added {
            Hold::Held { dropped } => {
                self.clients.count(1, |counters| &counters.held);
                self.clients.count(dropped, |counters| &counters.refused);
            }
            Hold::Released { before, contents } => self.release(key, &before, Some(datagram), state, contents),
        }
    }

    /// Begins the flow of a connection with the datagrams that were held, and the one that completes its ClientHello.
    fn release(
        self: &Rc<Self>,
        key: FlowKey,
        before: &[Box<[u8]>],
        last: Option<&Datagrams<'_>>,
        state: Opening,
        contents: Option<Vec<u8>>,
    ) {
        let FlowKey { peer, local: local_ip } = key;
        let whole = |bytes| Datagrams { bytes, stride: bytes.len().max(1), peer, local_ip, ecn: None };
        let mut datagrams = before.iter().map(|bytes| whole(bytes)).chain(last.copied());
        // Without a ClientHello, the client of a flow has changed its ID before its handshake was complete.
        let is_continued = contents.is_none() && self.find(&key).is_some();
        if !is_continued && let Some(first) = datagrams.next() {
            self.clients.count(usize::from(contents.is_none()), |counters| &counters.nameless);
            self.begin(key, &first, state, FlowHint { contents, server: None });
        }
        for datagram in datagrams {
            // It is lost if no flow has begun.
            let Some((place, flow)) = self.find(&key) else { return };
            if is_continued {
                note_continued(&flow, datagram.bytes);
            }
            // It is lost if the server has rejected another one.
            let _ = self.pass_on(place, &flow, &datagram);
        }
    }

    /// Passes on what has been held for long enough: no ClientHello is known.
    fn end_waits(self: &Rc<Self>, cx: &mut Context<'_>, timer: &mut rt::Timer, state: Opening) {
        loop {
            let due = self.quic.held.borrow_mut().take_due(rt::now());
            if let Some((key, before)) = due {
                self.release(key, &before, None, state, None);
                continue;
            }
            let next = self.quic.held.borrow().due();
            timer.arm(next);
            if next.is_none() || timer.poll_expired(cx).is_pending() {
                return;
            }
        }
    }

    /// Ends the flows of clients whose ports are closed. A client of QUIC may only have changed its port: its connection IDs have to
    /// lead to its server.
    fn end_gone(&self, cx: &Context<'_>) {
        for _ in 0..REJECTIONS {
            let Some(rejection) = self.clients.socket.next_rejection() else { return };
            let key = self.clients.key_of(&rejection);
            let gone = self.table.borrow().find(&key).map(|(_, flow)| Rc::clone(flow));
            if let Some(flow) = gone.filter(|flow| rejection.is_closed && flow.settings.quic.is_none()) {
                self.forget(&flow);
                flow.end(GONE);
            }
        }
        // No event follows for those that wait already.
        cx.waker().wake_by_ref();
    }

    /// Counts datagrams that the system has not taken.
    fn count_unsent(&self, is_sent: bool, datagrams: &Datagrams<'_>) {
        if !is_sent {
            self.clients.count(datagrams.iter().count(), |counters| &counters.unsent);
        }
    }

    /// Begins a flow, if the state of the socket, limits and rates allow it now.
    fn begin(self: &Rc<Self>, key: FlowKey, datagrams: &Datagrams<'_>, state: Opening, hint: FlowHint) {
        let worker = &self.clients.worker;
        let generation = worker.generation();
        let owner = self.clients.place.owner();
        let payload = generation.proxy(owner.frontend).flows.as_ref().map_or(0, |flows| flows.payload);
        let is_privileged = generation.program.global.reject_privileged_ports && datagrams.peer.port() < 1024;
        if state != Opening::Open || is_privileged || rt::memory_is_scarce() {
            return self.clients.count(datagrams.iter().count(), |counters| &counters.refused);
        }
        let Some(datagrams) = self.clients.fitting(datagrams, payload) else { return };
        let datagrams = &datagrams;
        let slots = enter(worker, owner, self.key).or_else(|refusal| {
            if refusal == NoEntry::Full {
                self.evict();
            }
            enter(worker, owner, self.key)
        });
        let Ok(slots) = slots else {
            return self.clients.count(datagrams.iter().count(), |counters| &counters.refused);
        };
        count(&worker.activity.accepted);
        let Some(flow) = begin::begin(&self.clients, datagrams, slots, &hint) else { return };
        let place = self.table.borrow_mut().insert(key, Rc::clone(&flow));
        flow.place.set(Some(place));
        if flow.settings.quic.is_some() {
            self.quic.attach(&flow, place, datagrams.bytes);
        }
        match flow.forward(datagrams, &mut self.clients.marked.borrow_mut()) {
            Err(Rejected { .. }) => {
                flow.forget_ids();
                self.forget(&flow);
                flow.end(REJECTED);
            }
            Ok(_) if flow.is_answered() => {
                // The client's next datagram begins another flow.
                self.forget(&flow);
                flow.end(Outcome::default());
            }
            Ok(is_sent) => {
                self.count_unsent(is_sent, datagrams);
                if flow.is_used_up() {
                    self.table.borrow_mut().detach(place);
                }
            }
        }
        let (tag, listener) = (flow.session.tag(), Rc::clone(self));
        rt::spawn_with(rt::Class::Normal, tag, (listener, flow), |(listener, flow)| run(listener, flow));
    }

    /// Ends the flow of this socket that is worth least, and frees its slot.
    fn evict(&self) {
        let evicted = {
            let mut table = self.table.borrow_mut();
            let place = table.oldest();
            place.and_then(|place| table.remove(place))
        };
        if let Some(flow) = evicted {
            self.clients.count(1, |counters| &counters.evicted);
            flow.place.set(None);
            flow.evict();
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
        if let Some(queue) = self.clients.place.queue() {
            queue.wake();
        }
    }
}

/// Removes a flow from its table, also if its task panics.
struct Presence {
    listener: Rc<Listener>,
    flow: Rc<Flow>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.listener.forget(&self.flow);
    }
}

/// Serves a flow until it ends.
async fn run(listener: Rc<Listener>, flow: Rc<Flow>) {
    let presence = Presence { listener, flow };
    let Presence { listener, flow } = &presence;
    let outcome = flow.serve(&listener.clients).await;
    listener.forget(flow);
    if outcome == Some(REJECTED) {
        listener.clients.count(1, |counters| &counters.rejected);
    }
    flow.conclude(outcome);
}
