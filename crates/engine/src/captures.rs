//! Heads of requests and answers that broke a rule of HTTP/1: of each proxy the last of either kind (`show errors`). Must never
//! decide what becomes of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::WallTime;
use conn::found::Fault;

/// A head that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// When.
    pub at: WallTime,
    /// Its number among all of them, from 0.
    pub number: u32,
    /// The frontend of its client.
    pub frontend: usize,
    /// Backend and server of an answer; `None`: it is a request.
    pub server: Option<(usize, Option<usize>)>,
    /// The client; `unix` where it has no address.
    pub source: Box<str>,
    /// What had come of it.
    pub bytes: Box<[u8]>,
    /// Bytes that its buffer has at most.
    pub capacity: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// The last ones of each proxy.
#[derive(Debug, Default)]
pub struct Captures(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    count: u32,
    /// By proxy; true: answers of its servers.
    last: BTreeMap<(usize, bool), Arc<Capture>>,
}

impl Captures {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps one as the last of its proxy.
    pub fn add(&self, capture: Capture) {
        let place = (capture.server.map_or(capture.frontend, |(backend, _)| backend), capture.server.is_some());
        let kept = &mut *self.lock();
        let capture = Arc::new(Capture { number: kept.count, ..capture });
        kept.count = kept.count.wrapping_add(1);
        kept.last.insert(place, capture);
    }

    /// How many there have been.
    pub fn count(&self) -> u32 {
        self.lock().count
    }

    /// Those that are kept: by proxy, requests before answers.
    pub fn all(&self) -> Vec<Arc<Capture>> {
        self.lock().last.values().cloned().collect()
    }
}
