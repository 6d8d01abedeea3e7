//! What a list is searched for: a value, or in a table of routes a request. Must never hold a list's lock.

use super::index::Alive;
use super::{Hit, PatternSet, RouteRequest, Steps, Texts};
use crate::sample::{Exhausted, Value};

/// A sample that a list is searched for.
pub(super) enum Sample<'v> {
    /// A prepared value.
    Value(Value<'v>),
    Request(&'v RouteRequest<'v>),
}

impl Sample<'_> {
    #[inline]
    /// Returns the pattern of a set that it matches.
    ///
    /// # Errors
    /// The steps or the budget of the evaluation are exhausted.
    pub(super) fn find(
        &self,
        set: &PatternSet,
        texts: &impl Texts,
        alive: Alive<'_>,
        steps: &Steps,
    ) -> Result<Option<Hit>, Exhausted> {
        match self {
            Self::Value(value) => set.find_within(*value, texts, alive, steps),
            Self::Request(request) => set.find_route(request, alive, steps),
        }
    }
}
