//! A stream's request: its connection, its identity, and the progress of its validation. Must never read a byte of it.

use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;

use base::moment::WallTime;
use base::slab::Key;

use super::socket_handle::Kernel;

/// Addresses of a client's connection that rules have set (`set-src`, `set-dst` and related actions).
#[derive(Debug, Clone, Copy, Default)]
pub struct Ends {
    /// Source address.
    pub client: Option<SocketAddr>,
    /// Destination address.
    pub destination: Option<SocketAddr>,
}

/// Properties of a stream's request.
#[derive(Default)]
pub struct RequestInfo {
    /// Whether the request's head is complete.
    pub has_request: bool,
    /// Content rules have let it pass: it is a valid request.
    pub inspected: bool,
    /// Whether it is the first request of its connection.
    pub first: bool,
    /// Set while the unique ID is evaluated; recursive lookups return nothing.
    pub identifying: Cell<bool>,
    /// Number of streams of the process before it.
    pub number: u32,
    /// Number of requests of its connection before it.
    pub client_streams: u32,
    /// Key of the task that serves it ([`crate::session::task`]); `None`: it cannot be accessed by others.
    pub task: Option<Key>,
    /// Query handle of the client's connection, if the stream does not own the connection.
    pub client_kernel: Kernel,
    /// Wall-clock time at which the stream began (`timings.start`).
    pub start_date: WallTime,
    /// Its unique ID (`unique-id-format`), once evaluated.
    pub unique_id: OnceCell<Box<[u8]>>,
    /// Addresses of the client's connection that rules of the stream have set.
    pub ends: Cell<Option<Box<Ends>>>,
}

impl RequestInfo {
    /// Returns the addresses that rules have set.
    pub(super) fn set_ends(&self) -> Ends {
        let ends = self.ends.take();
        let known = ends.as_deref().copied().unwrap_or_default();
        self.ends.set(ends);
        known
    }

    /// Clears all but the results of rules.
    #[inline]
    pub(super) fn clear(&mut self) {
        let Self {
            has_request,
            inspected,
            first,
            identifying,
            number,
            client_streams,
            task,
            client_kernel,
            start_date,
            unique_id,
            ends,
        } = self;
        // Cleared by `forget_rules`.
        let _ = (identifying, unique_id, ends);
        (*has_request, *inspected, *first, *task) = (false, false, false, None);
        (*number, *client_streams) = (0, 0);
        (*client_kernel, *start_date) = (Kernel::Unknown, WallTime::default());
    }

    /// Clears the results of rules.
    pub(super) fn forget_rules(&mut self) {
        self.unique_id.take();
        self.identifying.set(false);
        self.ends.take();
    }

    /// Whether rules have left no result.
    pub(super) fn is_plain(&mut self) -> bool {
        self.unique_id.get().is_none() && self.ends.get_mut().is_none()
    }
}
