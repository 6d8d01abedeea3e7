//! Log messages over connections (RFC 6587), at most `maxconn` at a time. Must never write to one.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use conn::handshake::{self, LowerLayers};
use conn::transport::Transport;
use rt::net::{Listener, ListeningSocket, OwnedSocket};
use wire::syslog::frame::{self, Frame};

use crate::worker::Worker;

/// Delay before a free slot is looked for again, and after an error of the listening socket.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection's slot in the limits of its relay and of the process, freed when dropped.
struct RelaySlot {
    worker: Rc<Worker>,
    relay: usize,
}

impl RelaySlot {
    /// Takes a slot; `None`: the relay has reached `maxconn`.
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

/// Accepts connections until the process stops.
pub async fn accept(worker: Rc<Worker>, relay: usize, socket: Arc<ListeningSocket>, entrance: LowerLayers) {
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

/// Serves a sender, after the headers that its connection begins with. The source of its messages is the peer address, not the
/// one in a header, as with HAProxy 3.5.
async fn receive(place: RelaySlot, socket: OwnedSocket, entrance: LowerLayers, source: Option<IpAddr>) {
    let generation = place.worker.generation();
    let patience = generation.program.log_forwards.get(place.relay).and_then(|relay| relay.timeout);
    drop(generation);
    let Some(accepted) = handshake::accept(socket, entrance, patience).await else { return };
    Connection { stream: accepted.transport, input: accepted.input, source, place }.serve().await;
}

/// A connection of a sender.
struct Connection {
    stream: Transport,
    /// Beginning of an incomplete message; no buffer is held between messages.
    input: Buffer,
    source: Option<IpAddr>,
    place: RelaySlot,
}

impl Connection {
    /// Reads until the sender closes, is inactive for `timeout client`, or sends an invalid message. An incomplete message is
    /// discarded then.
    async fn serve(mut self) {
        let worker = Rc::clone(&self.place.worker);
        let generation = worker.generation();
        let Some(relay) = generation.program.log_forwards.get(self.place.relay) else { return };
        let mut silence = rt::Timer::new();
        // A message may have been received with the headers.
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

    /// Reads more bytes. Returns false at the end of the stream, or on an error.
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

    /// Passes complete messages to the log. Returns false if the input is not a valid message.
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
