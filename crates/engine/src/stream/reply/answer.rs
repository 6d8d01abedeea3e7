//! Answers that rules generate: `deny`, `return`, `redirect` and the like. Must never decide that an answer is due.

use conn::h1::prepared_answer;
use expression::sample::Direction;
use policy::rule::{Answer, Body, Final, Redirect, Reply};

use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::reply::page;
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::{Cause, Outcome, Phase};

impl Ending<'_> {
    /// The rules for the message have exceeded their evaluation budget (`tune.eval.max-time`): the client gets the
    /// proxy's error page for 500.
    pub fn exhausted(view: EvalContext<'_>) -> Self {
        let phase = if view.direction == Direction::Request { Phase::Request } else { Phase::Headers };
        let (outcome, manner) = (Outcome::new(Cause::Internal, phase), AnswerTiming::Prompt);
        Self { outcome, status: 500, text: None, manner, denied: false, failed: true, challenged: false }
    }
}

/// Returns how the message ends after a rule has ended the evaluation.
pub fn ending<'r>(view: EvalContext<'_>, ended: &'r Final) -> Ending<'r> {
    let phase = if view.direction == Direction::Request { Phase::Request } else { Phase::Headers };
    let answered = |cause, status, text, manner| {
        let phase = if manner == AnswerTiming::Late { Phase::Tarpit } else { phase };
        let denied = cause == Cause::Proxy;
        Ending { outcome: Outcome::new(cause, phase), status, text, manner, denied, failed: false, challenged: false }
    };
    view.state.rules.exhausted.set(false);
    let ending = match ended {
        Final::Allow | Final::SwitchMode(_) => answered(Cause::Normal, 200, None, AnswerTiming::Prompt),
        Final::Deny(answer) => {
            with_text(view, answer, |status, text| answered(Cause::Proxy, status, text, AnswerTiming::Prompt))
        }
        Final::Return(answer) => {
            with_text(view, answer, |status, text| answered(Cause::Local, status, text, AnswerTiming::Prompt))
        }
        Final::Redirect(redirect) => match location(view, redirect) {
            reply if reply.text.len() <= limit(view) => {
                answered(Cause::Local, redirect.code, Some(reply), AnswerTiming::Prompt)
            }
            _ => answered(Cause::Internal, 500, None, AnswerTiming::Prompt),
        },
        Final::Tarpit(answer) => {
            with_text(view, answer, |status, text| answered(Cause::Proxy, status, text, AnswerTiming::Late))
        }
        Final::Reject | Final::Close | Final::SendRetry => answered(Cause::Proxy, 0, None, AnswerTiming::Never),
        Final::SilentDrop(hops) => Ending::silent(*hops),
        Final::Challenge(realm) => {
            let proxied = view.session.proxy().http.asks_as_proxy(&view.state.request);
            let status = if proxied { 407 } else { 401 };
            let text = prepared_answer::challenge(&page::of(view.session, view, status).text, realm, proxied);
            Ending { challenged: true, ..answered(Cause::Local, status, Some(Reply::new(text)), AnswerTiming::Prompt) }
        }
        Final::Service(service) => answered(Cause::Local, 200, None, AnswerTiming::Streamed(service.number)),
        Final::Fault(status) => Ending {
            denied: false,
            failed: *status == 500,
            ..answered(Cause::Proxy, *status, None, AnswerTiming::Prompt)
        },
        Final::Exhausted => Ending::exhausted(view),
    };
    // Evaluating the answer itself may have exceeded the budget as well.
    if view.state.rules.exhausted.get() { Ending::exhausted(view) } else { ending }
}

/// Returns the maximum length of an evaluated text, in bytes.
fn limit(view: EvalContext<'_>) -> usize {
    view.session.generation().program.global.bufsize
}

/// Returns the ending with the answer's status and text. If the evaluated text fits in no buffer, the client gets the
/// proxy's error page for 500.
fn with_text<'r>(
    view: EvalContext<'_>,
    answer: &'r Answer,
    answered: impl FnOnce(u16, Option<Reply<'r>>) -> Ending<'r>,
) -> Ending<'r> {
    // Literal text of the configuration does not count: its length is fixed once the configuration is parsed.
    match text(view, answer) {
        Some(reply) if reply.text.len() - answer.fixed_length() > limit(view) => answered(500, None),
        reply => answered(answer.status, reply),
    }
}

/// Returns the text of an answer; `None`: the proxy's page is used.
pub fn text<'r>(view: EvalContext<'_>, answer: &'r Answer) -> Option<Reply<'r>> {
    match &answer.body {
        Body::Default => None,
        Body::Page(page) => Some(page.lend()),
        Body::Written(text, _) => Some(text.lend()),
        _ => view.lend(|context| answer.reply(context, view.session.worker.take_text())),
    }
}

/// Returns the text of a redirect.
fn location<'r>(view: EvalContext<'_>, redirect: &'r Redirect) -> Reply<'r> {
    match &redirect.written {
        Some(text) => text.lend(),
        None => view.lend(|context| redirect.reply(context, view.session.worker.take_text())),
    }
}
