//! What may stand in the way of a body: it sees every byte of it without the framing, and may hold bytes back or put
//! others in their place. Owns what it has not let go yet. Must never know why a body is looked at.

use base::buffer::Buffer;
use base::moment::Moment;
use wire::http::Fields;

use super::{Flow, HEADROOM, Source, TAILROOM, body_buffer, shrink};

/// What a passage made of what it was shown.
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
pub trait Passage {
    /// Moves what may go on from `input` to `output`, which is empty. What stays in `input` is shown again. `ended`:
    /// nothing comes behind it. What is passed on as it is had better be moved by [`forward`].
    fn pass(&mut self, input: &mut Buffer, output: &mut Buffer, ended: bool) -> Passed;

    /// The trailers that came after the body; called once, before [`Passage::pass`] is called with the end. What stays goes on.
    fn trailers(&mut self, trailers: &mut Option<Fields>) {
        let _ = trailers;
    }
}

/// Lets nothing go on: the sink did not ask for the body.
pub struct Discard;

impl Passage for Discard {
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

/// Makes an empty buffer ready for what a passage writes: with room around it for the framing.
pub fn make_output(output: &mut Buffer) {
    if output.capacity() == 0 {
        *output = body_buffer();
    } else {
        output.clear();
        output.reserve_around(HEADROOM, TAILROOM);
    }
}

/// A body that a passage can be put in the way of.
pub trait Filtered {
    /// Whether something stands in the way.
    fn has_passage(&self) -> bool;

    /// See [`Flow::set_passage`].
    fn set_passage(&mut self, passage: Box<dyn Passage>);
}

impl Filtered for Flow {
    fn has_passage(&self) -> bool {
        self.sieve.is_some()
    }

    fn set_passage(&mut self, passage: Box<dyn Passage>) {
        Flow::set_passage(self, passage);
    }
}

/// A passage and what it has not let go.
pub(super) struct Sieve {
    passage: Box<dyn Passage>,
    /// The payload that has come.
    held: Buffer,
    /// The trailers that came behind the body, for when all of it has gone.
    trailers: Option<Fields>,
    /// The passage has seen them.
    told: bool,
    /// The passage has let go the last of it.
    done: bool,
    /// The passage itself holds something.
    busy: bool,
    /// Until when it holds back what it has.
    until: Option<Moment>,
}

impl Sieve {
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

/// What a turn of the sieve brought about.
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
    pub fn set_passage(&mut self, passage: Box<dyn Passage>) {
        if self.sieve.is_some() || self.source_ended() {
            return;
        }
        let mut held = Buffer::empty();
        if !self.chunked {
            std::mem::swap(&mut held, &mut self.body);
        }
        self.sieve =
            Some(Box::new(Sieve { passage, held, trailers: None, told: false, done: false, busy: false, until: None }));
    }

    /// Whether something stands in the way.
    pub fn has_passage(&self) -> bool {
        self.sieve.is_some()
    }

    /// Until when bytes are held back, of a flow whose step is [`super::Step::Held`].
    pub fn held_until(&self) -> Option<Moment> {
        self.sieve.as_ref().and_then(|sieve| sieve.until)
    }

    /// Hands the payload that was just read to the sieve.
    pub(super) fn hold(&mut self) {
        if let Some(sieve) = &mut self.sieve {
            debug_assert!(sieve.held.is_empty(), "nothing is read while something is held");
            std::mem::swap(&mut sieve.held, &mut self.body);
            self.body.clear();
        }
    }

    /// Has the sieve let go what it will, into `body`.
    pub(super) fn sift(&mut self) -> Sifted {
        let ended = matches!(self.source, Source::Ended);
        let Some(sieve) = &mut self.sieve else { return Sifted::Hungry };
        if sieve.done {
            return Sifted::Finished;
        }
        if sieve.held.is_empty() && !sieve.busy && !ended {
            return Sifted::Hungry;
        }
        self.body.clear();
        if ended && !std::mem::replace(&mut sieve.told, true) {
            sieve.passage.trailers(&mut sieve.trailers);
        }
        let passed = sieve.passage.pass(&mut sieve.held, &mut self.body, ended);
        sieve.busy = passed != Passed::Through;
        let last = passed == Passed::Through && ended && sieve.held.is_empty();
        let mut trailers = None;
        if last {
            sieve.done = true;
            trailers = sieve.trailers.take();
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
            Passed::Through if self.sieve.as_ref().is_some_and(|sieve| sieve.held.is_empty()) => Sifted::Hungry,
            Passed::Through | Passed::Again => Sifted::Again,
            Passed::Until(moment) => {
                if let Some(sieve) = &mut self.sieve {
                    sieve.until = Some(moment);
                }
                Sifted::Held
            }
        }
    }
}
