//! Lets servers that came back grow to their full share (`slowstart`), step by step. Must never change a state itself.

use std::sync::Arc;

use policy::live::{Admin, ProxyState};

use crate::worker::Worker;

/// Does what the administrator wants of a server of proxy number `proxy`, and sees to what follows with time.
pub fn set_admin(worker: &Worker, proxy: usize, server: usize, admin: Admin) {
    let state = &worker.shared.live.proxies[proxy];
    let was_out = state.status(server).is_some_and(|status| status.admin == Admin::Maintenance);
    state.set_admin(server, admin, rt::now());
    if was_out && admin != Admin::Maintenance {
        watch(Arc::clone(state));
    }
}

/// Until all servers of a backend are warm.
fn watch(state: Arc<ProxyState>) {
    if state.advance(rt::now()).is_none() {
        return;
    }
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        while let Some(next) = state.advance(rt::now()) {
            rt::sleep_until(next).await;
        }
    });
}
