//! A connection's way in: past the gates of its listening address, its frontend and the process. Must never hold a place
//! while another is missing, and must leave nobody asleep who could get in.

use super::{BindSlot, FrontendSlot, Live, ProcessSlot};
use std::task::Waker;

/// All that a connection is counted in. Dropping it gives the places back.
#[derive(Debug)]
pub struct Entry {
    /// At the listening address.
    pub bind: BindSlot,
    /// In the frontend.
    pub frontend: FrontendSlot,
    /// In the process.
    pub process: ProcessSlot,
}

impl Live {
    /// Counts a connection in at address `bind` of proxy `frontend`, or parks at the gate that is closed: `waker` is woken
    /// when there is room there. `key` names the one who asks, in the whole process. After a wake-up, ask again, or
    /// [`Live::unpark`].
    pub fn enter_or_park(&self, frontend: usize, bind: usize, key: u64, waker: &Waker) -> Option<Entry> {
        let state = self.proxies.get(frontend)?;
        // Who was woken at one gate and stops at another passes the wake-up on: somebody else may get through there.
        let Some(bind) = state.enter_bind_or_park(bind, key, waker) else {
            state.unpark_frontend(key);
            self.process.unpark(key);
            return None;
        };
        let Some(frontend) = state.enter_frontend_or_park(key, waker) else {
            self.process.unpark(key);
            return None;
        };
        let process = self.process.enter_or_park(key, waker)?;
        Some(Entry { bind, frontend, process })
    }

    /// For who will not come back: forgets what was parked under `key`, and passes on wake-ups that were on their way.
    pub fn unpark(&self, frontend: usize, bind: usize, key: u64) {
        if let Some(state) = self.proxies.get(frontend) {
            state.unpark_bind(bind, key);
            state.unpark_frontend(key);
        }
        self.process.unpark(key);
    }
}
