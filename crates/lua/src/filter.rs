//! Filters of scripts: an object per stream whose functions process heads and payload. Must never hold more payload
//! than two buffers per direction, nor forward more of a body than its head announces.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Weak;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use base::slab::Key;
use conn::flow::{FilterOutput, make_output};
use engine::filter::{Event, Filter, FilterContext, HeadRefused, RulePosition, ScriptFilter};
use engine::script::StreamAccess;
use engine::service::registry::Services;
use engine::session::Session;
use engine::stream_state::StreamState;
use engine::worker::{Process, SharedStreamState};
use expression::sample::Direction;
use mlua::{MultiValue, Table, Value};
use policy::program::Filter as Planned;
use wire::http::Framing;

use crate::machine::Machine;
use crate::payload::{Handle, ROOM};
use crate::prelude::native;
use crate::run::{Answer, Run, RunTerms};
use crate::shared::{Mark, WakeTime};
use crate::{StateLocation, script_messages};

/// `filter.FLT_CFG_FL_HTX`.
const HTTP: i64 = 1;
/// Default waiting time of a filter.
const USUAL_WAIT: Duration = Duration::from_millis(10);
/// Maximum number of consecutive calls of a function for available payload before it yields.
const CALLS_IN_A_TURN: usize = 16;

/// Return values of the functions for `filter` lines, by state, proxy and index among its filters.
static PREPARED: Mutex<Option<FilterTables>> = Mutex::new(None);

type FilterTables = HashMap<(usize, usize, usize), Table>;

/// Registers a filter.
pub(crate) fn add(services: &mut Services, name: &str, home: StateLocation) -> bool {
    let short: Arc<str> = name.into();
    services.add_filter(
        name,
        Arc::new(move |session, state, position| {
            let machine = home.machine()?;
            let filter = Scripted::new(machine, &short, session, state, position)?;
            Some(Box::new(filter) as Box<dyn ScriptFilter>)
        }),
    )
}

/// Calls the functions of all filters with the arguments of their lines.
///
/// # Errors
/// The error of one of them.
pub(crate) fn prepare(machines: &[Arc<Machine>], process: &Process) -> Result<(), String> {
    let generation = process.generation();
    let mut prepared = HashMap::new();
    for proxy in generation.program.proxies.iter() {
        for (place, plan) in proxy.filters.list.iter().enumerate() {
            let Planned::Script(plan) = plan else { continue };
            for machine in machines {
                if machine.function(&format!("filter.{}", plan.name)).is_none() {
                    continue;
                }
                let arguments = machine.with(|lua| {
                    let words = lua.create_sequence_from(plan.arguments.iter().map(|word| &**word))?;
                    let arguments = [Value::String(lua.create_string(&*plan.name)?), Value::Table(words)];
                    Ok((native(lua, "prepare_filter")?, arguments.to_vec()))
                });
                let (function, arguments) = arguments.map_err(|error: mlua::Error| error.to_string())?;
                let made = crate::at_once(machine, function, arguments, false)?;
                if let Some(Value::Table(made)) = made.front() {
                    prepared.insert((machine.number, proxy.index, place), made.clone());
                }
            }
        }
    }
    *PREPARED.lock().unwrap_or_else(PoisonError::into_inner) = Some(prepared);
    Ok(())
}

/// Whether the class of a filter has the flag for HTTP streams.
fn sees_http(class: &Table) -> bool {
    class.get::<Option<i64>>("flags").ok().flatten().is_some_and(|flags| flags & HTTP != 0)
}

/// Progress at the start of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Before,
    /// Its function must be called again.
    Waits,
    Refused,
    Begun,
}

/// A direction.
struct DirectionState {
    payload: Handle,
    start: Start,
    /// It waits until this time.
    until: Option<Moment>,
    timer: Option<std::pin::Pin<Box<dyn Future<Output = ()>>>>,
    /// The function has been called at the end of the payload.
    told_end: bool,
    /// Bytes forwarded.
    sent: u64,
    /// The reason of a rejection.
    refusal: Option<HeadRefused>,
}

/// The filter of one stream.
struct Scripted {
    machine: Arc<Machine>,
    name: Arc<str>,
    object: Table,
    state: Weak<RefCell<StreamState>>,
    task: Option<Key>,
    frontend: usize,
    request: DirectionState,
    response: DirectionState,
}

impl DirectionState {
    fn new() -> Self {
        let (payload, start) = (Handle::default(), Start::Before);
        Self { payload, start, until: None, timer: None, told_end: false, sent: 0, refusal: None }
    }

    /// Whether it still waits.
    fn poll_wait(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(until) = self.until else { return false };
        let period = until.saturating_since(rt::clock::moment());
        let timer = self.timer.get_or_insert_with(|| Box::pin(rt::sleep(period)));
        if timer.as_mut().poll(cx).is_pending() {
            return true;
        }
        (self.until, self.timer) = (None, None);
        false
    }
}

impl Scripted {
    fn new(
        machine: Arc<Machine>,
        name: &Arc<str>,
        session: &Session,
        state: &SharedStreamState,
        position: RulePosition,
    ) -> Option<Self> {
        let key = (machine.number, position.proxy, position.index);
        let made = PREPARED.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&key).cloned()?;
        if session.is_http() && !sees_http(&made) {
            return None;
        }
        let task = state.try_borrow().ok().and_then(|state| state.info.task);
        let mut own = Self {
            object: made.clone(),
            machine,
            name: Arc::clone(name),
            state: std::rc::Rc::downgrade(state),
            task,
            frontend: session.frontend,
            request: DirectionState::new(),
            response: DirectionState::new(),
        };
        match own.run("new", Direction::Request, "new_filter", vec![Value::Table(made)]) {
            Ok(values) => own.object = values.front()?.as_table()?.clone(),
            // Payload must not pass without the filter.
            Err(_) => (own.request.start, own.response.start) = (Start::Refused, Start::Refused),
        }
        Some(own)
    }

    fn way(&mut self, direction: Direction) -> &mut DirectionState {
        match direction {
            Direction::Request => &mut self.request,
            Direction::Response => &mut self.response,
        }
    }

    /// Runs a native function. An error means that the message must not be forwarded.
    fn run(
        &mut self,
        callback: &str,
        direction: Direction,
        function: &str,
        arguments: Vec<Value>,
    ) -> Result<MultiValue, HeadRefused> {
        let what = format!("filter '{}' ", self.name);
        let (machine, state) = (Arc::clone(&self.machine), self.state.upgrade());
        let task = crate::here().zip(self.task).and_then(|(worker, key)| worker.task(key));
        let access = task.as_ref().zip(state.as_ref());
        let access = access.map(|(task, state)| StreamAccess::of_filter(task, state, direction));
        let lent = access.as_ref().map(|access| access as &dyn crate::stream_handle::StreamHandle);
        let run = machine.with(|lua| {
            lua.remove_app_data::<WakeTime>();
            let function = native(lua, function).map_err(|error| format!("Lua {what}: {error}"))?;
            Run::new(
                &machine,
                function,
                arguments,
                RunTerms { what: what.as_str().into(), limit: machine.limits.session, yields: false },
            )
        });
        let outcome = run.and_then(|mut run| {
            let mut cx = Context::from_waker(Waker::noop());
            match run.poll(&mut cx, lent, &mut |_, _, _| Answer::Unknown) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => Err(format!("Lua {what}: yield not allowed.")),
            }
        });
        outcome.or_else(|why| {
            let (said, goes_on) = self.explain(callback, &why);
            script_messages::failed(Some(self.frontend), &said);
            if goes_on { Ok(MultiValue::new()) } else { Err(HeadRefused::Refused) }
        })
    }

    /// Returns HAProxy's message about a failed function, and whether the message is forwarded nevertheless.
    fn explain(&self, callback: &str, why: &str) -> (String, bool) {
        let name = &self.name;
        if why.ends_with(": yield not allowed.") {
            let text = format!(
                "Lua filter '{name}': yield functions like core.tcp() or core.sleep() are not allowed from '{callback}' \
                 callback."
            );
            return (text, true);
        }
        for ending in ["burst timeout.", "execution timeout."] {
            if why.ends_with(&format!(": {ending}")) {
                return (format!("Lua filter '{name}' : '{callback}' callback {ending}"), true);
            }
        }
        (why.to_owned(), false)
    }

    /// Calls a function of the filter with its channel or its message; `None`: it returned nothing.
    fn call(&mut self, callback: &str, direction: Direction, http: bool) -> Result<Option<i64>, HeadRefused> {
        let payload = self.way(direction).payload.clone();
        let both = [self.request.payload.clone(), self.response.payload.clone()];
        let machine = Arc::clone(&self.machine);
        let arguments = machine.with(|lua| {
            let [request, response] = both;
            let side = if direction == Direction::Request { "req" } else { "res" };
            Ok(vec![
                Value::Table(self.object.clone()),
                Value::String(lua.create_string(callback)?),
                Value::String(lua.create_string(side)?),
                Value::UserData(lua.create_userdata(request)?),
                Value::UserData(lua.create_userdata(response)?),
                Value::Boolean(http),
            ])
        });
        let arguments = arguments.map_err(|_: mlua::Error| HeadRefused::Refused)?;
        payload.lock().is_open = callback.ends_with("_payload");
        let values = self.run(callback, direction, "filter_call", arguments);
        payload.lock().is_open = false;
        let period = machine.with(|lua| lua.remove_app_data::<WakeTime>()).map(|wake| wake.0);
        let values = values?;
        // `txn:done` returns the mark and the reply.
        let is_done = machine.with(|lua| match (values.front(), lua.app_data_ref::<Mark>()) {
            (Some(Value::Table(value)), Some(mark)) => value == &mark.0,
            _ => false,
        });
        if is_done {
            return Err(self.ended(values.get(1)));
        }
        let result = values.front().and_then(Value::as_i64);
        let waits = result == Some(0);
        let way = self.way(direction);
        (way.until, way.timer) = (None, None);
        if waits || period.is_some() {
            way.until = Some(rt::clock::moment() + period.unwrap_or(USUAL_WAIT).max(Duration::from_millis(1)));
        }
        Ok(result)
    }

    /// Ends the stream, with the reply that a function has passed to `txn:done`, if any.
    fn ended(&self, reply: Option<&Value>) -> HeadRefused {
        let reply = reply.and_then(Value::as_table);
        match reply.map(|reply| self.machine.with(|_| crate::reply::write(reply))).transpose() {
            Ok(reply) => HeadRefused::Ended(reply),
            Err(why) => {
                script_messages::failed(Some(self.frontend), &format!("Lua filter '{}' : {why}.", self.name));
                HeadRefused::Refused
            }
        }
    }

    fn start(&mut self, direction: Direction) {
        let start = match self.call("start_analyze", direction, false) {
            Ok(Some(0)) => Start::Waits,
            Ok(Some(..0)) => Start::Refused,
            Err(why) => {
                self.way(direction).refusal = Some(why);
                Start::Refused
            }
            Ok(_) => Start::Begun,
        };
        let way = self.way(direction);
        way.start = start;
        if start == Start::Begun {
            way.until = None;
        }
    }

    /// Returns the framing of a message's body.
    fn framing(&self, direction: Direction) -> Option<Framing> {
        let state = self.state.upgrade()?;
        let state = state.try_borrow().ok()?;
        Some(if direction == Direction::Request { state.request.framing } else { state.response.framing })
    }

    fn set_framing(&self, direction: Direction, framing: Framing) {
        let Some(state) = self.state.upgrade() else { return };
        let Ok(mut state) = state.try_borrow_mut() else { return };
        let state = &mut *state;
        let head = if direction == Direction::Request { &mut state.request } else { &mut state.response };
        head.framing = framing;
    }

    /// Stores the body length that the head announces.
    fn note_length(&mut self, direction: Direction) {
        let framing = self.framing(direction);
        let mut payload = self.way(direction).payload.lock();
        payload.announced = match framing {
            Some(Framing::Length(length)) => Some(length),
            _ => None,
        };
        payload.ended = matches!(framing, Some(Framing::None | Framing::Length(0)));
    }
}

impl Filter for Scripted {
    fn note(&mut self, context: &FilterContext, event: Event<'_>) {
        match event {
            Event::Opened(direction) if self.way(direction).start != Start::Refused => self.start(direction),
            Event::MessageEnded(direction) if context.http && self.way(direction).payload.lock().is_wanted => {
                self.way(direction).payload.lock().ended = true;
                let _ = self.call("http_end", direction, true);
            }
            Event::Closed(direction) if matches!(self.way(direction).start, Start::Waits | Start::Begun) => {
                let _ = self.call("end_analyze", direction, false);
            }
            Event::Restarted => {
                self.response = DirectionState::new();
            }
            _ => {}
        }
    }

    fn wants(&self, direction: Direction) -> bool {
        let way = if direction == Direction::Request { &self.request } else { &self.response };
        let payload = way.payload.lock();
        payload.is_wanted || !payload.data.is_empty() || !payload.out.is_empty()
    }

    fn body(
        &mut self,
        context: &FilterContext,
        direction: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> FilterOutput {
        let callback = if context.http { "http_payload" } else { "tcp_payload" };
        let handle = self.way(direction).payload.clone();
        make_output(output);
        let mut calls = 0;
        loop {
            let taken = self.way(direction).take_in(&mut handle.lock(), input, output, ended, calls == 0);
            if let Some(passed) = taken {
                return passed;
            }
            calls += 1;
            let before = handle.lock().data.len();
            let forwarded = match self.call(callback, direction, context.http) {
                Ok(None) => usize::MAX,
                Ok(Some(count)) => match usize::try_from(count) {
                    Ok(count) => count,
                    Err(_) => return FilterOutput::Refused,
                },
                Err(_) => return FilterOutput::Refused,
            };
            let mut payload = handle.lock();
            let moved = payload.forward(forwarded) > 0 || payload.data.len() != before || !payload.out.is_empty();
            let way = self.way(direction);
            if !payload.data.is_empty() {
                // It is called again for the rest.
                way.told_end = false;
                if !way.give(&mut payload, output) {
                    return FilterOutput::Again;
                }
                match way.until {
                    Some(until) if !moved => return FilterOutput::Until(until),
                    None if !moved && payload.data.len() < ROOM && !payload.ended => return FilterOutput::Through,
                    _ if !moved => return FilterOutput::Until(rt::clock::moment() + USUAL_WAIT),
                    _ if calls >= CALLS_IN_A_TURN => return FilterOutput::Again,
                    _ => {}
                }
            }
        }
    }
}

impl ScriptFilter for Scripted {
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        _: &FilterContext,
        direction: Direction,
    ) -> Poll<Result<(), HeadRefused>> {
        loop {
            if self.way(direction).poll_wait(cx) {
                return Poll::Pending;
            }
            match self.way(direction).start {
                Start::Refused => {
                    let why = self.way(direction).refusal.take();
                    return Poll::Ready(Err(why.unwrap_or(HeadRefused::Refused)));
                }
                Start::Waits => {
                    self.start(direction);
                    continue;
                }
                Start::Before | Start::Begun => {}
            }
            self.note_length(direction);
            let ends = self.way(direction).payload.lock().ended;
            let bodiless = self.framing(direction).filter(|_| ends);
            match self.call("http_headers", direction, true) {
                Ok(Some(0)) => continue,
                Ok(Some(..0)) => return Poll::Ready(Err(HeadRefused::Refused)),
                Err(why) => return Poll::Ready(Err(why)),
                Ok(_) => {
                    self.way(direction).until = None;
                    // The message has no body, even if the script has set a length.
                    bodiless.into_iter().for_each(|framing| self.set_framing(direction, framing));
                    self.note_length(direction);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl DirectionState {
    /// Takes input. Returns how the turn ends if the function is not to be called.
    fn take_in(
        &mut self,
        payload: &mut crate::payload::Payload,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
        is_first: bool,
    ) -> Option<FilterOutput> {
        if !self.give(payload, output) {
            return Some(FilterOutput::Again);
        }
        let room = ROOM.saturating_sub(payload.data.len()).min(input.len());
        payload.data.extend_from_slice(&input.data()[..room]);
        input.consume(room);
        let ends = ended && input.is_empty() && !payload.ended;
        payload.ended = ended && input.is_empty();
        if self.start == Start::Refused {
            return Some(FilterOutput::Refused);
        }
        // It is called again when more payload arrives, or when its waiting time is over.
        let until = self.until.filter(|until| *until > rt::clock::moment());
        if let Some(until) = until.filter(|_| is_first && room == 0 && !ends && !payload.data.is_empty()) {
            return Some(FilterOutput::Until(until));
        }
        if !payload.is_wanted {
            let all = payload.data.len();
            payload.forward(all);
        }
        if payload.data.is_empty() && (self.told_end || !payload.ended || !payload.is_wanted) {
            if !self.give(payload, output) {
                return Some(FilterOutput::Again);
            }
            let short = payload.announced.is_some_and(|length| length > self.sent);
            // The body is shorter than announced: the receiver must see an error.
            return Some(if payload.ended && short { FilterOutput::Refused } else { FilterOutput::Through });
        }
        self.told_end = payload.ended;
        None
    }

    /// Moves forwarded payload to the output, not more than the head announces. False: the output is full.
    fn give(&mut self, payload: &mut crate::payload::Payload, output: &mut Buffer) -> bool {
        if let Some(length) = payload.announced {
            // Bytes beyond the announced length would be parsed as another message.
            let left = usize::try_from(length.saturating_sub(self.sent)).unwrap_or(usize::MAX);
            payload.out.truncate(left);
        }
        let count = payload.out.len().min(output.room());
        if count > 0 && output.push(&payload.out[..count]) {
            payload.out.drain(..count);
            self.sent += count as u64;
        }
        payload.out.is_empty()
    }
}
