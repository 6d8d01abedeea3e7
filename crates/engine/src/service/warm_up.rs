//! Does what the administrator wants of servers, and lets those that came back grow to their full share (`slowstart`), step by step. Must never choose a server.

use std::sync::Arc;

use policy::live::{Admin, ProxyState};

use super::transitions::{self, Online};
use crate::worker::Worker;

/// Does what the administrator wants of a server of proxy number `proxy`, and sees to what follows with time.
pub fn set_admin(worker: &Worker, proxy: usize, server: usize, admin: Admin) {
    let state = &worker.shared.live.proxies[proxy];
    let named = worker.proxy(proxy);
    let Some(before) = state.status(server) else { return };
    let online = Online::of(named, state);
    let was_out = before.admin == Admin::Maintenance;
    state.set_admin(server, admin, rt::now());
    if let Some(server) = named.backend.as_ref().and_then(|backend| backend.servers.get(server)) {
        transitions::tell(worker, named, server, (before, online));
    }
    if was_out && admin != Admin::Maintenance {
        watch(Arc::clone(state));
    }
}

/// Until all servers of a backend are warm.
pub fn watch(state: Arc<ProxyState>) {
    if state.advance(rt::now()).is_none() {
        return;
    }
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        while let Some(next) = state.advance(rt::now()) {
            rt::sleep_until(next).await;
        }
    });
}
