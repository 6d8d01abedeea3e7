//! Accepts connections to the runtime API, at most `stats maxconn` at a time. Must never read from one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use conn::handshake::{self, LowerLayers};
use rt::net::{Listener, ListeningSocket};

use super::call::Conversation;
use super::command::{CommandSet, CommandTarget};
use super::connection;

/// The open connections of all sockets.
#[derive(Debug)]
pub struct OpenConnections {
    most: u32,
    open: Cell<u32>,
    waiting: RefCell<Vec<Waker>>,
}

impl OpenConnections {
    /// Creates an empty set with a limit.
    pub fn new(most: u32) -> Rc<Self> {
        Rc::new(Self { most, open: Cell::new(0), waiting: RefCell::default() })
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> u32 {
        self.open.get()
    }
}

/// A slot of an open connection; dropping it wakes the listeners that wait for one.
struct ConnectionSlot(Rc<OpenConnections>);

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        for waker in self.0.waiting.take() {
            waker.wake();
        }
    }
}

/// Accepts connections until `stopping` returns true; the caller wakes the task at that time. A connection that fails
/// its handshake (`entrance`) is closed.
pub async fn accept<S: CommandTarget>(
    set: CommandSet<S>,
    socket: Arc<ListeningSocket>,
    entrance: LowerLayers,
    first: Conversation,
    crowd: Rc<OpenConnections>,
    stopping: impl Fn() -> bool,
) {
    let Ok(mut listener) = Listener::new(socket) else { return };
    loop {
        let ready = std::future::poll_fn(|cx| {
            if stopping() {
                return Poll::Ready(false);
            }
            if crowd.open() >= crowd.most {
                listener.pause();
                crowd.waiting.borrow_mut().push(cx.waker().clone());
                return Poll::Pending;
            }
            if listener.is_paused() && listener.resume().is_err() {
                return Poll::Ready(false);
            }
            listener.poll_acceptable(cx).map(|()| true)
        });
        if !ready.await {
            return;
        }
        match listener.try_accept() {
            Ok(Some((accepted, _))) => {
                crowd.open.set(crowd.open() + 1);
                let place = ConnectionSlot(Rc::clone(&crowd));
                let (set, entrance) = (set.clone(), entrance.clone());
                rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
                    if let Some(accepted) = handshake::accept(accepted, entrance, Some(first.timeout)).await {
                        connection::serve(set, accepted, first).await;
                    }
                    drop(place);
                });
            }
            Ok(None) => {}
            Err(_) => rt::sleep(Duration::from_millis(100)).await,
        }
    }
}
