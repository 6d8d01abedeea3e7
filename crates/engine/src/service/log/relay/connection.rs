//! Messages over connections (RFC 6587), as many at a time as `maxconn` says. Must never write to one.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use conn::handshake::{self, Entrance};
use conn::transport::Transport;
use rt::net::{Listener, ListeningSocket, OwnedSocket};
use wire::syslog::frame::{self, Frame};

use crate::worker::Worker;

/// Between two looks at whether there is room for another connection, and after an error of the listening socket.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection's place among those of its relay, and of the process. Dropping it gives both back.
struct RelaySlot {
    worker: Rc<Worker>,
    relay: usize,
}

impl RelaySlot {
    /// `None`: the relay has as many connections as it may.
    fn take(worker: &Rc<Worker>, relay: usize) -> Option<Self> {
        let open = &worker.process.log_targets.relays.get(relay)?.open;
        let most = worker.generation().program.log_forwards.get(relay)?.maxconn;
        let more = |count: u32| (count < most).then_some(count + 1);
        open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        worker.enter_relay();
        Some(Self { worker: Rc::clone(worker), relay })
    }
}

impl Drop for RelaySlot {
    fn drop(&mut self) {
        if let Some(relay) = self.worker.process.log_targets.relays.get(self.relay) {
            relay.open.fetch_sub(1, Ordering::Relaxed);
        }
        self.worker.leave_relay();
    }
}

/// Accepts until the process stops.
pub async fn accept(worker: Rc<Worker>, relay: usize, (socket, entrance): (Arc<ListeningSocket>, Entrance)) {
    let Ok(mut listener) = Listener::new(socket) else { return };
    loop {
        let ready = std::future::poll_fn(|cx| {
            if worker.process.is_stopping() {
                return Poll::Ready(false);
            }
            listener.poll_acceptable(cx).map(|()| true)
        });
        if !ready.await {
            return;
        }
        let Some(place) = RelaySlot::take(&worker, relay) else {
            rt::sleep(PAUSE).await;
            continue;
        };
        match listener.try_accept() {
            Ok(Some((accepted, address))) => {
                let source = super::source(&address);
                rt::spawn(rt::Class::Normal, rt::NO_TAG, receive(place, accepted, entrance.clone(), source));
            }
            Ok(None) => {}
            Err(_) => rt::sleep(PAUSE).await,
        }
    }
}

/// Serves a sender behind the headers that it begins with. The source of its messages is their sender, not the one
/// that a header names, as with HAProxy 3.5.
async fn receive(place: RelaySlot, socket: OwnedSocket, entrance: Entrance, source: Option<IpAddr>) {
    let generation = place.worker.generation();
    let patience = generation.program.log_forwards.get(place.relay).and_then(|relay| relay.timeout);
    drop(generation);
    let Some(accepted) = handshake::accept(socket, entrance, patience).await else { return };
    Connection { stream: accepted.transport, input: accepted.input, source, place }.serve().await;
}

/// A sender.
struct Connection {
    stream: Transport,
    /// The front of a message that has not come whole; no buffer is held between messages.
    input: Buffer,
    source: Option<IpAddr>,
    place: RelaySlot,
}

impl Connection {
    /// Reads until the sender closes, falls silent for `timeout client`, or sends what is no message. What it had begun
    /// then is lost.
    async fn serve(mut self) {
        let worker = Rc::clone(&self.place.worker);
        let generation = worker.generation();
        let Some(relay) = generation.program.log_forwards.get(self.place.relay) else { return };
        let mut silence = rt::Timer::new();
        // A message may have come with the headers.
        if !self.input.is_empty() && !self.hand_over(&worker, relay.lines_only).await {
            return;
        }
        loop {
            silence.arm(relay.timeout.map(|timeout| rt::now() + timeout));
            let goes_on = std::future::poll_fn(|cx| match self.poll_read(cx) {
                Poll::Pending => silence.poll_expired(cx).map(|()| false),
                ready => ready,
            });
            if !goes_on.await || !self.hand_over(&worker, relay.lines_only).await {
                return;
            }
        }
    }

    /// False: nothing more will come.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.input.capacity() == 0 {
            if self.stream.poll_readable(cx).is_pending() {
                return Poll::Pending;
            }
            self.input = rt::buffer();
        }
        let read = self.stream.poll_read(cx, &mut self.input);
        if read.is_pending() && self.input.is_empty() {
            self.input = Buffer::empty();
        }
        read.map(|read| matches!(read, Ok(count) if count > 0))
    }

    /// Gives what is whole to the log. False: what follows is no message.
    async fn hand_over(&mut self, worker: &Worker, lines_only: bool) -> bool {
        let most = self.input.capacity();
        loop {
            match frame::next(self.input.data(), most, lines_only) {
                Frame::Message(range, taken) => {
                    worker.logger.relay(self.place.relay, &self.input.data()[range], self.source);
                    self.input.consume(taken);
                    if rt::slice_is_over() {
                        rt::yield_now().await;
                    }
                }
                Frame::Incomplete if self.input.is_empty() => {
                    self.input = Buffer::empty();
                    return true;
                }
                Frame::Incomplete => {
                    self.input.compact();
                    return true;
                }
                Frame::Broken => return false,
            }
        }
    }
}
