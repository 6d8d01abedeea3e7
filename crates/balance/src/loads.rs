//! The loads of servers. Owned by the backend, read by the algorithms.

use std::ops::{Index, IndexMut};

/// The load of a server: sixteen bytes, so that four servers share a cache line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Requests in progress.
    pub served: u32,
    /// Requests in its own queue.
    pub queued: u32,
    /// `maxconn`; `u32::MAX` without one.
    pub limit: u32,
    /// `maxqueue`; `u32::MAX` without one.
    pub maxqueue: u32,
}

impl Load {
    /// No requests and no limits.
    pub const IDLE: Self = Self { served: 0, queued: 0, limit: u32::MAX, maxqueue: u32::MAX };

    /// Whether one more request can be served immediately.
    #[inline]
    pub fn has_slot(&self) -> bool {
        self.served < self.limit
    }

    /// Whether its queue has a free place.
    #[inline]
    pub fn has_queue_room(&self) -> bool {
        self.queued < self.maxqueue
    }

    /// Whether its queue is limited, and has a free place.
    #[inline]
    pub fn has_bounded_queue_room(&self) -> bool {
        self.maxqueue != u32::MAX && self.has_queue_room()
    }

    /// Returns the number of its requests, in progress and queued.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.served.saturating_add(self.queued)
    }
}

const WIDTH: usize = 4;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Block([Load; WIDTH]);

/// The loads of a backend's servers, by index.
#[derive(Debug, Default)]
pub struct Loads(Vec<Block>);

impl Loads {
    /// Creates the loads of `count` idle servers.
    pub fn new(count: usize) -> Self {
        Self(vec![Block([Load::IDLE; WIDTH]); count.div_ceil(WIDTH)])
    }

    /// Extends the list to `count` servers.
    pub fn grow(&mut self, count: usize) {
        let blocks = self.0.len().max(count.div_ceil(WIDTH));
        if blocks == 1 {
            self.0.reserve_exact(blocks - self.0.len());
        }
        self.0.resize(blocks, Block([Load::IDLE; WIDTH]));
    }
}

impl Index<usize> for Loads {
    type Output = Load;

    #[inline]
    fn index(&self, server: usize) -> &Load {
        &self.0[server / WIDTH].0[server % WIDTH]
    }
}

impl IndexMut<usize> for Loads {
    #[inline]
    fn index_mut(&mut self, server: usize) -> &mut Load {
        &mut self.0[server / WIDTH].0[server % WIDTH]
    }
}
