//! A scripted server: an address whose connections are accepted one by one, or served in the background.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use rt::net::{Address, BindOptions, Listener, ListeningSocket, Stream};

use crate::peer::{Peer, Waiting};
use crate::scope::Scope;

/// An address that accepts connections until it is dropped.
#[derive(Debug)]
pub struct Service {
    listener: Listener,
    accepted: usize,
}

impl Service {
    /// Listens at `IP:PORT`.
    ///
    /// # Panics
    /// If the text is not an address, or has a listener already.
    #[track_caller]
    pub fn at(text: &str) -> Service {
        let address = Address::Inet(text.parse().unwrap_or_else(|error| panic!("{text}: {error}")));
        let bound = ListeningSocket::bind(&address, &BindOptions { backlog: 10_000, ..BindOptions::default() });
        let socket = bound.unwrap_or_else(|error| panic!("{text}: {error}"));
        let listener = Listener::new(Arc::new(socket)).unwrap_or_else(|error| panic!("{text}: {error}"));
        Service { listener, accepted: 0 }
    }

    /// Accepts the next connection.
    #[track_caller]
    pub fn accept(&mut self) -> impl Future<Output = Peer> {
        let waiting = Waiting::here();
        async move {
            let accepted = waiting.within(self.listener.accept(), || "a connection".to_owned()).await;
            let (socket, _) = accepted.unwrap_or_else(|error| waiting.fail(format_args!("accept: {error}")));
            self.accepted += 1;
            Peer::over(Stream::adopt(socket))
        }
    }

    /// Returns the number of connections accepted so far.
    pub fn accepted(&self) -> usize {
        self.accepted
    }

    /// Asserts that no connection waits to be accepted.
    ///
    /// # Panics
    /// If one does.
    #[track_caller]
    pub fn is_left_alone(&mut self) {
        let waits = matches!(self.listener.try_accept(), Ok(Some(_)));
        assert!(!waits, "an unexpected connection came");
    }

    /// Handles every connection with `serve` in a task of `scope`; its second argument counts them from 0. Returns the
    /// count of connections accepted so far.
    pub fn serve<F: Future<Output = ()> + 'static>(
        mut self,
        scope: &Rc<Scope>,
        serve: impl Fn(Peer, usize) -> F + 'static,
    ) -> Rc<Cell<usize>> {
        let count = Rc::new(Cell::new(0));
        let (inner, counted) = (Rc::downgrade(scope), Rc::clone(&count));
        scope.spawn(async move {
            while let Ok((socket, _)) = self.listener.accept().await {
                let Some(scope) = inner.upgrade() else { return };
                scope.spawn(serve(Peer::over(Stream::adopt(socket)), counted.get()));
                counted.set(counted.get() + 1);
            }
        });
        count
    }
}
