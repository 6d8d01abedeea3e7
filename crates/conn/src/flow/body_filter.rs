//! What may stand in the way of a body: it sees every byte of it without the framing, and may hold bytes back or put
//! others in their place. Owns what it has not let go yet. Must never know why a body is looked at.

use base::buffer::Buffer;
use base::moment::Moment;
use wire::http::Fields;

use super::{Flow, HEADROOM, Source, TAILROOM, body_buffer, shrink};

/// What a filter made of what it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// It took all that there was, and has nothing to give before more comes.
    Through,
    /// It may give more at once, or in the next turn.
    Again,
    /// It has nothing to give before that moment.
    Until(Moment),
    /// The body is not what it has to be: it ends here, as one whose coding is broken.
    Refused,
}

/// Stands in the way of one direction's body.
pub trait BodyFilter {
    /// Moves what may go on from `input` to `output`, which is empty. What stays in `input` is shown again. `ended`:
    /// nothing comes behind it. What is passed on as it is had better be moved by [`forward`].
    fn pass(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> Passed;

    /// The trailers that came after the body; called once, before [`BodyFilter::pass`] is called with the end. What stays goes on.
    fn trailers(&mut self, trailers: &mut Option<Fields>) {
        let _ = trailers;
    }
}

/// Lets nothing go on: the sink did not ask for the body.
pub struct Discard;

impl BodyFilter for Discard {
    fn pass(&mut self, input: &mut Buffer, _: &mut Buffer, _: bool) -> Passed {
        input.clear();
        Passed::Through
    }
}

/// Moves at most `most` bytes from `input` to the end of `output`, as it is passed on: whole buffers change hands. The
/// number of bytes that were moved: never zero where there are bytes and room for them.
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

/// Makes an empty buffer ready for what a filter writes: with room around it for the framing.
pub fn make_output(output: &mut Buffer) {
    if output.capacity() == 0 {
        *output = body_buffer();
    } else {
        output.clear();
        output.reserve_around(HEADROOM, TAILROOM);
    }
}

/// A body that a filter can be put in the way of.
pub trait Filtered {
    /// Whether something stands in the way.
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

/// A filter and what it has not let go.
pub(super) struct FilterStage {
    filter: Box<dyn BodyFilter>,
    /// The payload that has come.
    held: Buffer,
    /// The trailers that came behind the body, for when all of it has gone.
    trailers: Option<Fields>,
    /// The filter has seen them.
    told: bool,
    /// The filter has let go the last of it.
    done: bool,
    /// The filter itself holds something.
    busy: bool,
    /// Until when it holds back what it has.
    until: Option<Moment>,
}

impl FilterStage {
    /// Whether nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && !self.busy
    }

    /// See [`Flow::drop_unframed`].
    pub(super) fn drop_held(&mut self) {
        self.held = Buffer::empty();
    }

    /// Another turn begins: what was held back is shown again.
    pub(super) fn begin(&mut self) {
        self.until = None;
    }

    /// Whether the last of it was let go.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// See [`Flow::shrink`].
    pub(super) fn shrink(&mut self) {
        shrink(&mut self.held);
    }

    /// The source has ended, with these trailers.
    pub(super) fn end(&mut self, trailers: Option<&Fields>) {
        self.trailers = trailers.cloned();
    }
}

/// What one step of a filter brought about.
pub(super) enum Sifted {
    /// Something is to be written.
    Output,
    /// Everything was let go, and the source has ended.
    Finished,
    /// More has to come first.
    Hungry,
    /// It holds back what there is.
    Held,
    /// Others get their turn first.
    Again,
    /// The body is refused.
    Refused,
}

impl Flow {
    /// Puts something in the way of what is still to come. What waits to be written goes through it as well, where it is
    /// not framed yet; so this is best done before the flow is started. A source that has ended is left alone.
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

    /// Whether something stands in the way.
    pub fn has_passage(&self) -> bool {
        self.filter_stage.is_some()
    }

    /// Until when bytes are held back, of a flow whose step is [`super::FlowStep::Held`].
    pub fn held_until(&self) -> Option<Moment> {
        self.filter_stage.as_ref().and_then(|filter_stage| filter_stage.until)
    }

    /// Hands the payload that was just read to the filter.
    pub(super) fn hold(&mut self) {
        if let Some(filter_stage) = &mut self.filter_stage {
            debug_assert!(filter_stage.held.is_empty(), "nothing is read while something is held");
            std::mem::swap(&mut filter_stage.held, &mut self.body);
            self.body.clear();
        }
    }

    /// Has the filter let go what it will, into `body`.
    pub(super) fn sift(&mut self) -> Sifted {
        let ended = matches!(self.source, Source::Ended);
        let Some(filter_stage) = &mut self.filter_stage else { return Sifted::Hungry };
        if filter_stage.done {
            return Sifted::Finished;
        }
        if filter_stage.held.is_empty() && !filter_stage.busy && !ended {
            return Sifted::Hungry;
        }
        self.body.clear();
        if ended && !std::mem::replace(&mut filter_stage.told, true) {
            filter_stage.filter.trailers(&mut filter_stage.trailers);
        }
        let passed = filter_stage.filter.pass(&mut filter_stage.held, &mut self.body, ended);
        filter_stage.busy = passed != Passed::Through;
        let last = passed == Passed::Through && ended && filter_stage.held.is_empty();
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
            Passed::Refused => Sifted::Refused,
            _ if output || (last && self.chunked) => Sifted::Output,
            _ if last => Sifted::Finished,
            Passed::Through if self.filter_stage.as_ref().is_some_and(|filter_stage| filter_stage.held.is_empty()) => {
                Sifted::Hungry
            }
            Passed::Through | Passed::Again => Sifted::Again,
            Passed::Until(moment) => {
                if let Some(filter_stage) = &mut self.filter_stage {
                    filter_stage.until = Some(moment);
                }
                Sifted::Held
            }
        }
    }
}
