//! Rules on an answer's head (`http-response`, then `http-after-response`): they may delay it, for a period or for its
//! body. Must never write a byte of it.

use std::task::{Context, Poll};

use base::moment::Moment;
use config::spec::LogLevel;
use conn::h1::ExpectedBody;
use expression::sample::Direction;
use policy::rule::{Final, Rule, Wait};

use super::Exchange;
use crate::script::{Action, StreamAccess};
use crate::session::Session;
use crate::stream::cache::cacheability::exposes_cookie;
use crate::stream::reply::answer::ending;
use crate::stream::reply::ending::Ending;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::{Progress, Stop, has_rules_after, run_after, run_response};
use crate::stream::request::{actions, script};
use crate::stream::server::persistence;
use crate::stream_state::StreamState;

/// State of an answer that is delayed by a rule.
pub(super) struct PausedRules {
    /// The stage whose rules are delayed.
    stage: Stage,
    progress: Progress,
    held: RuleWait,
}

/// The stages of the rules, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stage {
    /// SPOE agents of the frontend.
    Agents,
    /// `http-response` rules of the backend.
    Backend,
    /// `http-response` rules of the frontend.
    Frontend,
}

/// The event for which a rule waits.
enum RuleWait {
    /// A time.
    Until(Moment),
    /// The answer's body, until `deadline`.
    Body { deadline: Moment, coming: ExpectedBody, large: Option<usize> },
    /// The other tasks of the worker.
    Turn,
    /// An action of a script, or an agent.
    Script(Box<dyn Action>),
    /// None: the wait is over.
    Over,
}

/// Result of a wait.
enum WaitOutcome {
    /// The rules continue.
    Goes,
    /// The event has not occurred in time.
    Late,
    /// No further rule of the set is evaluated.
    Stops,
    /// The answer is replaced or dropped.
    Ends(Box<Ending<'static>>),
}

impl PausedRules {
    /// Whether the wait is for data of the server.
    pub(super) fn awaits_server(&self) -> bool {
        matches!(self.held, RuleWait::Body { .. })
    }

    /// Returns the time at which the wait ends in any case.
    pub(super) fn deadline(&self) -> Option<Moment> {
        match &self.held {
            RuleWait::Until(moment) | RuleWait::Body { deadline: moment, .. } => Some(*moment),
            RuleWait::Turn | RuleWait::Script(_) | RuleWait::Over => None,
        }
    }
}

/// Result of the rules on an answer.
pub(super) enum ResponseVerdict {
    /// The answer is forwarded.
    Passes,
    /// The answer is replaced or dropped.
    Ends(Box<Ending<'static>>),
    /// The rules are not decided yet.
    Waits,
    /// Its body was not received in time.
    Late,
}

/// Returns the answer that replaces one whose cookie a cache could store, if the backend has `option checkcache`.
pub fn expose(session: &Session, state: &mut StreamState) -> Option<Box<Ending<'static>>> {
    let worker = &session.worker;
    let proxy = session.proxy_at(state.route.backend?);
    if !proxy.http.check_cache || !exposes_cookie(&state.request, &state.response) {
        return None;
    }
    let server = proxy.server(state.route.server?).map_or("", |server| &server.name);
    let text = format!("Blocking cacheable cookie in response from instance {}, server {server}.", proxy.name);
    worker.logger.message_of(&session.generation().logs, proxy.index, LogLevel::Alert, &text);
    state.rules.denied = true;
    Some(Box::new(Ending::refused(502)))
}

/// Applies persistence to the answer, then the `http-after-response` rules of both sides. Returns the answer that
/// replaces it, if any.
pub fn finish_rules(session: &Session, state: &mut StreamState) -> Option<Box<Ending<'static>>> {
    if !has_rules_after(session, state) {
        persistence::answer_in_place(session, state);
        return None;
    }
    let mut head = std::mem::take(&mut state.response);
    persistence::answer(session, state, &mut head);
    let ended = run_after(session, state, &mut head).map(|ended| {
        let view = EvalContext::response(session, state, &head);
        Box::new(ending(view, ended).into_owned())
    });
    state.response = head;
    if let Some(ending) = &ended {
        (state.rules.denied, state.rules.failed) = (ending.denied, ending.failed);
    }
    ended
}

impl Exchange<'_> {
    /// Runs the rules of both sides on the answer's head, from their current position.
    pub(super) fn rule(&mut self, cx: &mut Context<'_>) -> ResponseVerdict {
        let session = self.session;
        let frontend = session.proxy();
        let backend = self.state.borrow().route.backend.map(|index| session.proxy_at(index));
        let backend = backend.filter(|proxy| proxy.index != frontend.index);
        if !self.terms.ruled {
            return self.rule_last();
        }
        if self.rules.paused.is_none()
            && !frontend.rules.see_answers()
            && !backend.is_some_and(|proxy| proxy.rules.see_answers())
        {
            if let Some(ending) = expose(session, &mut self.state.borrow_mut()) {
                return ResponseVerdict::Ends(ending);
            }
            persistence::answer_in_place(session, &mut self.state.borrow_mut());
            return ResponseVerdict::Passes;
        }
        let mut from = None;
        if let Some(mut paused_rules) = self.rules.paused.take() {
            match self.wait(cx, &mut paused_rules.held) {
                Poll::Pending => {
                    self.rules.paused = Some(paused_rules);
                    return ResponseVerdict::Waits;
                }
                Poll::Ready(WaitOutcome::Late) => return ResponseVerdict::Late,
                Poll::Ready(WaitOutcome::Ends(ending)) => return self.ended(ending),
                Poll::Ready(WaitOutcome::Goes) => {}
                Poll::Ready(WaitOutcome::Stops) => paused_rules.progress = Progress::STOPPED,
            }
            // No timeout ran during the wait.
            self.server_side.reading_resumes(rt::now());
            from = Some((paused_rules.stage, paused_rules.progress));
        }
        let agents = frontend.rules.spoe.as_ref().filter(|_| backend.is_some()).map(|events| &events.answers);
        let stages = [
            (Stage::Agents, agents),
            (Stage::Backend, backend.map(|proxy| &proxy.rules.http_response)),
            (Stage::Frontend, Some(&frontend.rules.http_response)),
        ];
        for (stage, rules) in stages {
            let Some(rules) = rules else { continue };
            let mut progress = match from {
                // Its rules have run already.
                Some((known, _)) if known > stage => continue,
                Some((known, progress)) if known == stage => progress,
                _ => Progress::default(),
            };
            if let Some(ruled) = self.rules_of(cx, rules, stage, &mut progress) {
                return ruled;
            }
        }
        let exposed = expose(session, &mut self.state.borrow_mut());
        match exposed {
            Some(ending) => ResponseVerdict::Ends(ending),
            None => self.rule_last(),
        }
    }

    /// Runs the rules of a stage. `None`: they let the answer pass.
    fn rules_of(
        &mut self,
        cx: &mut Context<'_>,
        rules: &[Rule],
        stage: Stage,
        progress: &mut Progress,
    ) -> Option<ResponseVerdict> {
        loop {
            if rules.is_empty() {
                return None;
            }
            let wait = {
                let state = &mut *self.state.borrow_mut();
                let mut head = std::mem::take(&mut state.response);
                let (session, behind) = (self.session, self.reply.message.reader.behind(&self.upstream));
                let wait = match run_response(session, state, &mut head, behind, rules, progress) {
                    Stop::End | Stop::Cache(_) | Stop::Store(_) => None,
                    Stop::Yield => Some(RuleWait::Turn),
                    Stop::Wait(wait) => Some(self.hold(EvalContext::response(session, state, &head), wait)),
                    Stop::Final(ended) => {
                        let view = EvalContext::response(session, state, &head).behind(behind);
                        let ending = Self::end(view, ended);
                        (state.rules.denied, state.rules.failed) = (ending.denied, ending.failed);
                        state.response = head;
                        return Some(ResponseVerdict::Ends(ending));
                    }
                };
                state.response = head;
                wait
            };
            let mut held = wait?;
            match self.wait(cx, &mut held) {
                Poll::Ready(WaitOutcome::Goes) => {}
                Poll::Ready(WaitOutcome::Late) => return Some(ResponseVerdict::Late),
                Poll::Ready(WaitOutcome::Stops) => return None,
                Poll::Ready(WaitOutcome::Ends(ending)) => return Some(self.ended(ending)),
                Poll::Pending => {
                    self.rules.paused = Some(Box::new(PausedRules { stage, progress: *progress, held }));
                    return Some(ResponseVerdict::Waits);
                }
            }
        }
    }

    /// See [`finish_rules`].
    fn rule_last(&self) -> ResponseVerdict {
        finish_rules(self.session, &mut self.state.borrow_mut()).map_or(ResponseVerdict::Passes, ResponseVerdict::Ends)
    }

    fn end(view: EvalContext<'_>, ended: &Final) -> Box<Ending<'static>> {
        Box::new(ending(view, ended).into_owned())
    }

    /// Records that a script has ended the answer.
    fn ended(&self, ending: Box<Ending<'static>>) -> ResponseVerdict {
        let state = &mut *self.state.borrow_mut();
        (state.rules.denied, state.rules.failed) = (ending.denied, ending.failed);
        ResponseVerdict::Ends(ending)
    }

    /// Polls an action of a script.
    fn poll_script(&self, cx: &mut Context<'_>, action: &mut dyn Action) -> Poll<WaitOutcome> {
        let (session, behind) = (self.session, self.reply.message.reader.behind(&self.upstream));
        let access = StreamAccess::of_message(session, self.state, Direction::Response, behind);
        action.poll(cx, &access).map(|verdict| match script::effect_of(&verdict, Direction::Response) {
            Ok(true) => WaitOutcome::Goes,
            Ok(false) => WaitOutcome::Stops,
            Err(ended) => {
                let state = self.state.borrow();
                let view = EvalContext::response(session, &state, &state.response);
                WaitOutcome::Ends(Box::new(script::end(view, verdict, ended)))
            }
        })
    }

    /// Starts the wait that a rule demands.
    fn hold(&self, view: EvalContext<'_>, wait: &Wait) -> RuleWait {
        match wait {
            Wait::Pause(period) => {
                match view
                    .behind(self.reply.message.reader.behind(&self.upstream))
                    .lend(|context| period.evaluate(context))
                {
                    Some(period) => RuleWait::Until(rt::now() + period),
                    None => RuleWait::Over,
                }
            }
            Wait::Body(body) => {
                let framing = view.response.map_or(wire::http::Framing::None, |head| head.framing);
                let behind = self.reply.message.reader.behind(&self.upstream);
                let mut coming = ExpectedBody::new(behind.framing_of(framing), body.least);
                // A malformed coding is reported when the body is forwarded.
                if coming.take(behind.data).is_err() || coming.is_over() {
                    return RuleWait::Over;
                }
                let large = self.session.generation().program.global.large_bufsize.filter(|_| body.large);
                RuleWait::Body { deadline: rt::now() + body.limit, coming, large }
            }
            Wait::Script(_) | Wait::Agent(_) => {
                actions::begin(self.session, wait).map_or(RuleWait::Over, RuleWait::Script)
            }
            // These are waits of requests.
            Wait::Hint(..) | Wait::Lookup(_) | Wait::Handshake | Wait::Decompressed(_) | Wait::Authorization(_) => {
                RuleWait::Over
            }
        }
    }

    /// Ready when the wait is over.
    fn wait(&mut self, cx: &mut Context<'_>, held: &mut RuleWait) -> Poll<WaitOutcome> {
        match held {
            RuleWait::Script(action) => self.poll_script(cx, &mut **action),
            RuleWait::Over => Poll::Ready(WaitOutcome::Goes),
            RuleWait::Turn => {
                *held = RuleWait::Over;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            RuleWait::Until(moment) if rt::now() >= *moment => Poll::Ready(WaitOutcome::Goes),
            RuleWait::Until(_) => Poll::Pending,
            RuleWait::Body { deadline, coming, large } => loop {
                let before = self.reply.message.reader.received().len();
                match self.reply.message.reader.poll_buffer(cx, &mut self.upstream, large) {
                    Poll::Ready(Some(read)) => {
                        self.state.borrow_mut().accounting.bytes.received += read as u64;
                        match coming.take(&self.reply.message.reader.received()[before..]) {
                            Ok(Some(progress)) if self.upstream.completes() => {
                                self.server_side.reads(rt::now(), progress);
                            }
                            Ok(_) => {}
                            Err(_) => return Poll::Ready(WaitOutcome::Goes),
                        }
                        if coming.is_over() {
                            return Poll::Ready(WaitOutcome::Goes);
                        }
                    }
                    Poll::Ready(None) => return Poll::Ready(WaitOutcome::Goes),
                    Poll::Pending if rt::now() >= *deadline => return Poll::Ready(WaitOutcome::Late),
                    Poll::Pending => return Poll::Pending,
                }
            },
        }
    }
}
