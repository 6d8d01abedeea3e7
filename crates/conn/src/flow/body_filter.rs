//! Filters of a body: a filter sees every byte of the payload, without the framing, and may hold bytes back or replace
//! them. Owns the bytes that a filter has not passed on yet. Must never know why a body is filtered.

use base::buffer::Buffer;
use base::moment::Moment;
use wire::http::Fields;

use super::{Flow, HEADROOM, Source, TAILROOM, body_buffer, shrink};

/// The result of one call of [`BodyFilter::pass`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterOutput {
    /// All of the input was taken; there is no output before more input comes.
    Through,
    /// More output may be available at once, or in the next event-loop iteration.
    Again,
    /// There is no output before that time.
    Until(Moment),
    /// The body is invalid, for example its content coding is broken: it ends here.
    Refused,
}

/// A filter of one direction's body.
pub trait BodyFilter {
    /// Moves the bytes that may go on from `input` to `output`, which is empty. Bytes left in `input` are passed again
    /// by the next call. `ended`: no more input follows. Bytes that are passed on unchanged should be moved by
    /// [`forward`].
    fn pass(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> FilterOutput;

    /// Filters the trailers that followed the body. Called once, before [`BodyFilter::pass`] is called with the end.
    /// The trailers that are left are forwarded.
    fn trailers(&mut self, trailers: &mut Option<Fields>) {
        let _ = trailers;
    }
}

/// Discards the whole body, because the sink did not ask for it.
pub struct Discard;

impl BodyFilter for Discard {
    fn pass(&mut self, input: &mut Buffer, _: &mut Buffer, _: bool) -> FilterOutput {
        input.clear();
        FilterOutput::Through
    }
}

/// Moves at most `most` bytes from `input` to the end of `output`, unchanged; whole buffers are swapped. Returns the
/// number of bytes moved, which is never zero if there are bytes and capacity for them.
pub fn forward(input: &mut Buffer, output: &mut Buffer, most: usize) -> usize {
    if input.len() <= most && output.is_empty() {
        std::mem::swap(input, output);
        input.clear();
        return output.len();
    }
    if output.is_empty() {
        make_output(output);
    }
    let length = input.len().min(most).min(output.room());
    let moved = output.push(&input.data()[..length]);
    debug_assert!(moved, "no more than there is room for");
    input.consume(length);
    length
}

/// Prepares an empty buffer for a filter's output, with the capacity around it that framing needs.
pub fn make_output(output: &mut Buffer) {
    if output.capacity() == 0 {
        *output = body_buffer();
    } else {
        output.clear();
        output.reserve_around(HEADROOM, TAILROOM);
    }
}

/// A body that a filter can be attached to.
pub trait Filtered {
    /// Whether a filter is attached.
    fn has_passage(&self) -> bool;

    /// See [`Flow::set_body_filter`].
    fn set_body_filter(&mut self, filter: Box<dyn BodyFilter>);
}

impl Filtered for Flow {
    fn has_passage(&self) -> bool {
        self.filter_stage.is_some()
    }

    fn set_body_filter(&mut self, filter: Box<dyn BodyFilter>) {
        Flow::set_body_filter(self, filter);
    }
}

/// A filter, and the bytes that it has not passed on.
pub(super) struct FilterStage {
    filter: Box<dyn BodyFilter>,
    /// The payload received and not yet passed on.
    held: Buffer,
    /// The trailers received after the body, kept until all of the body has been passed on.
    trailers: Option<Fields>,
    /// Whether the filter has seen the trailers.
    told: bool,
    /// Whether the filter has passed on the last of the body.
    done: bool,
    /// Whether the filter itself holds bytes.
    busy: bool,
    /// The time until which the filter holds bytes back.
    until: Option<Moment>,
}

impl FilterStage {
    /// Whether no bytes are held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && !self.busy
    }

    /// See [`Flow::drop_unframed`].
    pub(super) fn drop_held(&mut self) {
        self.held = Buffer::empty();
    }

    /// Begins another poll: bytes held back are offered to the filter again.
    pub(super) fn begin(&mut self) {
        self.until = None;
    }

    /// Whether the last of the body was passed on.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// See [`Flow::shrink`].
    pub(super) fn shrink(&mut self) {
        shrink(&mut self.held);
    }

    /// Records the end of the source, with its trailers.
    pub(super) fn end(&mut self, trailers: Option<&Fields>) {
        self.trailers = trailers.cloned();
    }
}

/// The result of one step of a filter.
pub(super) enum StepResult {
    /// There is output to write.
    Output,
    /// All of the body was passed on, and the source has ended.
    Finished,
    /// More input is needed first.
    Hungry,
    /// The filter holds back the bytes that it has.
    Held,
    /// The filter has more to do, and yields to other tasks first.
    Again,
    /// The filter refused the body.
    Refused,
}

impl Flow {
    /// Attaches a filter to the rest of the body. Bytes that wait to be written are filtered as well, unless they are
    /// framed already, so this should be called before the flow is started. No effect if the source has ended.
    pub fn set_body_filter(&mut self, filter: Box<dyn BodyFilter>) {
        if self.filter_stage.is_some() || self.source_ended() {
            return;
        }
        let mut held = Buffer::empty();
        if !self.chunked {
            std::mem::swap(&mut held, &mut self.body);
        }
        self.filter_stage = Some(Box::new(FilterStage {
            filter,
            held,
            trailers: None,
            told: false,
            done: false,
            busy: false,
            until: None,
        }));
    }

    /// Whether a filter is attached.
    pub fn has_passage(&self) -> bool {
        self.filter_stage.is_some()
    }

    /// The time until which bytes are held back, for a flow whose last step was [`super::FlowStep::Held`].
    pub fn held_until(&self) -> Option<Moment> {
        self.filter_stage.as_ref().and_then(|filter_stage| filter_stage.until)
    }

    /// Hands the payload just read to the filter.
    pub(super) fn hold(&mut self) {
        if let Some(filter_stage) = &mut self.filter_stage {
            debug_assert!(filter_stage.held.is_empty(), "nothing is read while something is held");
            std::mem::swap(&mut filter_stage.held, &mut self.body);
            self.body.clear();
        }
    }

    /// Runs the filter once, with its output in `body`.
    pub(super) fn sift(&mut self) -> StepResult {
        let ended = matches!(self.source, Source::Ended);
        let Some(filter_stage) = &mut self.filter_stage else { return StepResult::Hungry };
        if filter_stage.done {
            return StepResult::Finished;
        }
        if filter_stage.held.is_empty() && !filter_stage.busy && !ended {
            return StepResult::Hungry;
        }
        self.body.clear();
        if ended && !std::mem::replace(&mut filter_stage.told, true) {
            filter_stage.filter.trailers(&mut filter_stage.trailers);
        }
        let passed = filter_stage.filter.pass(&mut filter_stage.held, &mut self.body, ended);
        filter_stage.busy = passed != FilterOutput::Through;
        let last = passed == FilterOutput::Through && ended && filter_stage.held.is_empty();
        let mut trailers = None;
        if last {
            filter_stage.done = true;
            trailers = filter_stage.trailers.take();
        }
        let output = !self.body.is_empty();
        if self.chunked {
            self.frame();
        }
        if last {
            self.end_with(trailers.as_ref());
        }
        match passed {
            FilterOutput::Refused => StepResult::Refused,
            _ if output || (last && self.chunked) => StepResult::Output,
            _ if last => StepResult::Finished,
            FilterOutput::Through
                if self.filter_stage.as_ref().is_some_and(|filter_stage| filter_stage.held.is_empty()) =>
            {
                StepResult::Hungry
            }
            FilterOutput::Through | FilterOutput::Again => StepResult::Again,
            FilterOutput::Until(moment) => {
                if let Some(filter_stage) = &mut self.filter_stage {
                    filter_stage.until = Some(moment);
                }
                StepResult::Held
            }
        }
    }
}
