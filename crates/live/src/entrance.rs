//! A connection's way in: past the gates of its listening address, its frontend and the process. Must never hold a place
//! while another is missing, and must leave no waiter asleep that could be admitted.

use super::gate::Inside;
use super::{Live, ProxyState};
use std::sync::Arc;
use std::task::Waker;

/// All that a connection is counted in: its listening address, its frontend and the process. Dropping it gives the places
/// back.
#[derive(Debug)]
pub struct Entry {
    frontend: Arc<ProxyState>,
    bind: u32,
}

impl Entry {
    /// Takes the places over from those who guard them one by one.
    fn new(frontend: &Arc<ProxyState>, bind: usize, places: (Option<Inside<'_>>, Inside<'_>, Inside<'_>)) -> Self {
        let (at_address, in_frontend, in_process) = places;
        let entry = Self { frontend: Arc::clone(frontend), bind: bind as u32 };
        if let Some(at_address) = at_address {
            at_address.hand_over();
        }
        in_frontend.hand_over();
        in_process.hand_over();
        entry
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let state = &self.frontend;
        if let Some(gate) = state.bind_gate(self.bind as usize) {
            gate.leave();
        }
        state.frontend.leave();
        state.process.gate.leave();
    }
}

impl Live {
    /// Counts a connection in at address `bind` of proxy `frontend`, where there is no waiter, a slot is free and no rate is
    /// bounded: the usual way in. `None`: the others have to tell, [`Live::enter_or_park`] and [`Live::admit`].
    pub fn enter_freely(&self, frontend: usize, bind: usize) -> Option<Entry> {
        let state = self.proxies.get(frontend)?;
        if self.throttles(state, bind).any(|throttle| throttle.limit() > 0) {
            return None;
        }
        let at_address = match state.bind_gate(bind) {
            Some(gate) => Some(gate.enter_freely()?),
            None => None,
        };
        let places = (at_address, state.frontend.enter_freely()?, state.process.gate.enter_freely()?);
        Some(Entry::new(state, bind, places))
    }

    /// Counts a connection in at address `bind` of proxy `frontend`, or parks at the gate that is closed: `waker` is woken
    /// when there is room there. `key` names the one who asks, in the whole process. After a wake-up, ask again, or
    /// [`Live::unpark`].
    pub fn enter_or_park(&self, frontend: usize, bind: usize, key: u64, waker: &Waker) -> Option<Entry> {
        let state = self.proxies.get(frontend)?;
        // A waiter that was woken at one gate and stops at another passes the wake-up on: another one may be admitted there.
        let Some(at_address) = state.enter_bind_or_park(bind, key, waker) else {
            state.unpark_frontend(key);
            self.process.unpark(key);
            return None;
        };
        let Some(in_frontend) = state.enter_frontend_or_park(key, waker) else {
            self.process.unpark(key);
            return None;
        };
        let in_process = self.process.enter_or_park(key, waker)?;
        Some(Entry::new(state, bind, (at_address, in_frontend, in_process)))
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
