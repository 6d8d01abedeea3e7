//! Runs the rules of a proxy over a message: evaluates conditions, changes heads, sets variables, and returns the action that
//! ends the evaluation. Must never send a response itself.

mod after;
pub mod cost;
mod effect;
mod measured;
mod progress;
pub mod request;
mod wait;

pub use after::{has_rules_after, run_after};
pub use progress::{Progress, Stop};

use base::Moment;
use conn::buffered_body::BufferedBody;
use expression::Expression;
use expression::condition::Verdict;
use expression::log_format::LogFormat;
use expression::sample::{self, Direction, Value};
use policy::rule::{Action, Edit, Expected, Final, NameLookup, Rule, Unfit, Wait};
use wire::http::Head;

use crate::session::Session;
use crate::stream::cache::{self, Help};
use crate::stream::exchange::{filter, mirror};
use crate::stream::record::metrics;
use crate::stream::record::tracking::{self, TrackResult};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::permission;
use crate::stream_state::StreamState;
use effect::{Effect, perform};

/// The request target is invalid for a rule.
static MALFORMED: Final = Final::Fault(400);
/// A changed head exceeds its size limit (`strict-mode on`).
static UNFIT: Final = Final::Fault(500);
/// The evaluation of a rule exceeds its cost limit.
static EXHAUSTED: Final = Final::Exhausted;

/// Result of evaluating up to a rule.
enum RuleStep<'r> {
    /// The end of the list, or a rule that lets the message pass.
    End,
    /// A rule needs data that may still be received.
    Unknown,
    /// A rule ended the evaluation.
    Final(&'r Final),
    /// A rule has an effect on the stream.
    Effect(Effect),
    /// A rule changes the head. Its text has been rendered, unless it is constant.
    Edit(&'r Edit),
    /// A rule makes the message wait.
    Wait(&'r Wait),
    /// A rule concerns a cache.
    Cache(&'r Action),
    /// A rule concerns the whole message. The text has been rendered.
    Body(&'r Action),
    /// A rule expects a header before the first bytes.
    Expect(Expected),
    /// The limit of rules in a row, or the task's time slice, is used up.
    Yield,
}

/// A running evaluation of a list of rules.
struct RuleRun<'s, 'r> {
    session: &'s Session,
    rules: &'r [Rule],
    progress: Progress,
    /// Rendered text; memory of the worker, taken on first use.
    text: Vec<u8>,
    /// The evaluation waits for missing data.
    waits: bool,
    /// Effects last until the stream ends, else until its session ends.
    of_stream: bool,
    /// Rules that may still be evaluated in a row (`tune.max-rules-at-once`); `None`: not limited.
    left: Option<u32>,
    /// At least one rule was evaluated.
    has_begun: bool,
    /// The rule whose change is being applied, and its start, while rules are measured.
    open: Option<(usize, Moment)>,
}

impl Drop for RuleRun<'_, '_> {
    fn drop(&mut self) {
        if self.text.capacity() > 0 {
            self.session.worker.keep_text(std::mem::take(&mut self.text));
        }
    }
}

impl<'s, 'r> RuleRun<'s, 'r> {
    fn new(session: &'s Session, rules: &'r [Rule]) -> Self {
        let progress = Progress::default();
        let text = Vec::new();
        Self { session, rules, progress, text, waits: false, of_stream: true, left: None, has_begun: false, open: None }
    }

    /// Continues an evaluation that yields, from its position.
    fn resume(session: &'s Session, rules: &'r [Rule], progress: Progress) -> Self {
        let mut course = Self::new(session, rules);
        course.progress = progress;
        course.left = Some(session.generation().program.global.max_rules_at_once);
        course
    }

    /// Counts a rule that is about to be evaluated. Returns true if the task has to yield first.
    #[inline]
    fn is_to_yield(&mut self) -> bool {
        let Some(left) = &mut self.left else { return false };
        // At least one rule is evaluated each time.
        if *left == 0 || self.has_begun && rt::has_used_slice() {
            return true;
        }
        *left -= 1;
        self.has_begun = true;
        false
    }

    /// Returns the empty text buffer.
    fn text(&mut self) -> &mut Vec<u8> {
        if self.text.capacity() == 0 {
            self.text = self.session.worker.take_text();
        }
        self.text.clear();
        &mut self.text
    }

    /// Continues until a rule needs the caller to act.
    fn advance(&mut self, view: &EvalContext<'_>) -> RuleStep<'r> {
        loop {
            match self.evaluate(view) {
                RuleStep::Effect(effect) => perform(view, effect, self.of_stream),
                RuleStep::Final(ending) => {
                    self.note(view.state);
                    return if matches!(ending, Final::Allow) { RuleStep::End } else { RuleStep::Final(ending) };
                }
                step => return step,
            }
        }
    }

    /// Continues until a rule has an effect other than on variables and lists.
    fn evaluate(&mut self, view: &EvalContext<'_>) -> RuleStep<'r> {
        if self.session.worker.rule_costs.is_on() {
            return self.evaluate_measured(view);
        }
        self.track_clients(view);
        if self.progress.next >= self.rules.len() {
            return RuleStep::End;
        }
        view.lend(|context| self.walk::<false>(context, view))
    }

    /// Returns the next step if it needs no evaluation.
    #[inline]
    fn next_known_step(&mut self) -> Option<RuleStep<'r>> {
        if self.session.worker.rule_costs.is_on() {
            return None;
        }
        let Some(rule) = self.rules.get(self.progress.next) else { return Some(RuleStep::End) };
        let step = known_step(rule)?;
        if self.is_to_yield() {
            return Some(RuleStep::Yield);
        }
        self.progress.next += 1;
        Some(step)
    }

    /// Executes unconditional rules that track the client's address: they need no evaluation.
    fn track_clients(&mut self, view: &EvalContext<'_>) {
        while let Some(Rule { condition: None, action: Action::Track(track), .. }) = self.rules.get(self.progress.next)
            && tracking::begin_of_client(view, track, self.of_stream)
        {
            self.progress.next += 1;
        }
    }

    /// Records that the last executed rule has ended the evaluation.
    fn note(&self, state: &StreamState) {
        if self.of_stream {
            let rule = self.progress.next.checked_sub(1).and_then(|last| self.rules.get(last));
            state.rules.last_rule.set(rule.map(|rule| rule.place));
        }
    }

    /// Evaluates rules while they change only variables and lists.
    fn walk<const MEASURED: bool>(&mut self, context: &sample::Context<'_>, view: &EvalContext<'_>) -> RuleStep<'r> {
        let rules = self.rules;
        while let Some(rule) = rules.get(self.progress.next) {
            if self.is_to_yield() {
                return RuleStep::Yield;
            }
            let (at, since) = (self.progress.next, MEASURED.then(rt::read_clock));
            let verdict = rule.condition.as_ref().map_or(Verdict::Yes, |condition| condition.evaluate(context));
            if verdict == Verdict::Unknown && self.waits && !context.bytes.complete {
                if let Some(since) = since {
                    self.measure(at, since, false, None);
                }
                return RuleStep::Unknown;
            }
            self.progress.next += 1;
            let step = match verdict {
                Verdict::Yes if !context.exhausted.get() => self.take(&rule.action, context, view),
                _ => None,
            };
            if let Some(since) = since {
                self.measure(at, since, verdict == Verdict::Yes, step.as_ref());
            }
            if !context.spend(1) {
                return RuleStep::Final(&EXHAUSTED);
            }
            if let Some(step) = step {
                if matches!(step, RuleStep::Unknown) {
                    self.progress.next -= 1;
                }
                return step;
            }
        }
        RuleStep::End
    }

    /// Applies the change of the last executed rule to a head.
    fn apply(&self, edit: &Edit, head: &mut Head) -> Result<(), Unfit> {
        let constant = edit.format().and_then(LogFormat::constant);
        edit.apply(head, constant.unwrap_or(&self.text), self.room())
    }

    /// Returns the maximum size of a changed head.
    fn room(&self) -> usize {
        self.session.generation().program.global.bufsize
    }

    /// Reduces the head's size limit by the body bytes that were received.
    fn share(&self, head: &mut Head, behind: BufferedBody<'_>) {
        let global = &self.session.generation().program.global;
        head.share(behind.data.len(), global.bufsize, global.maxrewrite);
    }

    /// Returns the end of a message after a failed change of its head; `None`: the change is skipped.
    #[cold]
    fn judge(&self, state: &StreamState, unfit: Unfit) -> Option<&'static Final> {
        match unfit {
            Unfit::Malformed => Some(&MALFORMED),
            Unfit::Exhausted => Some(&EXHAUSTED),
            Unfit::Full => {
                metrics::failed_rewrite(self.session, state);
                (!self.progress.lenient).then_some(&UNFIT)
            }
        }
    }

    /// Executes an action, or returns the step that its caller has to perform.
    #[inline(never)]
    fn take(
        &mut self,
        action: &'r Action,
        context: &sample::Context<'_>,
        view: &EvalContext<'_>,
    ) -> Option<RuleStep<'r>> {
        match action {
            Action::Edit(edit) => {
                let text = self.text();
                if let Some(format) = edit.format().filter(|format| format.constant().is_none()) {
                    format.render_in(context, text);
                }
                if let Some(expression) = edit.expression() {
                    let value = expression.evaluate(context)?;
                    text.extend_from_slice(value.bytes()?);
                }
                Some(RuleStep::Edit(edit))
            }
            Action::SetVariable(..) | Action::FormatVariable(..) | Action::UnsetVariable(_) => {
                self.change_variable(action, context);
                None
            }
            Action::ChangeList(change) => {
                change.perform(context, self.text());
                None
            }
            Action::Capture { of_request, index, expression } => {
                capture(context, *of_request, *index, expression);
                None
            }
            Action::SetStrict(strict) => {
                self.progress.lenient = !strict;
                None
            }
            Action::Track(track) => {
                let begun = tracking::begin(view, context, track, self.of_stream);
                (begun == TrackResult::Later && self.waits && !context.bytes.complete).then_some(RuleStep::Unknown)
            }
            Action::ChangeTracked(change) => {
                tracking::change(view, context, change);
                None
            }
            Action::Nothing => None,
            Action::UseCache { .. } | Action::StoreInCache(_) | Action::PurgeCache(_) => Some(RuleStep::Cache(action)),
            Action::ReplaceBody(_) | Action::Mirror(_) => Some(self.body(action, context)),
            Action::Wait(wait) => Some(RuleStep::Wait(wait)),
            Action::Expect(expected) => Some(RuleStep::Expect(*expected)),
            Action::Final(ending) => match &**ending {
                Final::Redirect(redirect) if redirect.is_void(context) => None,
                ending => Some(RuleStep::Final(ending)),
            },
            Action::SetLogLevel(_)
            | Action::Log { .. }
            | Action::OtelGroup(_)
            | Action::SetTimeout(..)
            | Action::DisableRetry
            | Action::SetPackets(..)
            | Action::SetRetries(_)
            | Action::SetPriorityClass(_)
            | Action::SetPriorityOffset(_)
            | Action::LimitBandwidth(_)
            | Action::Attach(_)
            | Action::SetEnd(..) => Effect::of(self.session, action, context).map(RuleStep::Effect),
        }
    }

    /// Sets or unsets a variable.
    #[inline]
    fn change_variable(&mut self, action: &Action, context: &sample::Context<'_>) {
        match action {
            Action::SetVariable(variable, condition, expression) => {
                let value = expression.evaluate(context);
                condition.set(context, variable, value);
            }
            Action::FormatVariable(variable, condition, format) => {
                let text = self.text();
                format.render_in(context, text);
                condition.set(context, variable, context.copy(context.fitting(text)).map(Value::Str));
            }
            Action::UnsetVariable(variable) => context.variables.unset(variable),
            _ => {}
        }
    }

    /// Returns the step of a rule that concerns the whole message, with its text rendered.
    fn body(&mut self, action: &'r Action, context: &sample::Context<'_>) -> RuleStep<'r> {
        if let Action::ReplaceBody(replacement) = action {
            replacement.format.render_in(context, self.text());
        }
        RuleStep::Body(action)
    }
}

/// Returns the step of a rule that needs no evaluation: it has no condition, and its action is constant.
#[inline]
fn known_step(rule: &Rule) -> Option<RuleStep<'_>> {
    if rule.condition.is_some() {
        return None;
    }
    match &rule.action {
        Action::UseCache { .. } | Action::StoreInCache(_) | Action::PurgeCache(_) => {
            Some(RuleStep::Cache(&rule.action))
        }
        Action::Edit(edit) if edit.expression().is_none() => match edit.format() {
            Some(format) if format.constant().is_none() => None,
            _ => Some(RuleStep::Edit(edit)),
        },
        _ => None,
    }
}

/// Stores a sample in a capture slot of the request or the response.
fn capture(context: &sample::Context<'_>, of_request: bool, index: usize, expression: &Expression) {
    if let Some((plan, captures)) = context.capture_plan().zip(context.captures)
        && let Some(text) = expression.evaluate(context).and_then(|value| context.as_text(value))
    {
        captures.borrow_mut().set(plan, of_request, index, text);
    }
}

/// Result of `tcp-request content` or `tcp-response content` rules.
pub enum Content<'r> {
    /// The bytes pass.
    Passes,
    /// A rule ended the evaluation and does not let the bytes pass.
    Ended(&'r Final),
    /// The rules need data that may still be received.
    Undecided,
    /// A name has to be resolved first.
    Asks(&'r NameLookup),
    /// A script action or an SPOE agent has to run first.
    Runs(&'r Wait),
    /// The task has to yield.
    Yields,
}

/// Runs content rules, on bytes or on a request before the HTTP rules, from their position: the start, or after the rule that
/// waited.
pub fn run_content<'r>(view: &EvalContext<'_>, rules: &'r [Rule], progress: &mut Progress) -> Content<'r> {
    let mut course = RuleRun::resume(view.session, rules, *progress);
    course.waits = true;
    view.state.rules.waiting_rule.set(None);
    loop {
        match course.advance(view) {
            RuleStep::End => return Content::Passes,
            RuleStep::Final(ending) => return Content::Ended(ending),
            RuleStep::Unknown => {
                view.state.rules.waiting_rule.set(rules.get(course.progress.next).map(|rule| rule.place));
                return Content::Undecided;
            }
            RuleStep::Yield => {
                *progress = course.progress;
                return Content::Yields;
            }
            RuleStep::Wait(Wait::Lookup(lookup)) => {
                view.state.rules.waiting_rule.set(course.progress.last_of(rules));
                *progress = course.progress;
                return Content::Asks(lookup);
            }
            RuleStep::Wait(wait @ (Wait::Script(_) | Wait::Agent(_))) => {
                view.state.rules.waiting_rule.set(course.progress.last_of(rules));
                *progress = course.progress;
                return Content::Runs(wait);
            }
            // Not possible in these rules.
            RuleStep::Edit(_)
            | RuleStep::Wait(_)
            | RuleStep::Expect(_)
            | RuleStep::Effect(_)
            | RuleStep::Cache(_)
            | RuleStep::Body(_) => {}
        }
    }
}

/// Runs the rules on a connection that was just accepted, or on its session. Returns the action that ends it; `None`: it passes.
/// Calls `expect` for headers that have to be received first.
pub fn run_connection<'r>(session: &Session, rules: &'r [Rule], expect: &mut dyn FnMut(Expected)) -> Option<&'r Final> {
    session.worker.with_blank_state(|state| {
        (state.timings.start, state.info.start_date) = (session.accepted, session.accept_date());
        let view = EvalContext::connection(session, state);
        let mut course = RuleRun::new(session, rules);
        course.of_stream = false;
        loop {
            match course.advance(&view) {
                RuleStep::End | RuleStep::Unknown => break None,
                RuleStep::Final(ending) => break Some(ending),
                RuleStep::Expect(expected) => expect(expected),
                // Not possible in these rules.
                RuleStep::Edit(_)
                | RuleStep::Wait(_)
                | RuleStep::Effect(_)
                | RuleStep::Yield
                | RuleStep::Cache(_)
                | RuleStep::Body(_) => {}
            }
        }
    })
}

/// Runs `http-request` rules from their position. `behind`: the bytes received after the head.
pub fn run_request<'r>(
    session: &Session,
    state: &mut StreamState,
    behind: BufferedBody<'_>,
    rules: &'r [Rule],
    progress: &mut Progress,
) -> Stop<'r> {
    let mut course = RuleRun::resume(session, rules, *progress);
    loop {
        let known = course.next_known_step();
        match known.unwrap_or_else(|| course.advance(&EvalContext::request(session, state).behind(behind))) {
            RuleStep::End | RuleStep::Unknown => return Stop::End,
            RuleStep::Final(ending) => return Stop::Final(ending),
            RuleStep::Wait(Wait::Authorization(rule))
                if rule.caching.is_some() && permission::is_known(session, state, rule, course.text()) => {}
            RuleStep::Wait(wait) => {
                *progress = course.progress;
                return Stop::Wait(wait);
            }
            RuleStep::Yield => {
                *progress = course.progress;
                return Stop::Yield;
            }
            RuleStep::Edit(edit) => {
                keep_line(state, edit);
                course.share(&mut state.request, behind);
                let done = course.apply(edit, &mut state.request);
                if let Some(ending) = done.err().and_then(|unfit| course.judge(state, unfit)) {
                    return Stop::Final(ending);
                }
            }
            RuleStep::Cache(action) => {
                let help = cache::request(session, state, action);
                if help != Help::None {
                    course.note(state);
                    *progress = course.progress;
                    return Stop::Cache(help);
                }
            }
            RuleStep::Body(action) => change_request(session, state, action, &course.text),
            // Not possible in these rules.
            RuleStep::Expect(_) | RuleStep::Effect(_) => {}
        }
    }
}

/// Runs `http-response` rules over a response head and the bytes received after it, from their position.
pub fn run_response<'r>(
    session: &Session,
    state: &mut StreamState,
    head: &mut Head,
    behind: BufferedBody<'_>,
    rules: &'r [Rule],
    progress: &mut Progress,
) -> Stop<'r> {
    let mut course = RuleRun::resume(session, rules, *progress);
    let stop = loop {
        match finish_response(&mut course, state, head, behind) {
            Stop::Store(index) => cache::store(session, state, head, index),
            stop => break stop,
        }
    };
    *progress = course.progress;
    stop
}

/// Continues response rules until the caller has to act.
fn finish_response<'r>(
    course: &mut RuleRun<'_, 'r>,
    state: &StreamState,
    head: &mut Head,
    behind: BufferedBody<'_>,
) -> Stop<'r> {
    let session = course.session;
    loop {
        let known = course.next_known_step();
        match known.unwrap_or_else(|| course.advance(&EvalContext::response(session, state, head).behind(behind))) {
            RuleStep::End | RuleStep::Unknown => return Stop::End,
            RuleStep::Final(ending) => return Stop::Final(ending),
            RuleStep::Wait(wait) => return Stop::Wait(wait),
            RuleStep::Yield => return Stop::Yield,
            RuleStep::Edit(edit) => {
                course.share(head, behind);
                let done = course.apply(edit, head);
                if let Some(ending) = done.err().and_then(|unfit| course.judge(state, unfit)) {
                    return Stop::Final(ending);
                }
            }
            RuleStep::Body(action) => change_response(state, action, &course.text),
            RuleStep::Cache(Action::StoreInCache(index)) => return Stop::Store(*index),
            // Not possible in these rules.
            RuleStep::Cache(_) | RuleStep::Expect(_) | RuleStep::Effect(_) => {}
        }
    }
}

/// Executes a rule that concerns the whole request.
fn change_request(session: &Session, state: &mut StreamState, action: &Action, text: &[u8]) {
    match action {
        Action::Mirror(copied) => mirror::request(session, state, *copied),
        Action::ReplaceBody(replacement) => filter::replace_request_body(session, state, &replacement.regex, text),
        _ => {}
    }
}

/// Executes a rule that concerns the whole response.
fn change_response(state: &StreamState, action: &Action, text: &[u8]) {
    if let (Action::ReplaceBody(replacement), Some(filters)) = (action, &state.filters) {
        filter::replace_body(filters, Direction::Response, &replacement.regex, text, state.wants_head_alone());
    }
}

/// Keeps the original request line for the log, before a rule changes it.
fn keep_line(state: &StreamState, edit: &Edit) {
    if edit.is_about_the_line(&state.request) {
        let line = || (state.request.method().into(), state.request.target().into());
        state.captures.borrow_mut().line.get_or_insert_with(line);
    }
}
