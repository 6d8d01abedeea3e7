//! Accepts connections of peers and identifies them, within a timeout. Must never keep more unidentified connections
//! than [`STRANGERS`]; beyond that, one is closed at random.

use conn::handshake::{self, Accepted};
use conn::transport::Transport;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::Moment;
use base::buffer::Buffer;
use rt::net::Listener;
use wire::peers::{Hello, Status};

use super::PeerSocket;
use super::connector::teach_successor;
use super::conversation::{converse, send};
use super::tasks::PeerTasks;
use engine::handshake::entrance;

/// Timeout of the hello.
const GREETING: Duration = Duration::from_secs(5);
/// Maximum number of unidentified connections.
const STRANGERS: usize = 64;
/// Maximum length of a hello in bytes.
const LONGEST: usize = 4_096;
/// Pause after an error of a listening socket.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens until the process stops, then teaches its successor.
pub(super) async fn listen(circle: Rc<PeerTasks>, sockets: Vec<PeerSocket>) {
    circle.worker.watch_stop().await;
    let mut listeners: Vec<Listener> = sockets.into_iter().filter_map(|one| Listener::new(one.socket).ok()).collect();
    let strangers = Rc::new(Unidentified::default());
    let entrance = circle.party().plan.section.bind.as_ref().map(entrance).unwrap_or_default();
    loop {
        let ready = poll_fn(|cx| {
            if circle.is_over() {
                return Poll::Ready(None);
            }
            let ready = listeners.iter_mut().position(|listener| listener.poll_acceptable(cx).is_ready());
            ready.map_or(Poll::Pending, |place| Poll::Ready(Some(place)))
        });
        let Some(place) = ready.await else { break };
        match listeners[place].try_accept() {
            Ok(Some((accepted, _))) => {
                let (circle, seat) = (Rc::clone(&circle), strangers.enter());
                let entrance = entrance.clone();
                rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
                    let limit = rt::now() + GREETING;
                    let accepted = unless_lost(&seat, handshake::accept(accepted, entrance, Some(GREETING))).await;
                    if let Some(Some(accepted)) = accepted {
                        receive(circle, accepted, limit, seat).await;
                    }
                });
            }
            Ok(None) => {}
            Err(_) => rt::sleep(PAUSE).await,
        }
    }
    // From here on, connections to this address must reach the newer process.
    drop(listeners);
    teach_successor(&circle).await;
    circle.worker.end_accepting();
}

/// Connections that are not identified yet.
#[derive(Default)]
struct Unidentified(RefCell<Vec<Rc<Slot>>>);

/// A slot of an unidentified connection.
#[derive(Default)]
struct Slot {
    /// The slot was given to another connection.
    lost: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Dropping it releases the slot.
struct SlotGuard(Rc<Unidentified>, Rc<Slot>);

impl Unidentified {
    fn enter(self: &Rc<Self>) -> SlotGuard {
        let seat = Rc::new(Slot::default());
        let mut seats = self.0.borrow_mut();
        if seats.len() >= STRANGERS {
            let place = (rt::random() % seats.len() as u64) as usize;
            let unlucky = seats.swap_remove(place);
            unlucky.lost.set(true);
            if let Some(waker) = unlucky.waker.borrow_mut().take() {
                waker.wake();
            }
        }
        seats.push(Rc::clone(&seat));
        SlotGuard(Rc::clone(self), seat)
    }
}

impl SlotGuard {
    fn poll_lost(&self, cx: &Context<'_>) -> Poll<()> {
        if self.1.lost.get() {
            return Poll::Ready(());
        }
        *self.1.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.0.0.borrow_mut().retain(|seat| !Rc::ptr_eq(seat, &self.1));
    }
}

/// Returns the output of a future; `None`: the slot was lost first.
async fn unless_lost<T>(stay: &SlotGuard, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match stay.poll_lost(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}

/// Reads the hello of a peer, until `limit`, and serves the connection.
async fn receive(circle: Rc<PeerTasks>, accepted: Accepted, limit: Moment, stay: SlotGuard) {
    let Accepted { transport: mut stream, input, .. } = accepted;
    let Some((hello, rest)) = read_hello(&mut stream, input, limit, &stay).await else { return };
    let now = rt::now();
    let greeted = hello.and_then(|hello| {
        let greeted = circle.with(|section| section.greeted(&hello, now));
        greeted.unwrap_or(Err(Status::TryAgain))
    });
    let status = greeted.err().unwrap_or(Status::Succeeded);
    let (line, mut sent, mut timer) = (status.line(), 0, rt::Timer::new());
    timer.arm(Some(now + GREETING));
    let told = poll_fn(|cx| match send(&mut stream, cx, &line, &mut sent) {
        Poll::Ready(told) => Poll::Ready(told.is_ok()),
        Poll::Pending => timer.poll_expired(cx).map(|()| false),
    })
    .await;
    drop(stay);
    let Ok(ticket) = greeted else { return };
    // Closes the connection that this one replaces.
    circle.wake_connections();
    circle.wake_keeper();
    let mut input = Buffer::with_capacity(rt::buffer_size());
    if told && input.push(rest.data()) {
        drop(rest);
        converse(&circle, stream, input, ticket).await;
    }
    circle.with(|section| section.ended(ticket, rt::now(), rt::random()));
    circle.wake_keeper();
}

/// Reads a hello. Returns it, or the status that rejects it, and the bytes after it. `None`: none was received.
async fn read_hello(
    stream: &mut Transport,
    early: Buffer,
    limit: Moment,
    stay: &SlotGuard,
) -> Option<(Result<Hello, Status>, Buffer)> {
    let mut timer = rt::Timer::new();
    timer.arm(Some(limit));
    let mut input = if early.is_empty() { Buffer::with_capacity(LONGEST) } else { early };
    loop {
        match Hello::decode(input.data()) {
            Ok(Some((hello, length))) => {
                input.consume(length);
                return Some((Ok(hello), input));
            }
            Err(status) => return Some((Err(status), input)),
            Ok(None) => {}
        }
        let read = poll_fn(|cx| match timer.poll_expired(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => stream.poll_read(cx, &mut input).map(Some),
        });
        if !matches!(unless_lost(stay, read).await, Some(Some(Ok(count))) if count > 0) {
            return None;
        }
    }
}
