//! Lets servers that came back grow to their full share (`slowstart`), step by step. Must never choose a server.

use std::sync::Arc;

use live::ProxyState;

/// Until all servers of a backend are warm. However often servers come back, one task sees to them.
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
