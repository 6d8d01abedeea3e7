//! The chain of filters of one direction: each one processes the output of the previous one. Owns the data between two filters,
//! at most one buffer. Must never know what a filter does.

use std::rc::Rc;

use base::buffer::Buffer;
use base::moment::Moment;
use conn::flow::{BodyFilter, FilterOutput};
use expression::sample::Direction;
use wire::http::Fields;

use crate::filter::{Event, Filters};

/// One filter in the chain.
struct Stage {
    /// Its index in the set.
    filter: usize,
    /// Output of the previous filter; the first filter reads the input.
    held: Buffer,
    /// The filter holds data that it may output without more input.
    busy: bool,
    /// It has output everything, and no input follows.
    done: bool,
}

/// All filters of a direction.
pub(super) struct Chain {
    filters: Filters,
    direction: Direction,
    stages: Vec<Stage>,
}

impl Chain {
    pub(super) fn new(filters: &Filters, direction: Direction) -> Self {
        let stage = |filter: &usize| Stage { filter: *filter, held: Buffer::empty(), busy: false, done: false };
        let stages = filters.borrow().order(direction).iter().map(stage).collect();
        Self { filters: Rc::clone(filters), direction, stages }
    }
}

impl BodyFilter for Chain {
    fn trailers(&mut self, trailers: &mut Option<Fields>) {
        let set = &mut *self.filters.borrow_mut();
        for stage in &self.stages {
            set.attached[stage.filter].filter.trailers(self.direction, trailers);
        }
    }

    fn pass(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> FilterOutput {
        let set = &mut *self.filters.borrow_mut();
        let (context, direction) = (set.context, self.direction);
        let mut until: Option<Moment> = None;
        let (mut again, mut source_ended) = (false, ended);
        for place in 0..self.stages.len() {
            let (before, behind) = self.stages.split_at_mut(place + 1);
            let Some(stage) = before.last_mut() else { break };
            let from = if place == 0 { &mut *input } else { &mut stage.held };
            let to = behind.first_mut().map_or(&mut *output, |next| &mut next.held);
            if stage.done {
                continue;
            }
            if !to.is_empty() {
                // The next filter has not consumed its input: this one is called again after that.
                again |= !from.is_empty() || stage.busy || source_ended;
                source_ended = false;
                continue;
            }
            if from.is_empty() && !stage.busy && !source_ended {
                continue;
            }
            let filter = &mut set.attached[stage.filter].filter;
            let passed = if filter.wants(direction) {
                filter.body(&context, direction, from, to, source_ended)
            } else {
                conn::flow::forward(from, to, usize::MAX);
                FilterOutput::Through
            };
            // A filter that delays may hold all its input itself.
            stage.busy = matches!(passed, FilterOutput::Again | FilterOutput::Until(_));
            match passed {
                FilterOutput::Through => {
                    again |= !from.is_empty();
                    if source_ended && from.is_empty() {
                        stage.done = true;
                        filter.note(&context, Event::MessageEnded(direction));
                    }
                }
                FilterOutput::Again => again = true,
                FilterOutput::Refused => return FilterOutput::Refused,
                FilterOutput::Until(moment) => until = Some(until.map_or(moment, |until| until.min(moment))),
            }
            // The next filter receives the end with the last bytes of this one.
            source_ended &= stage.done;
        }
        match until {
            Some(moment) => FilterOutput::Until(moment),
            None if again => FilterOutput::Again,
            None => FilterOutput::Through,
        }
    }
}
