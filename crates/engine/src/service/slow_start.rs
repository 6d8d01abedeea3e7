//! Raises the weight of recovered servers step by step (`slowstart`). Must never choose a server.

use std::sync::Arc;

use live::ProxyState;

/// Starts a task that runs until no server of a backend is in slow start. One task at a time does this for a backend.
pub fn watch(state: Arc<ProxyState>) {
    if state.advance(rt::now()).is_none() {
        return;
    }
    let own = state.attend();
    rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
        while let Some(next) = state.advance(rt::now()).filter(|_| state.is_attended_by(own)) {
            rt::sleep_until(next).await;
        }
    });
}
