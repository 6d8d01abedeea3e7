//! Admission of connections: through the gates of the listening address, the frontend and the process. Must never hold
//! a slot while another is missing, and must leave no waiter asleep that could be admitted.

use super::gate::Inside;
use super::{Live, ProxyState};
use std::sync::Arc;
use std::task::Waker;

/// The slots of an admitted connection: of its listening address, its frontend and the process. Dropping it releases
/// them.
#[derive(Debug)]
pub struct Entry {
    frontend: Arc<ProxyState>,
    bind: u32,
}

impl Entry {
    /// Takes over the slots from their individual guards.
    fn new(
        frontend: &Arc<ProxyState>,
        bind: usize,
        at_address: Option<Inside<'_>>,
        in_frontend: Inside<'_>,
        in_process: Inside<'_>,
    ) -> Self {
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
        state.front.gate.leave();
        state.process.gate.leave();
    }
}

impl Live {
    /// Admits a connection at address `bind` of proxy `frontend`, if there is no waiter, a slot is free and no rate is
    /// limited: the common case. `None`: [`Live::enter_or_park`] and [`Live::admit`] decide.
    pub fn enter_freely(&self, frontend: usize, bind: usize) -> Option<Entry> {
        let state = self.proxies.get(frontend)?;
        if self.throttles(state, bind).any(|throttle| throttle.limit() > 0) {
            return None;
        }
        let at_address = match state.bind_gate(bind) {
            Some(gate) => Some(gate.enter_freely()?),
            None => None,
        };
        let (in_frontend, in_process) = (state.front.gate.enter_freely()?, state.process.gate.enter_freely()?);
        Some(Entry::new(state, bind, at_address, in_frontend, in_process))
    }

    /// Admits a connection at address `bind` of proxy `frontend`, or parks it at the gate that is full: `waker` is
    /// woken when a slot is free. `key` identifies the waiter in the whole process. After a wake-up, call it again, or
    /// [`Live::unpark`].
    pub fn enter_or_park(&self, frontend: usize, bind: usize, key: u64, waker: &Waker) -> Option<Entry> {
        let state = self.proxies.get(frontend)?;
        // A waiter that was woken at one gate and blocks at another passes the wake-up on: another waiter may be
        // admitted there.
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
        Some(Entry::new(state, bind, at_address, in_frontend, in_process))
    }

    /// Cancels a parked waiter: removes `key` from all gates, and passes on pending wake-ups.
    pub fn unpark(&self, frontend: usize, bind: usize, key: u64) {
        if let Some(state) = self.proxies.get(frontend) {
            state.unpark_bind(bind, key);
            state.unpark_frontend(key);
        }
        self.process.unpark(key);
    }
}
