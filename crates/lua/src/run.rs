//! A call of a script's function: resumed whenever what it waits for is available, aborted when it takes too long. Must
//! never wait while the state's lock is held.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mlua::thread::ThreadStatus;
use mlua::{Function, IntoLua, Lua, MultiValue, Thread, Value};

use crate::machine::{Machine, describe, split_traceback};
use crate::shared::{Burst, LENT, Mark, TimeoutKind};
use crate::stream_handle::StreamHandle;
use crate::value::{Job, Plain};
use crate::{jobs, queue};

/// The caller's answer to a request of the function.
pub(crate) enum Answer {
    /// The request is not handled by the caller.
    Unknown,
    /// The yield returns these values.
    Ready(Vec<Plain>),
    /// The request is repeated when the caller's task is woken.
    Pending,
}

/// Handles requests of a function.
pub(crate) type CallHandler<'a> = &'a mut dyn FnMut(&mut Context<'_>, &str, &[Value]) -> Answer;

enum State {
    /// Not started; the function's arguments.
    New(Vec<Value>),
    /// It is resumed after other tasks have run.
    Turn,
    /// It waits for a job.
    Waits(Job),
    /// It has sent a request to the caller.
    Asks(String, Vec<Value>),
    /// It has ended.
    Over,
}

/// The name of a call and its limits.
pub(crate) struct RunTerms {
    /// The name in messages: `function 'x'`.
    pub(crate) what: Arc<str>,
    /// Maximum execution time.
    pub(crate) limit: Option<Duration>,
    /// It may wait.
    pub(crate) yields: bool,
}

/// A call of a function.
pub(crate) struct Run {
    machine: Arc<Machine>,
    thread: Thread,
    /// The name in messages: `function 'x'`.
    what: Arc<str>,
    limit: Option<Duration>,
    spent: Duration,
    yields: bool,
    /// Called during the start: it cannot wait, and has no time limits.
    starts: bool,
    state: State,
}

/// The result of a resumption.
enum ResumeResult {
    Ended(MultiValue),
    Paused,
    Asked(String, Vec<Value>),
    Done(MultiValue),
    Failed(String),
}

/// HAProxy's message for converters that yield.
const CONVERTERS: &str = "yield functions like core.tcp() or core.sleep() are not allowed.";

impl Run {
    /// Creates a call of a function.
    ///
    /// # Errors
    /// Lua's error: out of memory.
    pub(crate) fn new(
        machine: &Arc<Machine>,
        function: Function,
        arguments: Vec<Value>,
        terms: RunTerms,
    ) -> Result<Self, String> {
        let RunTerms { what, limit, yields } = terms;
        let thread = machine.coroutine(function).map_err(|error| format!("Lua {what}: {error}"))?;
        let (machine, state) = (Arc::clone(machine), State::New(arguments));
        Ok(Self { machine, thread, what, limit, spent: Duration::ZERO, yields, starts: false, state })
    }

    /// Marks it as called during the start.
    pub(crate) fn starting(&mut self) {
        self.starts = true;
    }

    /// Resumes the function. Ready with its return values, or with an error message for the log.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        lent: Option<&dyn StreamHandle>,
        asked: CallHandler<'_>,
    ) -> Poll<Result<MultiValue, String>> {
        loop {
            let arguments = match std::mem::replace(&mut self.state, State::Over) {
                State::New(arguments) => arguments.into_iter().collect(),
                State::Turn => MultiValue::new(),
                State::Waits(mut job) => match job.as_mut().poll(cx) {
                    Poll::Ready(values) => self.to_lua(values),
                    Poll::Pending => {
                        self.state = State::Waits(job);
                        return Poll::Pending;
                    }
                },
                State::Asks(name, values) => match asked(cx, &name, &values) {
                    Answer::Ready(values) => self.to_lua(values),
                    Answer::Pending => {
                        self.state = State::Asks(name, values);
                        return Poll::Pending;
                    }
                    // During the start, waits return at once.
                    Answer::Unknown if self.starts => match name.as_str() {
                        "sleep" | "wait" => MultiValue::new(),
                        _ => return Poll::Ready(Err(self.failure("yield not allowed."))),
                    },
                    Answer::Unknown => match jobs::begin(&self.machine, &name, &values) {
                        Some(job) => {
                            self.state = State::Waits(job);
                            continue;
                        }
                        None => return Poll::Ready(Err(self.failure("yield not allowed."))),
                    },
                },
                State::Over => return Poll::Ready(Ok(MultiValue::new())),
            };
            let result = self.resume(arguments, lent);
            queue::wake();
            match result {
                ResumeResult::Ended(values) | ResumeResult::Done(values) => return Poll::Ready(Ok(values)),
                ResumeResult::Failed(why) => return Poll::Ready(Err(why)),
                ResumeResult::Paused | ResumeResult::Asked(..) if !self.yields => {
                    // HAProxy's message.
                    let is_converter = self.what.starts_with("converter ");
                    let why = if is_converter { CONVERTERS } else { "yield not allowed." };
                    return Poll::Ready(Err(self.failure(why)));
                }
                ResumeResult::Paused => {
                    self.state = State::Turn;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                ResumeResult::Asked(name, values) => self.state = State::Asks(name, values),
            }
        }
    }

    fn to_lua(&self, values: Vec<Plain>) -> MultiValue {
        let made: mlua::Result<MultiValue> =
            self.machine.with(|lua| values.into_iter().map(|value| value.into_lua(lua)).collect());
        made.unwrap_or_default()
    }

    fn failure(&self, why: &str) -> String {
        format!("Lua {}: {why}", self.what)
    }

    /// Runs to the next yield, under the lock.
    fn resume(&mut self, arguments: MultiValue, lent: Option<&dyn StreamHandle>) -> ResumeResult {
        let machine = Arc::clone(&self.machine);
        machine.with(|lua| {
            let begun = rt::clock::moment();
            let burst = machine.limits.burst.filter(|_| !self.starts).map(|burst| (begun + burst, TimeoutKind::Burst));
            let whole = self.limit.map(|limit| (begun + limit.saturating_sub(self.spent), TimeoutKind::Execution));
            let deadline = [burst, whole].into_iter().flatten().min_by_key(|(moment, _)| *moment);
            let pauses = self.yields && !self.starts && machine.limits.forced_yield.is_some();
            let thread = pauses.then(|| self.thread.clone());
            let burst = Burst { deadline, thread, may_block: self.yields || self.starts, cut: None };
            // This run is aborted here, so the watchdog must not end the process for it.
            let (outer, before) = (machine.run(burst), rt::ends_at(deadline.map(|(moment, _)| moment)));
            let result = match lent {
                Some(lent) => LENT.set(lent, || self.thread.resume(arguments)),
                None => self.thread.resume(arguments),
            };
            let cut = machine.run(outer).cut;
            rt::ends_at(before);
            self.spent += rt::clock::moment().saturating_since(begun);
            match (result, cut) {
                (_, Some(TimeoutKind::Burst)) => ResumeResult::Failed(self.failure("burst timeout.")),
                (_, Some(TimeoutKind::Execution)) => ResumeResult::Failed(self.failure("execution timeout.")),
                (Ok(values), None) => self.sort(lua, values),
                (Err(error), None) => ResumeResult::Failed(self.explain(&error)),
            }
        })
    }

    /// Interprets a yield or a return.
    fn sort(&self, lua: &Lua, mut values: MultiValue) -> ResumeResult {
        if self.thread.status() != ThreadStatus::Resumable {
            self.machine.keep(&self.thread);
            return ResumeResult::Ended(values);
        }
        let is_ask = match (values.front(), lua.app_data_ref::<Mark>()) {
            (Some(Value::Table(first)), Some(mark)) => *first == mark.0,
            _ => false,
        };
        if !is_ask {
            return ResumeResult::Paused;
        }
        values.pop_front();
        match values.pop_front() {
            Some(Value::String(name)) => match &*name.to_string_lossy() {
                "done" => ResumeResult::Done(values),
                "yield" => ResumeResult::Paused,
                name => ResumeResult::Asked(name.to_owned(), values.into_iter().collect()),
            },
            _ => ResumeResult::Paused,
        }
    }

    fn explain(&self, error: &mlua::Error) -> String {
        let text = describe(error);
        if text == "out of memory error." {
            return self.failure(&text);
        }
        let (message, places) = split_traceback(&text);
        if self.starts {
            return format!("Lua runtime error: {message}");
        }
        let number = self.machine.number;
        let from = if places.is_empty() { ".".to_owned() } else { format!(" from {places}.") };
        // HAProxy shows only text messages.
        let kind = if message.starts_with("table: ") || message.starts_with("(error object") {
            "unknown runtime error".to_owned()
        } else {
            format!("runtime error: {message}")
        };
        self.failure(&format!("[state-id {number}] {kind}{from}"))
    }
}
