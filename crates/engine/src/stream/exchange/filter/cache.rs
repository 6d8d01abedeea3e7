//! `filter cache` (configuration manual, section 9.4): copies a passing response into its cache if a rule requires that, within
//! the space that the cache has reserved. Must never change a byte, and never store a response before its end.

use base::buffer::Buffer;
use conn::flow::{FilterOutput, forward};
use expression::sample::Direction;
use live::cache::Storing;
use policy::program;

use crate::filter::set::AttachedFilter;
use crate::filter::{Event, Filter, FilterContext, RulePosition};
use crate::session::Session;
use crate::stream_state::StreamState;

/// The filter of a cache on a stream.
pub(super) struct CacheFilter {
    plan: program::CacheFilter,
    storing: Option<Storing>,
}

impl CacheFilter {
    pub(super) fn new(plan: program::CacheFilter) -> Self {
        Self { plan, storing: None }
    }

    /// Creates a filter that is storing a response already.
    pub(super) fn storing(plan: program::CacheFilter, storing: Storing) -> Self {
        Self { plan, storing: Some(storing) }
    }
}

/// Whether a cache can store a response as its server has sent it: its filter is attached, and no earlier one changes the bytes.
pub fn can_store(session: &Session, state: &StreamState, cache: usize) -> bool {
    if implied(session, state, cache).is_some() {
        // An implied filter is the first of all.
        return true;
    }
    let Some(filters) = &state.filters else { return false };
    let set = &*filters.borrow();
    let mut order = set.ordered(Direction::Response);
    order.find(|filter| filter.recodes() || is_of(filter, cache)).is_some_and(|filter| !filter.recodes())
}

/// Whether a script filter precedes that of a cache, so that the length of the body is unknown.
pub fn may_resize(session: &Session, state: &StreamState, cache: usize) -> bool {
    if implied(session, state, cache).is_some() {
        return false;
    }
    let Some(filters) = &state.filters else { return false };
    let set = &*filters.borrow();
    let mut order = set.ordered(Direction::Response);
    order.find(|filter| filter.is_script() || is_of(filter, cache)).is_some_and(AttachedFilter::is_script)
}

/// Whether it is a filter of that cache.
fn is_of(filter: &AttachedFilter, cache: usize) -> bool {
    filter.as_kind::<CacheFilter>().is_some_and(|own| own.plan.cache == cache)
}

/// Makes the filter of a cache store the response that is about to pass. A filter implied by a rule is attached now.
pub fn keep(session: &Session, state: &mut StreamState, cache: usize, storing: Storing) {
    let implied = implied(session, state, cache);
    let filters = state.filters.get_or_insert_with(|| super::new(session));
    let set = &mut *filters.borrow_mut();
    if let Some((position, plan)) = implied {
        set.context.has_backend = state.route.backend.is_some();
        set.attach_first(position, position.proxy != session.frontend, Box::new(CacheFilter::storing(plan, storing)));
        return;
    }
    let found = set.response.iter().find(|index| is_of(&set.attached[**index].filter, cache)).copied();
    if let Some(own) = found.and_then(|index| set.attached[index].filter.as_kind_mut::<CacheFilter>()) {
        own.storing = Some(storing);
    }
}

/// Returns the position of a cache filter that a rule of the frontend or of the backend implies.
fn implied(session: &Session, state: &StreamState, cache: usize) -> Option<(RulePosition, program::CacheFilter)> {
    let backend = state.route.backend.filter(|backend| *backend != session.frontend);
    let proxies = [Some(session.proxy()), backend.map(|index| session.proxy_at(index))].into_iter().flatten();
    let mut all = proxies.flat_map(|proxy| proxy.filters.response.iter().map(move |index| (proxy, *index)));
    all.find_map(|(proxy, index)| match proxy.filters.list.get(index) {
        Some(program::Filter::Cache(plan)) if plan.first && plan.cache == cache => {
            Some((RulePosition { proxy: proxy.index, index }, *plan))
        }
        _ => None,
    })
}

impl Filter for CacheFilter {
    fn note(&mut self, _: &FilterContext, event: Event<'_>) {
        match event {
            // If bytes are missing, the cache discards the response.
            Event::MessageEnded(Direction::Response) => {
                if let Some(storing) = self.storing.take() {
                    storing.finish();
                }
            }
            Event::Restarted | Event::Replied(_) => self.storing = None,
            _ => {}
        }
    }

    fn wants(&self, direction: Direction) -> bool {
        direction == Direction::Response && self.storing.is_some()
    }

    fn body(
        &mut self,
        _: &FilterContext,
        _: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        _: bool,
    ) -> FilterOutput {
        if !input.is_empty() {
            let moved = forward(input, output, usize::MAX);
            let data = output.data();
            let passed = &data[data.len().saturating_sub(moved)..];
            if self.storing.as_mut().is_some_and(|storing| !storing.push(passed)) {
                self.storing = None;
            }
        }
        if input.is_empty() { FilterOutput::Through } else { FilterOutput::Again }
    }
}
