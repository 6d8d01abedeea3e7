//! Answers that rules describe: `deny`, `return`, `redirect` and their kin. Must never decide that there is one.

use conn::h1::prepared;
use expression::sample::Direction;
use policy::rule::{Answer, Body, Final, Redirect, Reply};

use crate::decoding::ACCEPTED;
use crate::stream::evaluate::EvalContext;
use crate::stream::page;
use crate::stream_state::{Cause, Outcome, Phase};

/// What a rule makes of a message.
pub struct Ending<'r> {
    /// How it is logged.
    pub outcome: Outcome,
    /// The answer's status; 0: none is given, and the connection ends.
    pub status: u16,
    /// The whole answer as text; `None`: the proxy's page for that status.
    pub text: Option<Reply<'r>>,
    /// How it comes.
    pub manner: Manner,
    /// A rule has refused the message.
    pub denied: bool,
    /// A rule could not do what it had to.
    pub failed: bool,
    /// A rule asks the client who it is.
    pub challenged: bool,
}

impl Ending<'_> {
    /// For who keeps it longer than the rule can be borrowed.
    pub fn into_owned(self) -> Ending<'static> {
        Ending { text: self.text.map(Reply::into_owned), ..self }
    }

    /// To evaluate rules on behalf of the message cost more than it may: the client gets the proxy's page for an internal
    /// error.
    pub fn exhausted(view: EvalContext<'_>) -> Self {
        let phase = if view.direction == Direction::Request { Phase::Request } else { Phase::Headers };
        let (outcome, manner) = (Outcome::new(Cause::Internal, phase), Manner::Prompt);
        Self { outcome, status: 500, text: None, manner, denied: false, failed: true, challenged: false }
    }

    /// An answer of a server that does not pass: the client gets the proxy's page for that status.
    pub fn refused(status: u16) -> Self {
        let outcome = Outcome::new(Cause::Proxy, Phase::Headers);
        Self { outcome, status, text: None, manner: Manner::Prompt, denied: true, failed: false, challenged: false }
    }
}

impl Ending<'static> {
    /// A script gives this answer.
    pub fn given(phase: Phase, status: u16, text: Vec<u8>) -> Self {
        let (outcome, text) = (Outcome::new(Cause::Local, phase), Some(Reply::new(text)));
        Self { outcome, status, text, manner: Manner::Prompt, denied: false, failed: false, challenged: false }
    }

    /// A cache answers.
    pub fn cached() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Local, Phase::Request), Manner::Cached);
        Self { outcome, status: 200, text: None, manner, denied: false, failed: false, challenged: false }
    }

    /// No cache answers a client that wants nothing else (RFC 9111, section 5.2.1.7).
    pub fn unsatisfied() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Local, Phase::Request), Manner::Prompt);
        Self { outcome, status: 504, text: None, manner, denied: false, failed: false, challenged: false }
    }

    /// The content coding of a request's body is not known (RFC 9110, section 15.5.16).
    pub fn unsupported_coding() -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Proxy, Phase::Request), Manner::Prompt);
        let text = Some(Reply::new(prepared::unsupported_coding(ACCEPTED)));
        Self { outcome, status: 415, text, manner, denied: false, failed: false, challenged: false }
    }

    /// The client is forgotten (`silent-drop`).
    pub fn silent(hops: Option<u8>) -> Self {
        let (outcome, manner) = (Outcome::new(Cause::Proxy, Phase::Request), Manner::Silent(hops));
        Self { outcome, status: 0, text: None, manner, denied: true, failed: false, challenged: false }
    }
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// At once.
    Prompt,
    /// After `timeout tarpit`.
    Late,
    /// From a service of that number, which is streamed.
    Streamed(usize),
    /// From a cache, which has found it.
    Cached,
    /// Not at all: the connection ends.
    Never,
    /// Not at all, and the client is not told either; or by a reset that lives so many hops.
    Silent(Option<u8>),
}

/// What a rule that ended the evaluation means for the message that was looked at.
pub fn ending<'r>(view: EvalContext<'_>, ended: &'r Final) -> Ending<'r> {
    let phase = if view.direction == Direction::Request { Phase::Request } else { Phase::Headers };
    let answered = |cause, status, text, manner| {
        let phase = if manner == Manner::Late { Phase::Tarpit } else { phase };
        let denied = cause == Cause::Proxy;
        Ending { outcome: Outcome::new(cause, phase), status, text, manner, denied, failed: false, challenged: false }
    };
    view.state.exhausted.set(false);
    let ending = match ended {
        Final::Allow | Final::SwitchMode(_) => answered(Cause::Normal, 200, None, Manner::Prompt),
        Final::Deny(answer) => {
            with_text(view, answer, |status, text| answered(Cause::Proxy, status, text, Manner::Prompt))
        }
        Final::Return(answer) => {
            with_text(view, answer, |status, text| answered(Cause::Local, status, text, Manner::Prompt))
        }
        Final::Redirect(redirect) => match location(view, redirect) {
            reply if reply.text.len() <= limit(view) => {
                answered(Cause::Local, redirect.code, Some(reply), Manner::Prompt)
            }
            _ => answered(Cause::Internal, 500, None, Manner::Prompt),
        },
        Final::Tarpit(answer) => {
            with_text(view, answer, |status, text| answered(Cause::Proxy, status, text, Manner::Late))
        }
        Final::Reject | Final::Close => answered(Cause::Proxy, 0, None, Manner::Never),
        Final::SilentDrop(hops) => Ending::silent(*hops),
        Final::Challenge(realm) => {
            let proxied = view.session.proxy().http.asks_as_proxy(&view.state.request);
            let status = if proxied { 407 } else { 401 };
            let text = prepared::challenge(&page::of(view.session, view, status).text, realm, proxied);
            Ending { challenged: true, ..answered(Cause::Local, status, Some(Reply::new(text)), Manner::Prompt) }
        }
        Final::Service(service) => answered(Cause::Local, 200, None, Manner::Streamed(service.number)),
        Final::Fault(status) => {
            Ending { denied: false, failed: *status == 500, ..answered(Cause::Proxy, *status, None, Manner::Prompt) }
        }
        Final::Exhausted => Ending::exhausted(view),
    };
    // To put the answer together may have cost too much as well.
    if view.state.exhausted.get() { Ending::exhausted(view) } else { ending }
}

/// Bytes of the longest text that may be put together.
fn limit(view: EvalContext<'_>) -> usize {
    view.session.generation().program.global.bufsize
}

/// The status and the text of an answer. In the place of one that was put together and fits in no buffer comes the proxy's
/// page for an internal error.
fn with_text<'r>(
    view: EvalContext<'_>,
    answer: &'r Answer,
    answered: impl FnOnce(u16, Option<Reply<'r>>) -> Ending<'r>,
) -> Ending<'r> {
    // What comes from the configuration is as large as it was when that was read.
    match text(view, answer) {
        Some(reply) if reply.text.len() - answer.fixed_length() > limit(view) => answered(500, None),
        reply => answered(answer.status, reply),
    }
}

/// The text of an answer; `None`: it is the proxy's page.
pub fn text<'r>(view: EvalContext<'_>, answer: &'r Answer) -> Option<Reply<'r>> {
    match &answer.body {
        Body::Default => None,
        Body::Page(page) => Some(page.lend()),
        Body::Written(text, _) => Some(text.lend()),
        _ => view.lend(|context| answer.reply(context, view.session.worker.take_text())),
    }
}

/// The text of a redirect.
fn location<'r>(view: EvalContext<'_>, redirect: &'r Redirect) -> Reply<'r> {
    match &redirect.written {
        Some(text) => text.lend(),
        None => view.lend(|context| redirect.reply(context, view.session.worker.take_text())),
    }
}
