//! Access of a script's action to its stream, and the effects of its verdicts. Must never depend on a language.

use std::cell::RefCell;

use config::spec::LogLevel;
use conn::buffered_body::BufferedBody;
use expression::sample::{self, Bytes, Direction};
use policy::rule::{Answer, Body, Change, Final, Unfit};
use wire::http::{Framing, Head};

use crate::filter::agents::StreamAgents;
use crate::script::{Order, StateAccess, StreamAccess, Verdict};
use crate::session::Session;
use crate::stream::reply::answer::ending;
use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::{Cause, Outcome, Phase, StreamState};
use crate::worker::SharedStreamState;

/// Largest absolute value of a priority class.
const CLASSES: i64 = 2047;
/// Largest absolute value of a priority offset, in milliseconds.
const OFFSETS: i64 = 524_287;

impl<'a> StreamAccess<'a> {
    /// Creates the access to a message whose head is in the stream's state. `behind`: the data received after the head.
    pub(crate) fn of_message(
        session: &'a Session,
        state: &'a SharedStreamState,
        direction: Direction,
        behind: BufferedBody<'a>,
    ) -> Self {
        Self { session, held: StateAccess::Shared(state), direction, behind, bytes: None }
    }

    /// Creates the access to the data of a session in TCP mode.
    pub(crate) fn of_bytes(
        session: &'a Session,
        state: &'a SharedStreamState,
        direction: Direction,
        bytes: Bytes<'a>,
    ) -> Self {
        Self { session, held: StateAccess::Shared(state), direction, behind: BufferedBody::NONE, bytes: Some(bytes) }
    }

    /// Creates the access to a response that is about to be sent.
    pub(crate) fn of_answer(session: &'a Session, state: &'a StreamState, head: &'a RefCell<&'a mut Head>) -> Self {
        let (held, direction) = (StateAccess::Apart(state, head), Direction::Response);
        Self { session, held, direction, behind: BufferedBody::NONE, bytes: None }
    }

    /// Creates the access to a request that a service answers.
    pub fn of_service(session: &'a Session, state: &'a SharedStreamState) -> Self {
        Self::of_message(session, state, Direction::Request, BufferedBody::NONE)
    }

    /// Creates the access of a filter to a stream.
    pub fn of_filter(session: &'a Session, state: &'a SharedStreamState, direction: Direction) -> Self {
        Self::of_message(session, state, direction, BufferedBody::NONE)
    }

    /// Returns the framing of the body of the request or of the response; `None`: there is no such head.
    pub fn framing(&self, of_request: bool) -> Option<Framing> {
        self.with_state(|state| match of_request {
            true => state.info.has_request.then_some(state.request.framing),
            false => (state.response.status() > 0).then_some(state.response.framing),
        })?
    }

    /// Changes the framing of the message's body, which is possible only before its head is sent. Returns false if the head
    /// cannot be accessed.
    pub fn set_framing(&self, of_request: bool, framing: Framing) -> bool {
        let StateAccess::Shared(state) = self.held else { return false };
        if of_request != (self.direction == Direction::Request) || self.framing(of_request).is_none() {
            return false;
        }
        let Ok(mut state) = state.try_borrow_mut() else { return false };
        let head = if of_request { &mut state.request } else { &mut state.response };
        head.framing = framing;
        true
    }

    /// Whether an action may wait: not while a head is being sent to the client (`http-after-response`).
    pub fn may_wait(&self) -> bool {
        matches!(self.held, StateAccess::Shared(_))
    }

    /// Returns the session of the stream.
    pub fn session(&self) -> &Session {
        self.session
    }

    /// Returns the direction of its message.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Passes the context for expressions to `with`; `None`: the stream's state is in use.
    pub fn lend<T>(&self, with: impl FnOnce(&sample::Context<'_>) -> T) -> Option<T> {
        match self.held {
            StateAccess::Shared(state) => {
                let state = state.try_borrow().ok()?;
                Some(self.view(&state, &state.response).lend(with))
            }
            StateAccess::Apart(state, head) => {
                let head = head.try_borrow().ok()?;
                Some(self.view(state, &head).lend(with))
            }
        }
    }

    /// Like [`Self::lend`], but limits the body to the part that fits into HAProxy's buffer together with the head and the
    /// reserve (`tune.maxrewrite`), so that a message with both fits into a frame.
    pub(crate) fn lend_beside_head<T>(&self, with: impl FnOnce(&sample::Context<'_>) -> T) -> Option<T> {
        let global = &self.session.generation().program.global;
        let head = self.with_state(|state| match self.direction {
            Direction::Request => state.request.measure(),
            Direction::Response => state.response.measure(),
        });
        let most = global.bufsize.saturating_sub(global.maxrewrite).saturating_sub(head.unwrap_or(0));
        let data = &self.behind.data[..self.behind.data.len().min(most)];
        Self { behind: BufferedBody { data, ..self.behind }, ..*self }.lend(with)
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

    /// Changes the head of the request, or of the response. `None`: it cannot be accessed.
    pub fn change(&self, of_request: bool, change: &Change<'_>) -> Option<Result<(), Unfit>> {
        let room = self.session.generation().program.global.bufsize;
        if of_request == (self.direction == Direction::Response) {
            return None;
        }
        match self.held {
            StateAccess::Shared(state) => {
                let state = &mut *state.try_borrow_mut().ok()?;
                if !of_request {
                    return (state.response.status() > 0).then(|| change.apply(&mut state.response, room));
                }
                if !state.info.has_request {
                    return None;
                }
                if change.is_about_the_line(&state.request) {
                    // The log contains the request line as it was received.
                    let line = || (state.request.method().into(), state.request.target().into());
                    state.captures.borrow_mut().line.get_or_insert_with(line);
                }
                Some(change.apply(&mut state.request, room))
            }
            StateAccess::Apart(_, head) => {
                let mut head = head.try_borrow_mut().ok()?;
                Some(change.apply(&mut head, room))
            }
        }
    }

    /// Whether the stream is a request whose head is complete.
    pub(crate) fn has_request(&self) -> bool {
        self.with_state(|state| state.info.has_request).unwrap_or(false)
    }

    /// Returns the number of the stream.
    pub(crate) fn number(&self) -> u32 {
        self.with_state(|state| state.info.number).unwrap_or_default()
    }

    /// Passes the state of the stream's agents to `with`; `None`: the stream has no filters.
    pub(crate) fn with_agents<T>(&self, with: impl FnOnce(&mut StreamAgents) -> T) -> Option<T> {
        self.with_state(|state| {
            let filters = state.filters.as_ref()?;
            Some(with(&mut filters.try_borrow_mut().ok()?.agents))
        })?
    }

    fn with_state<T>(&self, with: impl FnOnce(&StreamState) -> T) -> Option<T> {
        match self.held {
            StateAccess::Shared(state) => state.try_borrow().ok().map(|state| with(&state)),
            StateAccess::Apart(state, _) => Some(with(state)),
        }
    }

    /// Changes a setting of the stream.
    pub fn order(&self, order: Order) {
        let set = |state: &StreamState| match order {
            Order::LogLevel(level) => state.order(|orders| orders.log_level = Some(level)),
            Order::Class(class) => state.order(|orders| orders.class = class.clamp(-CLASSES, CLASSES) as i16),
            Order::Offset(offset) => state.order(|orders| orders.offset = offset.clamp(-OFFSETS, OFFSETS) as i32),
            // If the system does not permit it, nothing changes.
            Order::Mark(mark) => {
                let _ = self.session.socket().set_mark(mark as u32);
            }
            Order::ServiceClass(class) => {
                let _ = self.session.socket().set_service_class(class as u8);
            }
        };
        self.with_state(set);
    }

    /// Returns the index of the proxy whose log the stream is written to.
    pub fn proxy(&self) -> usize {
        self.session.frontend
    }

    /// Writes a line to the log of its frontend.
    pub fn log(&self, level: LogLevel, text: &str) {
        self.session.worker.logger.say(self.session.log(), level, text);
    }
}

/// The request is denied.
pub(crate) static DENIED_REQUEST: Final = denied(403);
/// The response is denied.
pub(crate) static DENIED_ANSWER: Final = denied(502);
/// The request is invalid.
static INVALID: Final = Final::Fault(400);
/// The response is invalid.
static INVALID_ANSWER: Final = Final::Fault(502);
/// The action failed: an internal error of the proxy, as specified by the Lua manual.
pub(crate) static FAILED: Final = Final::Exhausted;
/// The stream ends without a response.
pub(crate) static ABORTED: Final = Final::Reject;

const fn denied(status: u16) -> Final {
    Final::Deny(Answer { status, content_type: None, body: Body::Default, fields: Vec::new() })
}

/// Returns the effect of a verdict on a message of that direction; `Ok`: whether further rules are run.
pub(crate) fn effect_of(verdict: &Verdict, direction: Direction) -> Result<bool, &'static Final> {
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

/// Returns the end of a message that an action has ended.
pub(crate) fn end(view: EvalContext<'_>, verdict: Verdict, ended: &Final) -> Ending<'static> {
    let phase = if view.direction == Direction::Request { Phase::Request } else { Phase::Headers };
    match verdict {
        Verdict::Reply(status, text) => Ending::given(phase, status, text),
        Verdict::Abort => {
            let outcome = Outcome::new(Cause::Local, phase);
            let manner = AnswerTiming::Never;
            Ending { outcome, status: 0, text: None, manner, denied: false, failed: false, challenged: false }
        }
        _ => ending(view, ended).into_owned(),
    }
}
