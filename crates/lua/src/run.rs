//! One run of a function of a script, from its call to its end: resumed as often as what it waits for is there, ended where
//! it takes too long. Must never wait with the state's lock held.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mlua::thread::ThreadStatus;
use mlua::{Function, IntoLua, Lua, MultiValue, Thread, Value};

use crate::lent::Lent;
use crate::machine::{Machine, describe, split_traceback};
use crate::shared::{Burst, Cut, LENT, Mark};
use crate::value::{Job, Plain};
use crate::{jobs, queue};

/// What the caller of a run makes of what the function asks.
pub(crate) enum Answer {
    /// It is not the caller's.
    Unknown,
    /// The pause returns these.
    Ready(Vec<Plain>),
    /// It is asked again when the caller's task is woken.
    Pending,
}

/// What asks are answered by.
pub(crate) type Asked<'a> = &'a mut dyn FnMut(&mut Context<'_>, &str, &[Value]) -> Answer;

enum State {
    /// Not begun: the function's arguments.
    New(Vec<Value>),
    /// It goes on once others had their turn.
    Turn,
    /// It waits for something outside.
    Waits(Job),
    /// It has asked the caller.
    Asks(String, Vec<Value>),
    /// It has ended.
    Over,
}

/// A run.
pub(crate) struct Run {
    machine: Arc<Machine>,
    thread: Thread,
    /// As messages name it: `function 'x'`.
    what: Arc<str>,
    limit: Option<Duration>,
    spent: Duration,
    yields: bool,
    /// The process starts: nothing is waited for, and no time is too long.
    starts: bool,
    state: State,
}

/// What one resumption came to.
enum ResumeResult {
    Ended(MultiValue),
    Paused,
    Asked(String, Vec<Value>),
    Done(MultiValue),
    Failed(String),
}

/// What converters are told that want to pause.
const CONVERTERS: &str = "yield functions like core.tcp() or core.sleep() are not allowed.";

impl Run {
    /// A run of that function.
    ///
    /// # Errors
    /// Lua's: there is no memory.
    pub(crate) fn new(
        machine: &Arc<Machine>,
        function: Function,
        arguments: Vec<Value>,
        (what, limit, yields): (impl Into<Arc<str>>, Option<Duration>, bool),
    ) -> Result<Self, String> {
        let what = what.into();
        let thread = machine.coroutine(function).map_err(|error| format!("Lua {what}: {error}"))?;
        let (machine, state) = (Arc::clone(machine), State::New(arguments));
        Ok(Self { machine, thread, what, limit, spent: Duration::ZERO, yields, starts: false, state })
    }

    /// It runs while the process starts.
    pub(crate) fn starting(&mut self) {
        self.starts = true;
    }

    /// Goes on. Ready with what the function returned, or with why it failed, as a sentence for the log.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        lent: Option<&dyn Lent>,
        asked: Asked<'_>,
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
                    // Nothing is waited for while the process starts.
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
                    // In HAProxy's words.
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

    /// Runs to the next pause, under the lock.
    fn resume(&mut self, arguments: MultiValue, lent: Option<&dyn Lent>) -> ResumeResult {
        let machine = Arc::clone(&self.machine);
        machine.with(|lua| {
            let begun = rt::clock::moment();
            let burst = machine.limits.burst.filter(|_| !self.starts).map(|burst| (begun + burst, Cut::Burst));
            let whole = self.limit.map(|limit| (begun + limit.saturating_sub(self.spent), Cut::Execution));
            let deadline = [burst, whole].into_iter().flatten().min_by_key(|(moment, _)| *moment);
            let pauses = self.yields && !self.starts && machine.limits.forced_yield.is_some();
            let thread = pauses.then(|| self.thread.clone());
            let burst = Burst { deadline, thread, may_block: self.yields || self.starts, cut: None };
            // The watchdog need not end the process for what is ended here.
            let (outer, before) = (machine.run(burst), rt::ends_at(deadline.map(|(moment, _)| moment)));
            let result = match lent {
                Some(lent) => LENT.set(lent, || self.thread.resume(arguments)),
                None => self.thread.resume(arguments),
            };
            let cut = machine.run(outer).cut;
            rt::ends_at(before);
            self.spent += rt::clock::moment().saturating_since(begun);
            match (result, cut) {
                (_, Some(Cut::Burst)) => ResumeResult::Failed(self.failure("burst timeout.")),
                (_, Some(Cut::Execution)) => ResumeResult::Failed(self.failure("execution timeout.")),
                (Ok(values), None) => self.sort(lua, values),
                (Err(error), None) => ResumeResult::Failed(self.explain(&error)),
            }
        })
    }

    /// What a pause or a return means.
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
        // HAProxy shows texts alone.
        let kind = if message.starts_with("table: ") || message.starts_with("(error object") {
            "unknown runtime error".to_owned()
        } else {
            format!("runtime error: {message}")
        };
        self.failure(&format!("[state-id {number}] {kind}{from}"))
    }
}
