//! Values of persistence cookies that change at run time: with a server's address, or the key of dynamic cookies. Must
//! never slow down requests while nothing has changed.

use crate::persistence::{CookieInputs, CookieValues, PersistencePlan};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// The current cookie values of a backend.
#[derive(Debug)]
pub struct LiveCookies {
    changed: AtomicBool,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    dynamic: bool,
    key: Option<Box<[u8]>>,
    values: CookieValues,
}

impl LiveCookies {
    pub(super) fn new(plan: Option<&PersistencePlan>) -> Self {
        let dynamic = plan.and_then(|plan| plan.cookie.as_ref()).is_some_and(|cookie| cookie.dynamic);
        let key = plan.and_then(|plan| plan.dynamic_key.clone());
        let values = plan.map(|plan| plan.values.clone()).unwrap_or_default();
        Self { changed: AtomicBool::new(false), state: RwLock::new(State { dynamic, key, values }) }
    }

    /// Passes the current values.
    #[inline]
    pub fn with_values<T>(&self, plan: &PersistencePlan, lend: impl FnOnce(&CookieValues) -> T) -> T {
        if self.changed.load(Ordering::Acquire) {
            lend(&self.state.read().unwrap_or_else(PoisonError::into_inner).values)
        } else {
            lend(&plan.values)
        }
    }

    /// Whether cookie values are derived from the servers' addresses.
    pub fn is_dynamic(&self) -> bool {
        self.state.read().unwrap_or_else(PoisonError::into_inner).dynamic
    }

    /// Applies a change; `servers` are all current servers of the backend.
    pub fn change<'a>(&self, change: Change<'_>, servers: impl Iterator<Item = CookieInputs<'a>>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Dynamic(on) => state.dynamic = on,
            Change::Key(key) => state.key = Some(key.into()),
            Change::Servers => {}
        }
        let key = state.key.as_deref().filter(|_| state.dynamic);
        state.values = CookieValues::of_servers(servers, key);
        drop(state);
        self.changed.store(true, Ordering::Release);
    }
}

/// A change of the values.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// Enables or disables dynamic cookies.
    Dynamic(bool),
    /// Sets their key.
    Key(&'a [u8]),
    /// A server was added, removed, or has another address.
    Servers,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::dynamic_value;
    use std::net::SocketAddr;

    #[test]
    fn values_follow_keys_and_addresses() {
        let plan = PersistencePlan::default();
        let live = LiveCookies::new(Some(&plan));
        let of = |server: usize| live.with_values(&plan, |values| values.of(server).map(<[u8]>::to_vec));
        let address = |text: &str| text.parse::<SocketAddr>().expect("address");
        let servers = |at: SocketAddr| {
            [(0, None, Some(at)), (1, Some(&b"own"[..]), Some(at)), (3, None, None)]
                .into_iter()
                .map(|(server, own, address)| CookieInputs { server, own, address })
        };
        let (one, other) = (address("127.0.0.1:80"), address("127.0.0.1:81"));
        assert_eq!([of(0), of(1)], [None, None]);
        live.change(Change::Key(b"key"), servers(one));
        assert_eq!([of(0), of(1), of(2), of(3)], [None, Some(b"own".to_vec()), None, None]);
        live.change(Change::Dynamic(true), servers(one));
        assert_eq!([of(0), of(1), of(3)], [Some(dynamic_value(b"key", one).into()), Some(b"own".to_vec()), None]);
        live.change(Change::Servers, servers(other));
        assert_eq!(of(0), Some(dynamic_value(b"key", other).into()));
        live.change(Change::Dynamic(false), servers(one));
        assert_eq!([of(0), of(1)], [None, Some(b"own".to_vec())]);
    }
}
