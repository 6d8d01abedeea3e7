//! The filters of one stream, and the order in which they process its messages. Must never know what a filter does.

use std::any::Any;
use std::ops::{Deref, DerefMut};

use expression::sample::Direction;
use wire::http::Head;

use super::agents::StreamAgents;
use super::{Event, Filter, FilterContext, RulePosition, ScriptFilter};

/// A filter of a stream.
pub(crate) enum AttachedFilter {
    /// Processes heads at once.
    BuiltIn(Box<dyn Filter>),
    /// Can wait while it processes a head.
    Script(Box<dyn ScriptFilter>),
}

impl AttachedFilter {
    /// Whether it is implemented by a script.
    pub(crate) fn is_script(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    /// Returns it if it is of that kind.
    pub(crate) fn as_kind<F: Filter>(&self) -> Option<&F> {
        let filter: &dyn Any = &**self;
        filter.downcast_ref()
    }

    pub(crate) fn as_kind_mut<F: Filter>(&mut self) -> Option<&mut F> {
        let filter: &mut dyn Any = &mut **self;
        filter.downcast_mut()
    }
}

impl Deref for AttachedFilter {
    type Target = dyn Filter;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::BuiltIn(filter) => &**filter,
            Self::Script(filter) => &**filter,
        }
    }
}

impl DerefMut for AttachedFilter {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::BuiltIn(filter) => &mut **filter,
            Self::Script(filter) => &mut **filter,
        }
    }
}

/// A filter with its origin.
pub(crate) struct FilterEntry {
    pub(crate) position: RulePosition,
    /// It belongs to the backend, which differs from the frontend.
    pub(crate) of_backend: bool,
    pub(crate) filter: AttachedFilter,
}

impl FilterEntry {
    /// Makes the entry of a filter that a rule has added: it belongs to no proxy, and no other rule refers to it.
    fn by_rule(filter: Box<dyn Filter>) -> Self {
        let filter = AttachedFilter::BuiltIn(filter);
        Self { position: RulePosition { proxy: usize::MAX, index: usize::MAX }, of_backend: false, filter }
    }
}

/// The filters of a stream.
#[derive(Default)]
pub struct Set {
    pub(crate) context: FilterContext,
    pub(crate) attached: Vec<FilterEntry>,
    /// Indices of filters on the way to the server, in order.
    pub(crate) request: Vec<usize>,
    /// Indices of filters on the way to the client, in order.
    pub(crate) response: Vec<usize>,
    /// State of SPOE processing.
    pub(crate) agents: StreamAgents,
    /// Number of filters at the end of `request` that remain after all others.
    pub(crate) last: usize,
    /// One of them is a script.
    pub(crate) scripted: bool,
    /// Number of filters that have processed the head of a direction; 0: not started.
    pub(crate) seen: usize,
}

impl Set {
    pub(crate) fn order(&self, direction: Direction) -> &[usize] {
        match direction {
            Direction::Request => &self.request,
            Direction::Response => &self.response,
        }
    }

    /// Returns the filters of a direction, in order.
    pub(crate) fn ordered(
        &self,
        direction: Direction,
    ) -> impl DoubleEndedIterator<Item = &AttachedFilter> + ExactSizeIterator {
        self.order(direction).iter().map(|index| &self.attached[*index].filter)
    }

    /// Returns the filter that a rule refers to.
    pub(crate) fn at(&mut self, position: RulePosition) -> Option<&mut AttachedFilter> {
        let own = self.attached.iter_mut().find(|own| own.position == position);
        own.map(|own| &mut own.filter)
    }

    /// Attaches a filter of a proxy as the first on the way to the client.
    pub(crate) fn attach_first(&mut self, position: RulePosition, of_backend: bool, filter: Box<dyn Filter>) {
        self.response.insert(0, self.attached.len());
        let filter = AttachedFilter::BuiltIn(filter);
        self.attached.push(FilterEntry { position, of_backend, filter });
    }

    /// Attaches a filter of a rule as the last on the way to the server.
    pub(crate) fn attach_last(&mut self, filter: Box<dyn Filter>) {
        self.request.push(self.attached.len());
        self.last += 1;
        self.attached.push(FilterEntry::by_rule(filter));
    }

    /// Attaches a filter of a rule after the last filter of a direction for which `precedes` returns true, or as the first.
    pub(crate) fn attach_after(
        &mut self,
        direction: Direction,
        filter: Box<dyn Filter>,
        precedes: impl Fn(&AttachedFilter) -> bool,
    ) {
        let place = self.ordered(direction).rposition(precedes).map_or(0, |last| last + 1);
        let index = self.attached.len();
        self.attached.push(FilterEntry::by_rule(filter));
        match direction {
            Direction::Request => self.request.insert(place, index),
            Direction::Response => self.response.insert(place, index),
        }
    }

    /// Removes all filters, keeping the capacity of the lists.
    pub fn clear(&mut self) {
        let Self { attached, request, response, .. } = std::mem::take(self);
        (self.attached, self.request, self.response) = (attached, request, response);
        self.attached.clear();
        self.request.clear();
        self.response.clear();
    }

    pub(crate) fn tell(&mut self, event: Event<'_>) {
        let context = self.context;
        self.attached.iter_mut().for_each(|own| own.filter.note(&context, event));
    }

    /// Reports an event to the filters of the backend, or to the others.
    pub(crate) fn tell_those(&mut self, of_backend: bool, event: Event<'_>) {
        let context = self.context;
        let own = self.attached.iter_mut().filter(|own| own.of_backend == of_backend);
        own.for_each(|own| own.filter.note(&context, event));
    }

    /// Reports an event to the filters of a direction.
    pub(crate) fn tell_of(&mut self, direction: Direction, event: Event<'_>, only: impl Fn(bool) -> bool) {
        let context = self.context;
        for place in 0..self.order(direction).len() {
            let index = self.order(direction)[place];
            if only(self.attached[index].of_backend) {
                self.attached[index].filter.note(&context, event);
            }
        }
    }

    pub(crate) fn head(&mut self, direction: Direction, head: &mut Head) {
        let context = self.context;
        for place in 0..self.order(direction).len() {
            let index = self.order(direction)[place];
            self.attached[index].filter.head(&context, direction, head);
        }
    }

    pub(crate) fn wants(&self, direction: Direction) -> bool {
        self.order(direction).iter().any(|index| self.attached[*index].filter.wants(direction))
    }
}
