//! Fetches, converters and actions registered by scripts, as rows of the keyword tables. Must never run a function that
//! the configuration does not use.

use std::sync::{Arc, OnceLock};
use std::task::{self, Poll, Waker};

use config::keyword::rule::{
    HTTP_AFTER_RESPONSE, HTTP_REQUEST, HTTP_RESPONSE, RuleSets, TCP_REQUEST_CONTENT, TCP_RESPONSE_CONTENT,
};
use engine::script::{Action, StreamAccess, Verdict};
use engine::service::registry::Services;
use expression::convert::Converter;
use expression::fetch::Fetch;
use expression::sample::{Context, Places, Type, Value as Sample};
use expression::{Arguments, Kind as Parameter, Signature};
use mlua::{Function, MultiValue, Value};
use policy::rule::{Action as Ruled, RegisteredAction, RuleError, ScriptCall, Wait};

use crate::machine::Machine;
use crate::prelude::native;
use crate::registrations::Kind;
use crate::run::{Answer, Run, RunTerms};
use crate::shared::{Mark, WakeTime};
use crate::stream_handle::{Evaluation, StreamHandle, fit, is_http};
use crate::{StateLocation, script_messages};

/// Maximum number of arguments of a fetch or a converter.
const MOST_ARGUMENTS: usize = 5;

/// A function registered under a key, in each state that has it.
struct RegisteredFunction {
    key: String,
    /// By the number of the state.
    known: Box<[OnceLock<Function>]>,
}

impl RegisteredFunction {
    fn new(key: String, home: &StateLocation) -> Self {
        let states = match home {
            StateLocation::Shared(_) => 1,
            StateLocation::Threads(machines) => machines.len() + 1,
        };
        Self { key, known: (0..states).map(|_| OnceLock::new()).collect() }
    }

    fn in_state(&self, machine: &Machine) -> Option<Function> {
        let known = self.known.get(machine.number)?;
        match known.get() {
            Some(function) => Some(function.clone()),
            None => machine.function(&self.key).map(|function| known.get_or_init(|| function).clone()),
        }
    }
}

/// Runs a function that may not yield, and returns its values. The arguments are created under the state's lock.
fn run_at_once(
    machine: &Arc<Machine>,
    what: &Arc<str>,
    registered: &RegisteredFunction,
    lent: &dyn StreamHandle,
    arguments: impl FnOnce(&mlua::Lua, Function) -> mlua::Result<(Function, Vec<Value>)>,
) -> Result<MultiValue, String> {
    machine.with(|lua| {
        let function =
            registered.in_state(machine).ok_or_else(|| format!("Lua {what}: not registered in this thread."))?;
        let made = arguments(lua, function).map_err(|error| format!("Lua {what}: {error}"))?;
        let terms = RunTerms { what: Arc::clone(what), limit: machine.limits.session, yields: false };
        let mut run = Run::new(machine, made.0, made.1, terms)?;
        let mut cx = task::Context::from_waker(Waker::noop());
        match run.poll(&mut cx, Some(lent), &mut |_, _, _| Answer::Unknown) {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Err(format!("Lua {what}: yield not allowed.")),
        }
    })
}

/// Returns the function that calls a function with its transaction, and its first arguments.
fn with_transaction(
    lua: &mlua::Lua,
    machine: &Machine,
    function: Function,
    lent: &dyn StreamHandle,
) -> mlua::Result<(Function, Vec<Value>)> {
    let caller = match machine.caller() {
        Some(caller) => caller.clone(),
        None => machine.keep_caller(native(lua, "with_transaction")?),
    };
    Ok((caller, vec![Value::Function(function), Value::Boolean(is_http(lent))]))
}

fn written(lua: &mlua::Lua, arguments: &Arguments, all: &mut Vec<Value>) -> mlua::Result<()> {
    for text in (0..MOST_ARGUMENTS).map_while(|index| arguments.text(index)) {
        all.push(Value::String(lua.create_string(text)?));
    }
    Ok(())
}

/// Converts a return value to a text sample.
fn to_text<'a>(context: &Context<'a>, values: &MultiValue) -> Option<Sample<'a>> {
    // No value means no sample; `nil` is false.
    fit(context, crate::value::to_sample(values.front()?, context)?, Type::Str)
}

fn parameters() -> Signature {
    Signature::owned(0, vec![Parameter::Str; MOST_ARGUMENTS])
}

/// Registers a fetch.
pub(crate) fn add_fetch(services: &mut Services, name: &str, home: StateLocation) -> bool {
    let registered = RegisteredFunction::new(format!("fetch.{name}"), &home);
    let what: Arc<str> = format!("sample-fetch '{name}'").into();
    let eval = move |context: &Context<'_>, arguments: &Arguments| -> Option<MultiValue> {
        let machine = home.machine()?;
        let lent = Evaluation(context);
        let made = run_at_once(&machine, &what, &registered, &lent, |lua, function| {
            let (caller, mut all) = with_transaction(lua, &machine, function, &lent)?;
            written(lua, arguments, &mut all)?;
            Ok((caller, all))
        });
        made.map_err(|why| script_messages::failed(context.frontend, &why)).ok()
    };
    let row =
        Fetch::owned(format!("lua.{name}"), parameters(), Type::Str, Places::EVERYWHERE, move |context, arguments| {
            let values = eval(context, arguments)?;
            to_text(context, &values)
        });
    services.registry_mut().vocabulary.add_fetch(row).is_ok()
}

/// Registers a converter.
pub(crate) fn add_converter(services: &mut Services, name: &str, home: StateLocation) -> bool {
    let registered = RegisteredFunction::new(format!("converter.{name}"), &home);
    let what: Arc<str> = format!("converter '{name}'").into();
    let eval = move |context: &Context<'_>, value: Sample<'_>, arguments: &Arguments| -> Option<MultiValue> {
        let machine = home.machine()?;
        let lent = Evaluation(context);
        let made = run_at_once(&machine, &what, &registered, &lent, |lua, function| {
            let input = value.bytes().unwrap_or_default();
            let mut all = vec![Value::String(lua.create_string(input)?)];
            written(lua, arguments, &mut all)?;
            Ok((function, all))
        });
        made.map_err(|why| script_messages::failed(context.frontend, &why)).ok()
    };
    let name = format!("lua.{name}");
    let row = Converter::owned(name, parameters(), Type::Str, Type::Str, move |context, value, arguments| {
        let values = eval(context, value, arguments)?;
        to_text(context, &values)
    });
    services.registry_mut().vocabulary.add_converter(row).is_ok()
}

fn sets(names: &[String]) -> RuleSets {
    let set = |name: &String| match name.as_str() {
        "tcp-req" => TCP_REQUEST_CONTENT,
        "tcp-res" => TCP_RESPONSE_CONTENT,
        "http-req" => HTTP_REQUEST,
        "http-res" => HTTP_RESPONSE,
        _ => HTTP_AFTER_RESPONSE,
    };
    names.iter().map(set).fold(0, |all, set| all | set)
}

/// Registers an action.
pub(crate) fn add_action(services: &mut Services, name: &str, kind: &Kind, home: StateLocation) -> bool {
    let Kind::Action(places, count) = kind else { return false };
    let (count, short, key, sets) = (*count, name.to_owned(), kind.key(name), sets(places));
    let number = services.add_action(Arc::new(move |arguments| {
        let (home, name, key) = (home.clone(), short.clone(), key.clone());
        Box::new(Acting { home, name, key, arguments, run: None, pause: None })
    }));
    let row = RegisteredAction::new(format!("lua.{name}"), sets, move |words, _| {
        let mut arguments = Vec::new();
        for _ in 0..count {
            let word = words.take().ok_or_else(|| RuleError::new(format!("expect {count} arguments")))?;
            arguments.push(word.text.clone().into_boxed_str());
        }
        Ok(Ruled::Wait(Wait::Script(ScriptCall { number, arguments: arguments.into() })))
    });
    services.registry_mut().add_action(row).is_ok()
}

/// A call of an action.
struct Acting {
    home: StateLocation,
    name: String,
    /// The key of its function.
    key: String,
    arguments: Arc<[Box<str>]>,
    run: Option<Run>,
    /// It has returned `act.YIELD`, and is called again after this time.
    pause: Option<std::pin::Pin<Box<dyn Future<Output = ()>>>>,
}

impl Acting {
    fn begin(&self, stream: &StreamAccess<'_>) -> Result<Run, String> {
        let what = format!("function '{}'", self.name);
        let missing = || format!("Lua {what}: not registered in this thread.");
        let machine = self.home.machine().ok_or_else(missing)?;
        let function = machine.function(&self.key).ok_or_else(missing)?;
        machine.with(|lua| {
            let arguments = with_transaction(lua, &machine, function, stream).and_then(|(caller, mut all)| {
                for argument in self.arguments.iter() {
                    all.push(Value::String(lua.create_string(&**argument)?));
                }
                Ok((caller, all))
            });
            let (caller, arguments) = arguments.map_err(|error| format!("Lua {what}: {error}"))?;
            lua.remove_app_data::<WakeTime>();
            let terms =
                RunTerms { what: what.as_str().into(), limit: machine.limits.session, yields: stream.may_wait() };
            Run::new(&machine, caller, arguments, terms)
        })
    }

    /// Interprets an action's return value; `None`: it is called again.
    fn conclude(&mut self, values: &MultiValue, stream: &StreamAccess<'_>) -> Option<Verdict> {
        let machine = self.home.machine()?;
        // `txn:done` returns the mark and the reply.
        if let Some(Value::Table(_)) = values.front()
            && machine.with(|lua| lua.app_data_ref::<Mark>().map(|mark| mark.0.clone()))
                == values.front().and_then(Value::as_table).cloned()
        {
            let reply = values.get(1).and_then(Value::as_table);
            let is_http = reply.is_some() && StreamHandle::lend(stream, &mut |_| {});
            return Some(match reply.filter(|_| is_http).map(|reply| machine.with(|_| crate::reply::write(reply))) {
                None => Verdict::Abort,
                Some(Ok((status, text))) => Verdict::Reply(status, text),
                Some(Err(why)) => {
                    script_messages::failed(Some(stream.proxy()), &format!("Lua function '{}': {why}.", self.name));
                    Verdict::Fail
                }
            });
        }
        Some(match values.front().and_then(Value::as_i64) {
            // `act.STOP` and `act.DONE`: the message is forwarded.
            Some(1 | 4) => Verdict::Stop,
            Some(2) if !stream.may_wait() => {
                let why = format!("Lua function '{}': unable to yield, aborted Lua execution.", self.name);
                script_messages::failed(Some(stream.proxy()), &why);
                Verdict::Continue
            }
            Some(2) => {
                let period = machine.with(|lua| lua.remove_app_data::<WakeTime>()).map(|wake| wake.0);
                // Without a time it is called again after yielding.
                let period = period.unwrap_or(std::time::Duration::from_millis(1));
                self.pause = Some(Box::pin(rt::sleep(period)));
                return None;
            }
            Some(3) => Verdict::Fail,
            Some(6) => Verdict::Abort,
            Some(5) => Verdict::Deny,
            Some(7) => Verdict::Invalid,
            _ => Verdict::Continue,
        })
    }
}

impl Action for Acting {
    fn poll(&mut self, cx: &mut task::Context<'_>, stream: &StreamAccess<'_>) -> Poll<Verdict> {
        loop {
            if let Some(pause) = &mut self.pause {
                if pause.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.pause = None;
            }
            let outcome = match &mut self.run {
                Some(run) => match run.poll(cx, Some(stream), &mut |_, _, _| Answer::Unknown) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(outcome) => outcome,
                },
                None => match self.begin(stream) {
                    Ok(run) => {
                        self.run = Some(run);
                        continue;
                    }
                    Err(why) => Err(why),
                },
            };
            self.run = None;
            match outcome {
                Ok(values) => match self.conclude(&values, stream) {
                    Some(verdict) => return Poll::Ready(verdict),
                    None => continue,
                },
                Err(why) => {
                    script_messages::failed(Some(stream.proxy()), &why);
                    return Poll::Ready(Verdict::Continue);
                }
            }
        }
    }
}
