//! Access of a script's action to its stream, and the meaning of its verdicts. Must never know a language.

use std::cell::RefCell;

use config::spec::LogLevel;
use conn::behind::Behind;
use expression::sample::{self, Bytes, Direction};
use policy::rule::{Answer, Body, Change, Final, Unfit};
use wire::http::{Framing, Head};

use crate::filter::agents::StreamAgents;
use crate::script::{Held, Order, StreamAccess, Verdict};
use crate::session::Session;
use crate::stream::answer::ending;
use crate::stream::ending::{Ending, Manner};
use crate::stream::evaluate::EvalContext;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::SharedStreamState;

/// Largest absolute value of a priority class.
const CLASSES: i64 = 2047;
/// Largest absolute value of a priority offset, in milliseconds.
const OFFSETS: i64 = 524_287;

impl<'a> StreamAccess<'a> {
    /// Of a message whose head is in the stream's state; `behind` is what has come after it.
    pub(crate) fn of_message(
        session: &'a Session,
        state: &'a SharedStreamState,
        direction: Direction,
        behind: Behind<'a>,
    ) -> Self {
        Self { session, held: Held::Shared(state), direction, behind, bytes: None }
    }

    /// Of the bytes of a session.
    pub(crate) fn of_bytes(
        session: &'a Session,
        state: &'a SharedStreamState,
        direction: Direction,
        bytes: Bytes<'a>,
    ) -> Self {
        Self { session, held: Held::Shared(state), direction, behind: Behind::NONE, bytes: Some(bytes) }
    }

    /// Of an answer that is about to be sent.
    pub(crate) fn of_answer(session: &'a Session, state: &'a StreamState, head: &'a RefCell<&'a mut Head>) -> Self {
        let (held, direction) = (Held::Apart(state, head), Direction::Response);
        Self { session, held, direction, behind: Behind::NONE, bytes: None }
    }

    /// Of a request that a service answers.
    pub fn of_service(session: &'a Session, state: &'a SharedStreamState) -> Self {
        Self::of_message(session, state, Direction::Request, Behind::NONE)
    }

    /// Of what a filter sees of a stream.
    pub fn of_filter(session: &'a Session, state: &'a SharedStreamState, direction: Direction) -> Self {
        Self::of_message(session, state, direction, Behind::NONE)
    }

    /// How the body of the request or of the answer is framed; `None`: there is no such head.
    pub fn framing(&self, of_request: bool) -> Option<Framing> {
        self.with_state(|state| match of_request {
            true => state.has_request.then_some(state.request.framing),
            false => (state.response.status() > 0).then_some(state.response.framing),
        })?
    }

    /// Has the body of the message framed in another way. Only before its head has gone on. False: the head is not at hand.
    pub fn set_framing(&self, of_request: bool, framing: Framing) -> bool {
        let Held::Shared(state) = self.held else { return false };
        if of_request != (self.direction == Direction::Request) || self.framing(of_request).is_none() {
            return false;
        }
        let Ok(mut state) = state.try_borrow_mut() else { return false };
        let head = if of_request { &mut state.request } else { &mut state.response };
        head.framing = framing;
        true
    }

    /// Whether an action may wait here: nothing does while a head is on its way to the client (`http-after-response`).
    pub fn may_wait(&self) -> bool {
        matches!(self.held, Held::Shared(_))
    }

    /// The session of the stream.
    pub fn session(&self) -> &Session {
        self.session
    }

    /// Which way its message goes.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Lends what expressions may see; `None` where the stream's state is in use.
    pub fn lend<T>(&self, with: impl FnOnce(&sample::Context<'_>) -> T) -> Option<T> {
        match self.held {
            Held::Shared(state) => {
                let state = state.try_borrow().ok()?;
                Some(self.view(&state, &state.response).lend(with))
            }
            Held::Apart(state, head) => {
                let head = head.try_borrow().ok()?;
                Some(self.view(state, &head).lend(with))
            }
        }
    }

    /// The same with no more of a body than HAProxy's buffer holds of it beside the head and the reserve (`tune.maxrewrite`), so
    /// that a message about both fits into a frame.
    pub(crate) fn lend_beside_head<T>(&self, with: impl FnOnce(&sample::Context<'_>) -> T) -> Option<T> {
        let global = &self.session.generation().program.global;
        let head = self.with_state(|state| match self.direction {
            Direction::Request => state.request.measure(),
            Direction::Response => state.response.measure(),
        });
        let most = global.bufsize.saturating_sub(global.maxrewrite).saturating_sub(head.unwrap_or(0));
        let data = &self.behind.data[..self.behind.data.len().min(most)];
        Self { behind: Behind { data, ..self.behind }, ..*self }.lend(with)
    }

    fn view<'v>(&'v self, state: &'v StreamState, response: &'v Head) -> EvalContext<'v> {
        let of_request = EvalContext::request(self.session, state);
        let view = match self.direction {
            Direction::Request => of_request,
            Direction::Response => EvalContext {
                direction: Direction::Response,
                response: (response.status() > 0).then_some(response),
                ..of_request
            },
        };
        match self.bytes {
            Some(bytes) => EvalContext { bytes, ..view },
            None => view.behind(self.behind),
        }
    }

    /// Changes the head of the request, or of the answer. `None`: it is not at hand.
    pub fn change(&self, of_request: bool, change: &Change<'_>) -> Option<Result<(), Unfit>> {
        let room = self.session.generation().program.global.bufsize;
        if of_request == (self.direction == Direction::Response) {
            return None;
        }
        match self.held {
            Held::Shared(state) => {
                let state = &mut *state.try_borrow_mut().ok()?;
                if !of_request {
                    return (state.response.status() > 0).then(|| change.apply(&mut state.response, room));
                }
                if !state.has_request {
                    return None;
                }
                if change.is_about_the_line(&state.request) {
                    // The log has the request's line as it came.
                    let line = || (state.request.method().into(), state.request.target().into());
                    state.captures.borrow_mut().line.get_or_insert_with(line);
                }
                Some(change.apply(&mut state.request, room))
            }
            Held::Apart(_, head) => {
                let mut head = head.try_borrow_mut().ok()?;
                Some(change.apply(&mut head, room))
            }
        }
    }

    /// Whether the stream is a request whose head is there.
    pub(crate) fn has_request(&self) -> bool {
        self.with_state(|state| state.has_request).unwrap_or(false)
    }

    /// The number of the stream.
    pub(crate) fn number(&self) -> u32 {
        self.with_state(|state| state.number).unwrap_or_default()
    }

    /// Lends what the stream has had of its agents; `None`: it has no filters.
    pub(crate) fn with_agents<T>(&self, with: impl FnOnce(&mut StreamAgents) -> T) -> Option<T> {
        self.with_state(|state| {
            let filters = state.filters.as_ref()?;
            Some(with(&mut filters.try_borrow_mut().ok()?.agents))
        })?
    }

    fn with_state<T>(&self, with: impl FnOnce(&StreamState) -> T) -> Option<T> {
        match self.held {
            Held::Shared(state) => state.try_borrow().ok().map(|state| with(&state)),
            Held::Apart(state, _) => Some(with(state)),
        }
    }

    /// Orders something for the stream.
    pub fn order(&self, order: Order) {
        let set = |state: &StreamState| match order {
            Order::LogLevel(level) => state.order(|orders| orders.log_level = Some(level)),
            Order::Class(class) => state.order(|orders| orders.class = class.clamp(-CLASSES, CLASSES) as i16),
            Order::Offset(offset) => state.order(|orders| orders.offset = offset.clamp(-OFFSETS, OFFSETS) as i32),
            // Where the system does not permit it, nothing changes.
            Order::Mark(mark) => {
                let _ = self.session.socket().set_mark(mark as u32);
            }
            Order::ServiceClass(class) => {
                let _ = self.session.socket().set_service_class(class as u8);
            }
        };
        self.with_state(set);
    }

    /// The proxy whose log the stream writes to.
    pub fn proxy(&self) -> usize {
        self.session.frontend
    }

    /// Writes a line to the log of its frontend.
    pub fn log(&self, level: LogLevel, text: &str) {
        self.session.worker.logger.say(self.session.log(), level, text);
    }
}

/// A request that is refused.
pub(crate) static DENIED_REQUEST: Final = denied(403);
/// An answer that is refused.
pub(crate) static DENIED_ANSWER: Final = denied(502);
/// A request that makes no sense.
static INVALID: Final = Final::Fault(400);
/// An answer that makes no sense.
static INVALID_ANSWER: Final = Final::Fault(502);
/// An action that failed: an error of the proxy itself, as the Lua manual says.
pub(crate) static FAILED: Final = Final::Exhausted;
/// A stream that ends without an answer.
pub(crate) static ABORTED: Final = Final::Reject;

const fn denied(status: u16) -> Final {
    Final::Deny(Answer { status, content_type: None, body: Body::Default, fields: Vec::new() })
}

/// What a verdict means for a message of that direction; `Ok`: whether further rules count.
pub(crate) fn judge(verdict: &Verdict, direction: Direction) -> Result<bool, &'static Final> {
    let is_request = direction == Direction::Request;
    Err(match verdict {
        Verdict::Continue => return Ok(true),
        Verdict::Stop => return Ok(false),
        Verdict::Deny if is_request => &DENIED_REQUEST,
        Verdict::Invalid if is_request => &INVALID,
        Verdict::Deny => &DENIED_ANSWER,
        Verdict::Invalid => &INVALID_ANSWER,
        Verdict::Fail => &FAILED,
        Verdict::Abort | Verdict::Reply(..) => &ABORTED,
    })
}

/// The end of a message that an action has ended.
pub(crate) fn end(view: EvalContext<'_>, verdict: Verdict, ended: &Final) -> Ending<'static> {
    let phase = if view.direction == Direction::Request { Phase::Request } else { Phase::Headers };
    match verdict {
        Verdict::Reply(status, text) => Ending::given(phase, status, text),
        Verdict::Abort => {
            let outcome = Outcome::new(Cause::Local, phase);
            let manner = Manner::Never;
            Ending { outcome, status: 0, text: None, manner, denied: false, failed: false, challenged: false }
        }
        _ => ending(view, ended).into_owned(),
    }
}
