//! The stick table entries that a stream or its session tracks. Must never change an entry.

use std::cell::{Ref, RefCell};

use live::table::{Tracked, Tracking};

use crate::session::Session;
use crate::stream_state::StreamState;

/// Returns the entry tracked under a number: by the stream, otherwise by its session.
pub fn find<'s>(session: &'s Session, state: &'s StreamState, number: u8) -> Option<Ref<'s, Tracked>> {
    let find = |tracking: &'s RefCell<Tracking>| Ref::filter_map(tracking.borrow(), |all| all.get(number)).ok();
    find(&state.accounting.tracking).or_else(|| session.known_tracking().and_then(find))
}
