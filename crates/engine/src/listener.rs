//! A worker's view of one listening socket: accepts a bounded batch and hands each connection to the less loaded of two workers,
//! before a session exists. Waits while a limit is reached. Must never read from a connection.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use config::spec::LogLevel;
use live::{Admission, Entry};
use rt::net::{Address, Listener, OwnedSocket, is_exhaustion};

use crate::frontends::Opening;
use crate::service::activity::count;
pub use crate::sockets::Listening;
use crate::stream::client;
use crate::worker::{Process, Worker};

/// Returns whether connections are accepted from a socket.
fn opening(place: &Listening, process: &Process) -> Opening {
    if place.is_closed() { Opening::Shut } else { process.opening(place.frontend) }
}

/// Accepts connections until the process stops.
pub async fn accept(worker: Rc<Worker>, place: Listening, number: usize) {
    let mut listener = match Listener::new(Arc::clone(&place.socket)) {
        Ok(listener) => listener,
        Err(_) => return,
    };
    worker.watch_stop().await;
    // Identifies this worker and listener among those that wait for a slot.
    let key = ((worker.id as u64) << 32) | number as u64;
    accept_until_stop(&worker, &place, &mut listener, key).await;
    take_leftovers(&worker, &place, &mut listener, key);
}

async fn accept_until_stop(worker: &Rc<Worker>, place: &Listening, listener: &mut Listener, key: u64) {
    let mut batch = Batch::new(worker.generation().program.global.maxaccept.max(1));
    // Exhaustion of descriptors or memory has been logged.
    let mut exhausted = false;
    loop {
        if !acceptable(worker, place, listener).await {
            return;
        }
        if rt::memory_is_scarce() && !wait_for_memory(worker, place, listener).await {
            return;
        }
        let mut taken = 0;
        while taken < batch.size && !rt::memory_is_scarce() {
            let (slots, admission) = match worker.process.live.enter_freely(place.frontend, place.bind) {
                Some(slots) => (slots, None),
                None => match enter(worker, place, listener, key).await {
                    Some((slots, admission)) => (slots, Some(admission)),
                    None => return,
                },
            };
            match listener.try_accept() {
                Ok(Some((socket, peer))) => {
                    if let Some(admission) = admission {
                        admission.confirm();
                    }
                    exhausted = false;
                    taken += 1;
                    dispatch(worker, place, socket, peer, slots);
                    // Rules on connections run in this task, before the sessions have their own.
                    if rt::slice_is_over() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    drop((slots, admission));
                    if !std::mem::replace(&mut exhausted, true) {
                        tell_of_exhaustion(worker, place.frontend, &error);
                    }
                    if !pause(listener).await {
                        return;
                    }
                    break;
                }
            }
        }
        batch.learn(taken);
        if !listener.rest_until_told() {
            rt::yield_now().await;
        }
    }
}

/// Adapts the number of connections accepted at a time to those usually pending. The kernel allocates a socket before it looks
/// for a connection, so that accepting without one costs two microseconds; an additional event costs less.
struct Batch {
    size: usize,
    most: usize,
    /// Consecutive full batches.
    full: u32,
}

impl Batch {
    /// Consecutive full batches after which the size grows.
    const TO_GROW: u32 = 4;

    fn new(most: usize) -> Self {
        Self { size: 1, most, full: 0 }
    }

    /// Records the number of connections of a batch.
    fn learn(&mut self, taken: usize) {
        if taken < self.size {
            (self.size, self.full) = (taken.max(1), 0);
            return;
        }
        self.full += 1;
        if self.full >= Self::TO_GROW {
            (self.size, self.full) = (self.size.saturating_mul(2).min(self.most), 0);
        }
    }
}

/// Pause of a listener when the system has no descriptor or no memory for a connection.
const REST: Duration = Duration::from_millis(100);

/// Pauses the listener: established sessions continue, other clients wait in the backlog; polling the socket would keep the
/// worker busy. Returns false if the listener can no longer be polled.
async fn pause(listener: &mut Listener) -> bool {
    listener.pause();
    rt::sleep(REST).await;
    listener.resume().is_ok()
}

/// Pauses the listener while memory is scarce: existing connections have priority. Returns false also when the frontend stops.
async fn wait_for_memory(worker: &Worker, place: &Listening, listener: &mut Listener) -> bool {
    listener.pause();
    let goes_on = std::future::poll_fn(|cx| match opening(place, &worker.process) {
        Opening::Shut => Poll::Ready(false),
        Opening::Open | Opening::Paused => rt::poll_memory(cx, rt::Stage::Connection).map(|()| true),
    });
    goes_on.await && listener.resume().is_ok()
}

/// Logs the exhausted resource, in HAProxy's words.
fn tell_of_exhaustion(worker: &Worker, frontend: usize, error: &io::Error) {
    if !is_exhaustion(error) {
        return;
    }
    let (what, advice) = match error.raw_os_error() {
        Some(code) if code == rt::net::NO_DESCRIPTORS_OF_PROCESS => ("process FD", "'ulimit-n' and restart"),
        Some(code) if code == rt::net::NO_DESCRIPTORS_OF_SYSTEM => ("system FD", "system tunables"),
        _ => ("system memory", "system tunables"),
    };
    let generation = worker.generation();
    let (name, most) = (&generation.proxy(frontend).name, generation.program.global.descriptors);
    let text = format!("Proxy {name} reached {what} limit (maxsock={most}). Please check {advice}.");
    worker.logger.message(Some(frontend), LogLevel::Emerg, &text);
}

/// Serves clients that have connected by the time of the stop: closing the socket would reset them. It waits for no slot, and is
/// bounded by the backlog.
fn take_leftovers(worker: &Rc<Worker>, place: &Listening, listener: &mut Listener, key: u64) {
    let live = &worker.process.live;
    let backlog =
        worker.generation().frontend(place.frontend).proxy.frontend.as_ref().map_or(0, |frontend| frontend.backlog);
    // Unharvested events would not be waited for: the socket itself is queried.
    listener.pause();
    if listener.resume().is_err() {
        return;
    }
    for _ in 0..=backlog {
        let Some(slots) = live.enter_or_park(place.frontend, place.bind, key, Waker::noop()) else {
            live.unpark(place.frontend, place.bind, key);
            return;
        };
        match listener.try_accept() {
            Ok(Some((socket, peer))) => dispatch(worker, place, socket, peer, slots),
            Ok(None) | Err(_) => return,
        }
    }
}

/// Ready with true when a connection is pending, with false when the process or the frontend stops.
async fn acceptable(worker: &Worker, place: &Listening, listener: &mut Listener) -> bool {
    std::future::poll_fn(|cx| {
        match (opening(place, &worker.process), listener.is_paused()) {
            (Opening::Shut, _) => return Poll::Ready(false),
            (Opening::Paused, false) => listener.pause(),
            (Opening::Open, true) if listener.resume().is_err() => return Poll::Ready(false),
            _ => {}
        }
        listener.poll_acceptable(cx).map(|()| true)
    })
    .await
}

/// Takes the slots that a connection needs, and waits until limits and rates allow it. `None`: the process stops.
async fn enter<'a>(
    worker: &'a Worker,
    place: &Listening,
    listener: &mut Listener,
    key: u64,
) -> Option<(Entry, Admission<'a>)> {
    let live = &worker.process.live;
    let mut paused = false;
    let mut timer = None;
    let entry = std::future::poll_fn(|cx| {
        if opening(place, &worker.process) == Opening::Shut {
            return Poll::Ready(None);
        }
        let entered = loop {
            let Some(entry) = live.enter_or_park(place.frontend, place.bind, key, cx.waker()) else { break None };
            match live.admit(place.frontend, place.bind, rt::now(), key, cx.waker()) {
                Ok(admission) => break Some((entry, admission)),
                // No slot is held while waiting for a rate.
                Err(next) => {
                    drop(entry);
                    let timer = timer.get_or_insert_with(rt::Timer::new);
                    timer.arm(next);
                    if timer.poll_expired(cx).is_pending() {
                        break None;
                    }
                }
            }
        };
        if entered.is_some() {
            return Poll::Ready(entered);
        }
        if !paused {
            paused = true;
            listener.pause();
        }
        Poll::Pending
    })
    .await;
    if entry.is_none() {
        live.unpark(place.frontend, place.bind, key);
    }
    if paused && listener.resume().is_err() {
        return None;
    }
    entry
}

/// Whether a client uses a privileged port (below 1024).
fn is_privileged(client: &Address) -> bool {
    matches!(client, Address::Inet(address) if address.port() < 1024)
}

/// Starts a session on this worker or on a less loaded one.
fn dispatch(worker: &Rc<Worker>, place: &Listening, socket: OwnedSocket, peer: Address, slots: Entry) {
    let generation = worker.generation();
    let global = &generation.program.global;
    if global.reject_privileged_ports && is_privileged(&peer) {
        return;
    }
    count(&worker.activity.accepted);
    let chosen = worker.process.reserve(worker.id, place.workers.as_deref(), global.multi_queue, rt::random);
    let (frontend, bind) = (place.frontend, place.bind);
    if chosen == worker.id {
        client::start(worker, &generation.frontend(frontend), bind, socket, peer, slots);
    } else {
        let number = generation.number();
        let job = move |worker: &Rc<Worker>| {
            count(&worker.activity.received);
            client::start(worker, &worker.generation_numbered(number).frontend(frontend), bind, socket, peer, slots);
        };
        rt::post(chosen as rt::WorkerId, Box::new(move || crate::on_worker(job)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_while_they_are_full_and_shrink_to_what_was_there() {
        let mut batch = Batch::new(4);
        let mut sizes = Vec::new();
        for _ in 0..13 {
            sizes.push(batch.size);
            let all = batch.size;
            batch.learn(all);
        }
        assert_eq!(sizes, [1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4]);
        batch.learn(3);
        assert_eq!(batch.size, 3);
        for _ in 0..Batch::TO_GROW {
            batch.learn(3);
        }
        assert_eq!(batch.size, 4, "never more than may be taken in a row");
        batch.learn(0);
        assert_eq!(batch.size, 1);
    }
}
