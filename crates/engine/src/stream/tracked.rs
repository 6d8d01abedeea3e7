//! The entries of stick tables that a stream or its session tracks. Must never change one.

use std::cell::{Ref, RefCell};

use live::table::{Tracked, Tracking};

use crate::session::Session;
use crate::stream_state::StreamState;

/// What is tracked under a number: by the stream, or else by its session.
pub fn find<'s>(session: &'s Session, state: &'s StreamState, number: u8) -> Option<Ref<'s, Tracked>> {
    let find = |tracking: &'s RefCell<Tracking>| Ref::filter_map(tracking.borrow(), |all| all.get(number)).ok();
    find(&state.tracking).or_else(|| session.known_tracking().and_then(find))
}
