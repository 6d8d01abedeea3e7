//! The QUIC connections of a worker, for those that show them. Must never change a connection.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use conn::quic::Observer;
use policy::program::{Proxy, QuicLimits};

use crate::generation::FrontendHandle;

/// A connection of a client.
#[derive(Clone)]
pub struct QuicConnection {
    frontend: Rc<FrontendHandle>,
    /// The index of its `bind` line.
    pub bind: usize,
    pub observer: Observer,
}

impl QuicConnection {
    pub(crate) fn new(frontend: Rc<FrontendHandle>, bind: usize, observer: Observer) -> Self {
        Self { frontend, bind, observer }
    }

    /// Returns its frontend.
    pub fn frontend(&self) -> &Proxy {
        &self.frontend.proxy
    }

    /// Returns the limits of QUIC that apply to it.
    pub fn limits(&self) -> &QuicLimits {
        &self.frontend.generation.program.global.quic
    }
}

/// The connections of a worker, by the tags of their sessions.
#[derive(Default)]
pub struct QuicConnections(RefCell<BTreeMap<u64, QuicConnection>>);

impl QuicConnections {
    /// Adds a connection.
    pub(crate) fn enter(&self, tag: u64, connection: QuicConnection) {
        self.0.borrow_mut().insert(tag, connection);
    }

    /// Removes a connection.
    pub(crate) fn leave(&self, tag: u64) {
        let ended = self.0.borrow_mut().remove(&tag);
        drop(ended);
    }

    /// Returns at most `most` connections after a tag, in the order of their tags; `None`: from the first on.
    pub fn after(&self, tag: Option<u64>, most: usize) -> Vec<(u64, QuicConnection)> {
        let from = tag.map_or(Bound::Unbounded, Bound::Excluded);
        let connections = self.0.borrow();
        connections.range((from, Bound::Unbounded)).take(most).map(|(tag, one)| (*tag, one.clone())).collect()
    }
}
