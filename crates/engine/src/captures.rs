//! Captured invalid HTTP/1 heads: the last request and the last response of each proxy (`show errors`). Must never decide how
//! they are handled.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::WallTime;
use conn::answer_head_kind::Fault;

/// A rejected head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Time of the capture.
    pub at: WallTime,
    /// Sequence number over all captures, from 0.
    pub number: u32,
    /// Index of the client's frontend.
    pub frontend: usize,
    /// Backend and server of a response; `None`: it is a request.
    pub server: Option<(usize, Option<usize>)>,
    /// The client's address; `unix` if it has none.
    pub source: Box<str>,
    /// The bytes received.
    pub bytes: Box<[u8]>,
    /// Capacity of the buffer, in bytes.
    pub capacity: usize,
    /// The error.
    pub fault: Fault,
}

/// The last captures of each proxy.
#[derive(Debug, Default)]
pub struct Captures(Mutex<LastCaptures>);

#[derive(Debug, Default)]
struct LastCaptures {
    count: u32,
    /// By proxy; true: responses of its servers.
    last: BTreeMap<(usize, bool), Arc<Capture>>,
}

impl Captures {
    fn lock(&self) -> MutexGuard<'_, LastCaptures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a capture as the last one of its proxy.
    pub fn add(&self, capture: Capture) {
        let place = (capture.server.map_or(capture.frontend, |(backend, _)| backend), capture.server.is_some());
        let kept = &mut *self.lock();
        let capture = Arc::new(Capture { number: kept.count, ..capture });
        kept.count = kept.count.wrapping_add(1);
        kept.last.insert(place, capture);
    }

    /// Returns the number of captures so far.
    pub fn count(&self) -> u32 {
        self.lock().count
    }

    /// Returns the stored captures: by proxy, requests before responses.
    pub fn all(&self) -> Vec<Arc<Capture>> {
        self.lock().last.values().cloned().collect()
    }
}
