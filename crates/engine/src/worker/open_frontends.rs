//! Which frontends accept: kept for all workers. Must never touch a socket.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a frontend accepts connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// It accepts.
    Open,
    /// It is paused, and its addresses are free where the system allows that.
    Paused,
    /// It is stopped for good.
    Shut,
}

/// State of every frontend, by the index of its proxy.
#[derive(Debug)]
pub struct Frontends(Box<[AtomicU8]>);

impl Frontends {
    /// All frontends accept.
    pub(crate) fn new(proxies: usize) -> Self {
        Self((0..proxies).map(|_| AtomicU8::new(Opening::Open as u8)).collect())
    }

    /// Returns the state of a frontend.
    pub fn opening(&self, proxy: usize) -> Opening {
        match self.0.get(proxy).map(|one| one.load(Ordering::Relaxed)) {
            Some(one) if one == Opening::Paused as u8 => Opening::Paused,
            Some(one) if one == Opening::Shut as u8 => Opening::Shut,
            _ => Opening::Open,
        }
    }

    pub(crate) fn set(&self, proxy: usize, opening: Opening) {
        if let Some(one) = self.0.get(proxy) {
            one.store(opening as u8, Ordering::Relaxed);
        }
    }
}
