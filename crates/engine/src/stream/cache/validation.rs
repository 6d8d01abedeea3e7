//! Validation of stored responses (RFC 9111, section 4.3): a request that is sent to a server although a response is stored is
//! made conditional, and answered with the stored response if the server confirms it. Must never change a request that already
//! has a condition.

use std::sync::Arc;

use live::cache::{Cache, CacheLookup, Object};
use wire::http::Head;

use crate::session::Session;
use crate::stream::cache;
use crate::stream::exchange::started_service::StartedService;
use crate::stream_state::StreamState;
use crate::stream_state::cache_use::CacheUse;

/// Fields with which a client may get another response than the complete one.
const CONDITIONS: &[&[u8]] =
    &[b"if-match", b"if-none-match", b"if-modified-since", b"if-unmodified-since", b"if-range", b"range"];

/// Makes a request conditional on the stored response, if that has a validator. Returns the stored response.
pub(super) fn ask(cache: &Cache, request: &mut Head, cache_use: &CacheUse) -> Option<Arc<Object>> {
    if !cache.plan().standard || CONDITIONS.iter().any(|field| request.contains(field)) {
        return None;
    }
    let object = cache.stored(&cache_use.key, cache_use.signature.as_ref()?)?;
    for (condition, validator) in [(&b"if-none-match"[..], &b"etag"[..]), (b"if-modified-since", b"last-modified")] {
        if let Some(value) = object.head.first(validator) {
            request.append(condition, value);
        }
    }
    Some(object)
}

/// Removes the conditions of the cache.
pub(super) fn withdraw(request: &mut Head) {
    request.remove_all(b"if-none-match");
    request.remove_all(b"if-modified-since");
}

/// Whether a response confirms that the stored one is still valid.
pub(in crate::stream) fn is_confirmed(state: &StreamState, status: u16) -> bool {
    status == 304 && state.cache.as_deref().is_some_and(|cache_use| cache_use.asks_for.is_some())
}

/// Updates the stored response, and returns the service that answers the request with it.
pub(in crate::stream) fn answer(session: &Session, state: &mut StreamState) -> Option<StartedService> {
    let came = std::mem::take(&mut state.response);
    let cache_use = state.cache.as_mut()?;
    let (index, stored) = cache_use.asks_for.take()?;
    let cache = session.worker.process.live.caches.get(index)?;
    cache::freshen(cache, cache_use, &came, true);
    let signature = cache_use.signature.as_ref()?;
    let object = match cache.look_up(&cache_use.key, signature, rt::now()) {
        CacheLookup::Hit(object) => object,
        // The updated response has expired at once, or was evicted.
        _ => stored,
    };
    cache::takes_over(session, state, index, object)
}
