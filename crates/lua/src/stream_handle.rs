//! Access of functions to the stream that they run for: samples, variables, heads, the log. Must never keep a reference
//! to the stream.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use engine::script::{Order, StreamAccess};
use engine::service::streamless_context::lend_applet;
use expression::pattern::Regex;
use expression::sample::{Context, Direction, EvalPlace, Type, Value as Sample, cast};
use expression::variable::{Store, Variable};
use expression::{Conversion, Expression};
use mlua::{IntoLuaMulti, Lua, MultiValue, Value};
use policy::program::{Program, ProgramContext as _};
use policy::rule::{Change, Unfit};
use wire::http::{Framing, Head};

use crate::names::Running;
use crate::script_messages;
use crate::value::{Plain, of_sample, to_sample};

/// A stream, or the view that an evaluation has of it.
pub(crate) trait StreamHandle {
    /// Calls `with` with the context of expressions; false: not available.
    fn lend(&self, with: &mut dyn FnMut(&Context<'_>)) -> bool;

    /// Changes a head; `None`: not available.
    fn change(&self, of_request: bool, change: &Change<'_>) -> Option<Result<(), Unfit>>;

    /// Changes the framing of a message's body; false: not possible.
    fn set_framing(&self, of_request: bool, framing: Framing) -> bool {
        let _ = (of_request, framing);
        false
    }

    /// Executes an order; false: not available.
    fn order(&self, order: Order) -> bool;
}

impl StreamHandle for StreamAccess<'_> {
    fn lend(&self, with: &mut dyn FnMut(&Context<'_>)) -> bool {
        StreamAccess::lend(self, with).is_some()
    }

    fn change(&self, of_request: bool, change: &Change<'_>) -> Option<Result<(), Unfit>> {
        StreamAccess::change(self, of_request, change)
    }

    fn set_framing(&self, of_request: bool, framing: Framing) -> bool {
        StreamAccess::set_framing(self, of_request, framing)
    }

    fn order(&self, order: Order) -> bool {
        StreamAccess::order(self, order);
        true
    }
}

/// The context of an evaluation: it is read-only.
pub(crate) struct Evaluation<'c, 'a>(pub(crate) &'c Context<'a>);

impl StreamHandle for Evaluation<'_, '_> {
    fn lend(&self, with: &mut dyn FnMut(&Context<'_>)) -> bool {
        with(self.0);
        true
    }

    fn change(&self, _: bool, _: &Change<'_>) -> Option<Result<(), Unfit>> {
        None
    }

    fn order(&self, _: Order) -> bool {
        false
    }
}

/// The process, for functions without a stream. It has its own transaction variables.
#[derive(Default)]
pub(crate) struct ProcessHandle(RefCell<Store>);

impl StreamHandle for ProcessHandle {
    fn lend(&self, with: &mut dyn FnMut(&Context<'_>)) -> bool {
        let Some(worker) = crate::here() else { return false };
        lend_applet(&worker, &worker.generation(), "GLOBAL", Some(&self.0), |context| with(context));
        true
    }

    fn change(&self, _: bool, _: &Change<'_>) -> Option<Result<(), Unfit>> {
        None
    }

    fn order(&self, _: Order) -> bool {
        false
    }
}

/// Cached expressions of scripts.
#[derive(Default)]
struct ExpressionCache {
    /// Address of the program that they were parsed for.
    program: usize,
    fetches: HashMap<String, Result<Arc<Expression>, String>>,
    converters: HashMap<(String, Type), Result<Arc<Conversion>, String>>,
}

/// Maximum number of cached expressions per worker.
const MOST_EXPRESSIONS: usize = 4_096;

thread_local! {
    static ASKED: RefCell<ExpressionCache> = RefCell::default();
}

fn with_asked<T>(program: &Program, with: impl FnOnce(&mut ExpressionCache) -> T) -> T {
    ASKED.with_borrow_mut(|asked| {
        let address = std::ptr::from_ref(program) as usize;
        if asked.program != address || asked.fetches.len() + asked.converters.len() >= MOST_EXPRESSIONS {
            *asked = ExpressionCache { program: address, ..ExpressionCache::default() };
        }
        with(asked)
    })
}

/// Formats a call: `name("a","b")`.
fn call(name: &str, arguments: &[Value]) -> Result<String, String> {
    let mut text = name.to_owned();
    let last = arguments.iter().rposition(|argument| !argument.is_nil());
    let Some(last) = last else { return Ok(text) };
    for (index, argument) in arguments[..=last].iter().enumerate() {
        text.push_str(if index == 0 { "(\"" } else { "\",\"" });
        let argument = match argument {
            Value::Nil => String::new(),
            Value::String(bytes) => {
                let Ok(argument) = bytes.to_str() else { return Err("an argument is no UTF-8".to_owned()) };
                argument.to_owned()
            }
            Value::Integer(number) => number.to_string(),
            Value::Number(number) => (*number as i64).to_string(),
            Value::Boolean(flag) => u8::from(*flag).to_string(),
            _ => return Err("unsupported argument type".to_owned()),
        };
        for letter in argument.chars() {
            if matches!(letter, '"' | '\\') {
                text.push('\\');
            }
            text.push(letter);
        }
    }
    text.push_str("\")");
    Ok(text)
}

/// Returns the message about invalid arguments, without the name in front.
fn wrong_arguments(message: &str) -> String {
    let why = message.rsplit(" : ").next().unwrap_or(message).trim_end_matches('.');
    format!("error in arguments: {why}")
}

/// Executes a request: `(name, arguments...)`. Returns the result, and an error message.
pub(crate) fn dispatch(
    lua: &Lua,
    lent: &dyn StreamHandle,
    arguments: &[Value],
    keeps_booleans: bool,
) -> mlua::Result<MultiValue> {
    let name = text(arguments.first());
    let rest = arguments.get(1..).unwrap_or_default();
    let answer = match name.as_str() {
        "get_var" => get_variable(lent, rest, keeps_booleans),
        "set_var" | "unset_var" => set_variable(lent, rest, name == "set_var"),
        "headers" => Ok(headers(lent, &text(rest.first()) == "req")),
        "change" => change(lua, lent, rest),
        "order" => order(lent, rest),
        "channel" => channel(lent, rest),
        "start_line" => Ok(start_line(lent, &text(rest.first()) == "req")),
        "framing" => Ok(framing(lent, rest)),
        "priv" => return keep(lent, rest),
        "request" => Ok(request(lent)),
        "log" => {
            log(lent, rest);
            Ok(Plain::Nil)
        }
        "is_http" => Ok(Plain::Bool(is_http(lent))),
        _ => Err(format!("'{name}' is not supported")),
    };
    self::answer(lua, answer)
}

/// Returns a result and an error message as two values; the second is omitted if there is no error.
pub(crate) fn answer(lua: &Lua, answer: Result<Plain, String>) -> mlua::Result<MultiValue> {
    match answer {
        Ok(value) => value.into_lua_multi(lua),
        Err(error) => (Value::Nil, error).into_lua_multi(lua),
    }
}

/// Evaluates a fetch or a converter: `(name, as_text, arguments...)`.
pub(crate) fn evaluate(
    lent: &dyn StreamHandle,
    is_fetch: bool,
    arguments: &[Value],
    keeps_booleans: bool,
) -> Result<Plain, String> {
    if is_fetch { fetch(lent, arguments, keeps_booleans) } else { convert(lent, arguments, keeps_booleans) }
}

pub(crate) fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_string).map(|text| text.to_string_lossy()).unwrap_or_default()
}

/// `(name, as_text, arguments...)`.
fn fetch(lent: &dyn StreamHandle, rest: &[Value], keeps_booleans: bool) -> Result<Plain, String> {
    let as_text = matches!(rest.get(1), Some(Value::Boolean(true)));
    // A fetch without arguments is found by its name.
    let alone = rest.first().filter(|_| rest.len() == 2).and_then(Value::as_string).and_then(|name| name.to_str().ok());
    let called = match alone {
        Some(_) => String::new(),
        None => call(&text(rest.first()), rest.get(2..).unwrap_or_default())?,
    };
    let written: &str = alone.as_ref().map_or(&called, |name| name);
    let mut answer = Err("no stream is at hand".to_owned());
    lent.lend(&mut |context| {
        answer = (|| {
            let program = context.program().ok_or("the configuration is not read yet")?;
            let expression = with_asked(program, |asked| {
                if let Some(known) = asked.fetches.get(written) {
                    return known.clone();
                }
                let names = Running::new(program, context.frontend);
                let read = Expression::parse_all(written, place(context), &names);
                let read = read.map(Arc::new).map_err(|error| wrong_arguments(&error.message));
                asked.fetches.insert(written.to_owned(), read.clone());
                read
            })?;
            Ok(show(context, expression.evaluate(context), as_text, keeps_booleans))
        })();
    });
    answer
}

fn place(context: &Context<'_>) -> EvalPlace {
    if context.direction == Direction::Request { EvalPlace::FrontRequestHead } else { EvalPlace::BackResponseHead }
}

fn show<'a>(context: &Context<'a>, sample: Option<Sample<'a>>, as_text: bool, keeps_booleans: bool) -> Plain {
    match sample {
        Some(sample) if as_text => Plain::Text(context.as_text(sample).unwrap_or_default().to_vec()),
        Some(sample) => of_sample(sample, keeps_booleans),
        None if as_text => Plain::Text(Vec::new()),
        None => Plain::Nil,
    }
}

/// `(name, as_text, input, arguments...)`.
fn convert(lent: &dyn StreamHandle, rest: &[Value], keeps_booleans: bool) -> Result<Plain, String> {
    let (name, as_text) = (text(rest.first()), rest.get(1) == Some(&Value::Boolean(true)));
    let written = call(&name, rest.get(3..).unwrap_or_default())?;
    let input = rest.get(2).cloned().unwrap_or(Value::Nil);
    let mut answer = Err("no stream is at hand".to_owned());
    lent.lend(&mut |context| {
        answer = (|| {
            let program = context.program().ok_or("the configuration is not read yet")?;
            let value = to_sample(&input, context).ok_or("the input is too long")?;
            let conversion = with_asked(program, |asked| {
                let key = (written.clone(), value.kind());
                if let Some(known) = asked.converters.get(&key) {
                    return known.clone();
                }
                let names = Running::new(program, context.frontend);
                let read = Conversion::parse(&written, value.kind(), place(context), &names);
                let read = read.map(Arc::new).map_err(|error| wrong_arguments(&error.message));
                asked.converters.insert(key, read.clone());
                read
            })?;
            Ok(show(context, conversion.convert(context, value), as_text, keeps_booleans))
        })();
    });
    answer
}

fn get_variable(lent: &dyn StreamHandle, rest: &[Value], keeps_booleans: bool) -> Result<Plain, String> {
    let mut answer = Plain::Nil;
    // An invalid name is not a variable.
    let Ok(variable) = Variable::parse(&text(rest.first())) else { return Ok(answer) };
    lent.lend(&mut |context| {
        let shown = context.variables.lend(&variable, |value| show(context, value, false, keeps_booleans));
        answer = shown.unwrap_or(Plain::Nil);
    });
    Ok(answer)
}

/// `(name, value, only_if_it_exists)`.
fn set_variable(lent: &dyn StreamHandle, rest: &[Value], sets: bool) -> Result<Plain, String> {
    let Ok(variable) = Variable::parse(&text(rest.first())) else { return Ok(Plain::Bool(false)) };
    let value = rest.get(1).cloned().unwrap_or(Value::Nil);
    let only_known = rest.get(2) == Some(&Value::Boolean(true));
    let mut done = false;
    lent.lend(&mut |context| {
        if !sets {
            context.variables.unset(&variable);
            done = true;
        } else if !only_known || is_known(context, &variable) {
            // A variable can store any length, a sample at most a buffer.
            done = match &value {
                Value::String(text) => {
                    context.variables.set(&variable, expression::sample::Value::Str(&text.as_bytes()))
                }
                other => to_sample(other, context).is_some_and(|sample| context.variables.set(&variable, sample)),
            };
        }
    });
    Ok(Plain::Bool(done))
}

/// Whether the configuration names a variable, or the variable is set.
fn is_known(context: &Context<'_>, variable: &Variable) -> bool {
    let is_named = || context.program().is_some_and(|program| program.names.text(variable.name).is_some());
    context.variables.is_set(variable) || is_named()
}

/// The contents of a table.
type Pairs = Vec<(Plain, Plain)>;

/// Returns all fields of a head: `{name = {[0] = value, ...}}`.
pub(crate) fn fields(head: &Head) -> Plain {
    let mut rows: Vec<(Vec<u8>, Pairs)> = Vec::new();
    for (name, value) in head.fields() {
        let name = name.to_ascii_lowercase();
        let row = match rows.iter_mut().find(|row| row.0 == name) {
            Some(row) => row,
            None => {
                rows.push((name, Vec::new()));
                let last = rows.len() - 1;
                &mut rows[last]
            }
        };
        let index = row.1.len() as i64;
        row.1.push((Plain::Int(index), Plain::Text(value.to_vec())));
    }
    Plain::Table(rows.into_iter().map(|(name, values)| (Plain::Text(name), Plain::Table(values))).collect())
}

fn headers(lent: &dyn StreamHandle, of_request: bool) -> Plain {
    let mut answer = Plain::Nil;
    lent.lend(&mut |context| {
        let head = if of_request { context.request } else { context.response };
        answer = head.map_or(Plain::Nil, fields);
    });
    answer
}

/// `(of_request, kind, texts...)`.
fn change(lua: &Lua, lent: &dyn StreamHandle, rest: &[Value]) -> Result<Plain, String> {
    let (of_request, kind) = (text(rest.first()) == "req", text(rest.get(1)));
    let bytes = |index: usize| {
        let value = rest.get(index).cloned().unwrap_or(Value::Nil);
        lua.coerce_string(value).ok().flatten().map(|text| text.as_bytes().to_vec()).unwrap_or_default()
    };
    let (first, second, third) = (bytes(2), bytes(3), bytes(4));
    let name = first.to_ascii_lowercase();
    let regex = || Regex::new(&String::from_utf8_lossy(&second), false);
    let made;
    let change = match kind.as_str() {
        "add" => Change::Add(&name, &second),
        "set" => Change::Set(&name, &second),
        "del" => Change::Delete(&name),
        "rep" => {
            made = regex()?;
            Change::Replace(&name, &made, &third)
        }
        "rep_value" => {
            made = regex()?;
            Change::ReplaceParts(&name, &made, &third)
        }
        "method" => Change::Method(&first),
        "path" => Change::Path(&first),
        "query" => Change::Query(&first),
        "uri" => Change::Uri(&first),
        _ => {
            let status = rest.get(2).and_then(Value::as_i64).and_then(|status| u16::try_from(status).ok());
            let reason = Some(&second[..]).filter(|_| rest.get(3).is_some_and(|reason| !reason.is_nil()));
            Change::Status(status.unwrap_or(0), reason)
        }
    };
    match lent.change(of_request, &change) {
        None => Err("the message cannot be changed here".to_owned()),
        Some(Ok(())) => Ok(Plain::Bool(true)),
        Some(Err(Unfit::Malformed)) => Err("the message would be malformed".to_owned()),
        Some(Err(Unfit::Full)) => Ok(Plain::Bool(false)),
        Some(Err(Unfit::Exhausted)) => Err("the regular expression takes too many steps".to_owned()),
    }
}

/// `(side, name, offset, length)`: reads data of the session, as seen by an action.
fn channel(lent: &dyn StreamHandle, rest: &[Value]) -> Result<Plain, String> {
    let of_request = text(rest.first()) == "req";
    let number = |index: usize| rest.get(index).and_then(Value::as_i64);
    let mut answer = Ok(Plain::Nil);
    lent.lend(&mut |context| {
        let is_own = of_request == (context.direction == Direction::Request);
        let data = if is_own { context.bytes.data } else { b"" };
        let may_come = !is_own || !context.bytes.complete;
        answer = Ok(match text(rest.get(1)).as_str() {
            "input" => Plain::Int(i64::try_from(data.len()).unwrap_or(i64::MAX)),
            "full" => Plain::Bool(context.program().is_some_and(|program| data.len() >= program.global.bufsize)),
            "may_recv" => Plain::Bool(may_come),
            _ if data.is_empty() && !may_come => Plain::Nil,
            name => match crate::payload::part(data.len(), number(2), number(3), true) {
                Err(why) => {
                    answer = Err(why.to_owned());
                    return;
                }
                Ok((start, length)) => {
                    let found = &data[start..start + length];
                    let end = found.iter().position(|byte| *byte == b'\n').filter(|_| name == "line");
                    Plain::Text(found[..end.map_or(found.len(), |end| end + 1)].to_vec())
                }
            },
        });
    });
    answer
}

/// Returns the start line of a head.
fn start_line(lent: &dyn StreamHandle, of_request: bool) -> Plain {
    let mut answer = Plain::Nil;
    lent.lend(&mut |context| {
        let head = if of_request { context.request } else { context.response };
        let Some(head) = head else { return };
        let version = Plain::Text([&b"HTTP/"[..], head.version_text().trim_ascii()].concat());
        let version = match version {
            Plain::Text(text) if text.starts_with(b"HTTP/HTTP/") => Plain::Text(text[5..].to_vec()),
            other => other,
        };
        let row = |name: &str, value: Plain| (Plain::from(name), value);
        answer = Plain::Table(match of_request {
            true => vec![
                row("method", Plain::Text(head.method().to_vec())),
                row("uri", Plain::Text(head.target().to_vec())),
                row("version", version),
            ],
            false => vec![
                row("version", version),
                row("code", Plain::Text(head.status().to_string().into_bytes())),
                row("reason", Plain::Text(head.reason().to_vec())),
            ],
        });
    });
    answer
}

/// `(side, length)`: a number, or `chunked`.
fn framing(lent: &dyn StreamHandle, rest: &[Value]) -> Plain {
    let framing = match rest.get(1).and_then(Value::as_i64).map(u64::try_from) {
        Some(Ok(length)) => Framing::Length(length),
        _ => Framing::Chunked,
    };
    Plain::Bool(lent.set_framing(text(rest.first()) == "req", framing))
}

/// `(kind, number)`.
fn order(lent: &dyn StreamHandle, rest: &[Value]) -> Result<Plain, String> {
    let number = rest.get(1).and_then(Value::as_i64).unwrap_or(0);
    let order = match text(rest.first()).as_str() {
        "loglevel" => Order::LogLevel(script_messages::level(number)),
        "class" => Order::Class(number),
        "offset" => Order::Offset(number),
        "mark" => Order::Mark(number),
        _ => Order::ServiceClass(number),
    };
    if lent.order(order) { Ok(Plain::Nil) } else { Err("not available in this context".to_owned()) }
}

/// Stores a value for the stream, or returns the stored one: `("set", value)` or `("get")`. Each state has its own.
fn keep(lent: &dyn StreamHandle, rest: &[Value]) -> mlua::Result<MultiValue> {
    let sets = text(rest.first()) == "set";
    let owner = rest.get(1).and_then(Value::as_i64).unwrap_or(0);
    let mut found = Value::Nil;
    lent.lend(&mut |context| {
        let Some(cell) = context.probes.kept_by_scripts() else { return };
        let held = cell.take().and_then(|held| held.downcast::<StreamValues>().ok());
        let mut held = held.unwrap_or_default();
        if sets {
            held.0.retain(|(number, _)| *number != owner);
            held.0.push((owner, rest.get(2).cloned().unwrap_or(Value::Nil)));
        } else if let Some((_, value)) = held.0.iter().find(|(number, _)| *number == owner) {
            found = value.clone();
        }
        cell.set(Some(held));
    });
    Ok([found].into_iter().collect())
}

/// Values stored by scripts for a stream, by state.
#[derive(Default)]
struct StreamValues(Vec<(i64, Value)>);

/// Returns method, version, path and query of the request, for services.
fn request(lent: &dyn StreamHandle) -> Plain {
    let mut answer = Plain::Nil;
    lent.lend(&mut |context| {
        answer = context.request.map_or(Plain::Nil, request_parts);
    });
    answer
}

/// Returns the parts of a request that a service has as attributes.
pub(crate) fn request_parts(head: &Head) -> Plain {
    let target = head.target();
    let path = wire::http::target::path(target).map_or(&b"/"[..], |start| &target[start..]);
    let mut parts = path.splitn(2, |byte| *byte == b'?');
    let (path, query) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let version = format!("HTTP/{}", String::from_utf8_lossy(head.version_text()).trim_start_matches("HTTP/"));
    let length = match head.framing {
        wire::http::Framing::Length(length) => i64::try_from(length).unwrap_or(i64::MAX),
        _ => 0,
    };
    let row = |name: &str, value: Plain| (Plain::from(name), value);
    Plain::Table(vec![
        row("method", Plain::Text(head.method().to_vec())),
        row("version", Plain::Text(version.into_bytes())),
        row("path", Plain::Text(path.to_vec())),
        row("qs", Plain::Text(query.to_vec())),
        row("length", Plain::Int(length)),
        row("headers", fields(head)),
    ])
}

/// `(level, text)`: logs to the loggers of the stream's frontend.
fn log(lent: &dyn StreamHandle, rest: &[Value]) {
    let mut frontend = None;
    lent.lend(&mut |context| frontend = context.frontend);
    script_messages::log(frontend, rest.first().and_then(Value::as_i64).unwrap_or(6), &text(rest.get(1)));
}

pub(crate) fn is_http(lent: &dyn StreamHandle) -> bool {
    let mut http = false;
    lent.lend(&mut |context| {
        http = match (context.program, context.frontend) {
            (Some(program), Some(frontend)) => program.is_http(frontend),
            _ => context.request.is_some(),
        };
    });
    http
}

/// Casts a sample to the input type of an expression's next step.
pub(crate) fn fit<'a>(context: &Context<'a>, sample: Sample<'a>, wanted: Type) -> Option<Sample<'a>> {
    cast(sample.kind(), wanted).and_then(|cast| cast(context, sample))
}
