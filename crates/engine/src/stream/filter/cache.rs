//! `filter cache` (configuration manual, section 9.4): copies a passing response into its cache if a rule requires that, within
//! the space that the cache has reserved. Must never change a byte, and never store a response before its end.

use base::buffer::Buffer;
use conn::flow::{Passed, forward};
use expression::sample::Direction;
use live::cache::Storing;
use policy::program::CacheFilter;

use crate::filter::{Event, Filter, Scene};

/// The filter of a cache on a stream.
pub(super) struct Keeper {
    plan: CacheFilter,
    storing: Option<Storing>,
}

impl Keeper {
    pub(super) fn new(plan: CacheFilter) -> Self {
        Self { plan, storing: None }
    }

    /// Creates a filter that is storing a response already.
    pub(super) fn storing(plan: CacheFilter, storing: Storing) -> Self {
        Self { plan, storing: Some(storing) }
    }
}

impl Filter for Keeper {
    fn note(&mut self, _: &Scene, event: Event<'_>) {
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

    fn cache(&self) -> Option<usize> {
        Some(self.plan.cache)
    }

    fn keep(&mut self, cache: usize, storing: &mut Option<Storing>) {
        if self.plan.cache == cache && storing.is_some() {
            self.storing = storing.take();
        }
    }

    fn wants(&self, direction: Direction) -> bool {
        direction == Direction::Response && self.storing.is_some()
    }

    fn body(&mut self, _: &Scene, _: Direction, input: &mut Buffer, output: &mut Buffer, _: bool) -> Passed {
        if !input.is_empty() {
            let moved = forward(input, output, usize::MAX);
            let data = output.data();
            let passed = &data[data.len().saturating_sub(moved)..];
            if self.storing.as_mut().is_some_and(|storing| !storing.push(passed)) {
                self.storing = None;
            }
        }
        if input.is_empty() { Passed::Through } else { Passed::Again }
    }
}
