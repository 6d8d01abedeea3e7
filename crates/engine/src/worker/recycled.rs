//! Memory that a worker reuses: arenas of evaluations, text, the state and filters of streams. Must never outlive its worker.

use std::cell::RefCell;
use std::rc::Rc;

use base::moment::{Moment, WallTime};
use bumpalo::Bump;
use wire::date::format_http_date;

use super::{SharedStreamState, Worker};
use crate::filter::Filters;
use crate::stream_state::StreamState;

/// Maximum size of memory that is kept, in bytes.
const ARENA_KEPT: usize = 64 * 1024;

/// Maximum number of stream states that are kept.
const FACTS_KEPT: usize = 1024;

/// Maximum number of filter sets that are kept.
const FILTERS_KEPT: usize = 1024;

impl Worker {
    /// Lends the arena for one evaluation, and resets it afterwards.
    pub fn with_arena<T>(&self, with: impl FnOnce(&Bump) -> T) -> T {
        let mut arena = self.recycled.arena.take().unwrap_or_default();
        let result = with(&arena);
        arena.reset();
        // An unusually large arena is freed.
        if arena.allocated_bytes() <= ARENA_KEPT {
            self.recycled.arena.set(Some(arena));
        }
        result
    }

    /// Takes the buffer for rendered text.
    pub fn take_text(&self) -> Vec<u8> {
        self.recycled.text.take()
    }

    /// Returns the buffer for reuse.
    pub fn keep_text(&self, mut text: Vec<u8>) {
        text.clear();
        text.shrink_to(ARENA_KEPT);
        self.recycled.text.set(text);
    }

    /// Returns the current time in HTTP's format, formatted once a second.
    pub fn http_date(&self) -> [u8; 29] {
        let now = rt::wall().seconds;
        let (second, text) = self.recycled.http_date.get();
        if second == now {
            return text;
        }
        let text = format_http_date(now);
        self.recycled.http_date.set((now, text));
        text
    }

    /// Takes a cleared state for a stream.
    pub fn take_stream_state(&self) -> SharedStreamState {
        self.recycled.states.borrow_mut().pop().unwrap_or_else(|| {
            let mut state = StreamState::default();
            state.clear();
            Rc::new(RefCell::new(state))
        })
    }

    /// Takes an empty set of filters for a stream.
    pub fn take_filters(&self) -> Filters {
        self.recycled.filters.borrow_mut().pop().unwrap_or_default()
    }

    /// Returns the filter set of a stream that has ended, unless a relay still holds it.
    pub fn keep_filters(&self, filters: Filters) {
        if Rc::strong_count(&filters) > 1 {
            return;
        }
        filters.borrow_mut().clear();
        let mut kept = self.recycled.filters.borrow_mut();
        if kept.len() < FILTERS_KEPT {
            kept.push(filters);
        }
    }

    /// Lends a state to rules that run before there is a stream.
    pub fn with_blank_state<T>(&self, with: impl FnOnce(&mut StreamState) -> T) -> T {
        let state = self.take_stream_state();
        let result = {
            let state = &mut *state.borrow_mut();
            let result = with(state);
            (state.timings.start, state.info.start_date) = (Moment::default(), WallTime::default());
            state.forget_rules();
            result
        };
        self.recycled.states.borrow_mut().push(state);
        result
    }

    /// Returns a state for reuse.
    pub fn keep_stream_state(&self, state: SharedStreamState) {
        self.requests.set(self.requests.get() + 1);
        let mut kept = self.recycled.states.borrow_mut();
        if kept.len() < FACTS_KEPT && Rc::strong_count(&state) == 1 {
            if let Ok(mut state) = state.try_borrow_mut() {
                state.clear();
            }
            kept.push(state);
        }
    }
}
