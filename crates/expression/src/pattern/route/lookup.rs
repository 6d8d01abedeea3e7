//! Lookups in a list that is a table of routes, and its changes. Must never allocate for a table that was never changed.

use super::super::{Lookup, Steps};
use super::RouteRequest;
use crate::sample::Context;

impl Lookup {
    /// Returns the value of the entry that fits a request best.
    pub fn route<'a>(&'a self, context: &Context<'a>, request: &RouteRequest<'_>) -> Option<&'a [u8]> {
        let steps = Steps::for_text(request.path.len() + request.query.len());
        match context.lists.and_then(|lists| lists.changed(self.list)) {
            None => {
                let found = self.base.set.find_route(request, &|_| true, &steps);
                context.bounded(found).map(|hit| self.entries.value(hit.at))
            }
            Some(state) => state.read(|change| {
                let found = context.bounded(change.find_route(self, request, &steps))?;
                context.copy(found.value)
            }),
        }
    }
}
