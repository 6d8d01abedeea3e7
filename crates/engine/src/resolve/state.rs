//! A worker's sections of name servers: their sockets and the names that are followed. Must never ask for a name.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use base::moment::Moment;
use conn::transport::Transport;
use policy::program::Resolvers;
use rt::net::Datagram;

use super::resolved_name::{Followed, Question};
use super::round::Round;
use crate::worker::Process;

/// A `resolvers` section.
pub(crate) struct Section {
    /// A copy, because the section outlives configurations.
    pub(super) written: Rc<Resolvers>,
    pub(super) lines: Vec<Rc<Line>>,
    pub(super) names: RefCell<BTreeMap<Question, Rc<Followed>>>,
    pub(super) routes_ipv6: Cell<Option<(bool, Moment)>>,
}

/// A name server of a section.
pub(super) struct Line {
    pub(super) shared: Arc<Process>,
    /// The section as configured.
    pub(super) written: Rc<Resolvers>,
    pub(super) section: usize,
    pub(super) index: usize,
    /// Pending queries, by query ID.
    pub(super) open: RefCell<BTreeMap<u16, Rc<Round>>>,
    pub(super) socket: RefCell<Option<Datagram>>,
    /// Waker of the listening task, woken when no query is pending.
    pub(super) listener: Cell<Option<Waker>>,
    pub(super) idle: Idle,
}

/// Idle connections, and the number of those in use.
#[derive(Default)]
pub(super) struct Idle {
    pub(super) streams: RefCell<Vec<(Transport, Moment)>>,
    pub(super) used: Cell<usize>,
    /// A task closes expired connections.
    pub(super) is_watched: Cell<bool>,
}
