//! HAProxy's classes in a state: the parts written in Lua, and the native functions that they call. Must never run a
//! script.

use std::sync::PoisonError;
use std::time::Duration;

use engine::service::streamless_context::lend_process;
use engine::worker::Worker;
use expression::convert::date;
use expression::pattern::{Network, Places, Regex, Steps};
use expression::sample::{Context, Value as Sample};
use expression::variable::{Variable, Variables};
use mlua::{Function, IntoLua, Lua, MultiValue, Table, UserData, Value, Variadic};
use policy::compile::lend_early;

use crate::registrations::{Kind, Registrations};
use crate::shared::{CLASSES, Functions, LENT, Mark, WakeTime};
use crate::socket::Handle;
use crate::stream_handle::{answer, dispatch, evaluate, text};
use crate::value::{Plain, of_sample};

/// The parts of the classes that are written in Lua, in the order of loading.
const PARTS: &[&str] = &[
    include_str!("prelude/core.lua"),
    include_str!("prelude/applet.lua"),
    include_str!("prelude/network.lua"),
    include_str!("prelude/filter.lua"),
];

/// A compiled regular expression.
struct Pattern(Regex);

impl UserData for Pattern {}

/// A parsed address.
struct Address(Network);

impl UserData for Address {}

/// Opens the classes.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua, number: usize, keeps_booleans: bool) -> mlua::Result<()> {
    let (native, mark) = (lua.create_table()?, lua.create_table()?);
    lua.set_app_data(Mark(mark.clone()));
    native.set("thread", number)?;
    asking(lua, &native, keeps_booleans)?;
    registering(lua, &native)?;
    telling(lua, &native, keeps_booleans)?;
    texts(lua, &native)?;
    addresses(lua, &native)?;
    crate::queue::open(lua, &native)?;
    native.set("payload", lua.create_function(crate::payload::call)?)?;
    native.set("socket", lua.create_function(|lua, ()| lua.create_userdata(Handle::new()))?)?;
    for part in PARTS {
        lua.load(*part).set_name(format!("={CLASSES}")).call::<()>((native.clone(), mark.clone()))?;
    }
    lua.set_named_registry_value("native", native)
}

/// Returns a native function of the classes.
pub(crate) fn native(lua: &Lua, name: &str) -> mlua::Result<Function> {
    lua.named_registry_value::<Table>("native")?.get(name)
}

/// Adds the functions that access the current stream.
fn asking(lua: &Lua, native: &Table, keeps_booleans: bool) -> mlua::Result<()> {
    let ask = move |lua: &Lua, arguments: Variadic<Value>| match LENT.is_set() {
        true => LENT.with(|lent| dispatch(lua, lent, &arguments, keeps_booleans)),
        false => nothing_at_hand(lua),
    };
    native.set("ask", lua.create_function(ask)?)?;
    for (name, is_fetch) in [("fetch", true), ("convert", false)] {
        let call = move |lua: &Lua, arguments: Variadic<Value>| match LENT.is_set() {
            true => LENT.with(|lent| answer(lua, evaluate(lent, is_fetch, &arguments, keeps_booleans))),
            false => nothing_at_hand(lua),
        };
        native.set(name, lua.create_function(call)?)?;
    }
    native.set(
        "log",
        lua.create_function(|_, (level, message): (i64, mlua::LuaString)| {
            crate::script_messages::log(None, level, &message.to_string_lossy());
            Ok(())
        })?,
    )
}

fn nothing_at_hand(lua: &Lua) -> mlua::Result<MultiValue> {
    let wrong = "no stream is at hand".into_lua(lua)?;
    Ok([Value::Nil, wrong].into_iter().collect())
}

fn registering(lua: &Lua, native: &Table) -> mlua::Result<()> {
    let register = |lua: &Lua, arguments: Variadic<Value>| {
        let (kind, name) = (text(arguments.first()), text(arguments.get(1)));
        let Some(Value::Function(function)) = arguments.get(2).cloned() else { return Ok(()) };
        let Some(mut known) = lua.app_data_mut::<Registrations>() else { return Ok(()) };
        let kind = match kind.as_str() {
            "init" => {
                known.inits.push(function);
                return Ok(());
            }
            "fetch" => Kind::Fetch,
            "converter" => Kind::Converter,
            "service" => Kind::Service(text(arguments.get(3)) == "http"),
            "filter" => Kind::Filter,
            "cli" => Kind::Command(strings(arguments.get(3))?, text(arguments.get(4))),
            _ => {
                let sets = strings(arguments.get(3))?;
                let count = arguments.get(4).and_then(Value::as_usize).unwrap_or(0);
                Kind::Action(sets, count)
            }
        };
        if let Some(mut functions) = lua.app_data_mut::<Functions>() {
            functions.0.insert(kind.key(&name), function.clone());
        }
        known.rows.push((kind, name, function));
        Ok(())
    };
    native.set("register", lua.create_function(register)?)?;
    native.set(
        "use_mailers",
        lua.create_function(|lua, ()| {
            if let Some(mut known) = lua.app_data_mut::<Registrations>() {
                known.sends_mails = true;
            }
            Ok(())
        })?,
    )?;
    native.set("starting", lua.create_function(|_, ()| Ok(crate::here().is_none()))?)?;
    native.set("started", lua.create_function(|_, ()| Ok(crate::process().is_some()))?)?;
    native.set("serving", lua.create_function(|_, ()| Ok(crate::here().is_some()))?)
}

/// Converts a table of strings.
fn strings(value: Option<&Value>) -> mlua::Result<Vec<String>> {
    match value {
        Some(Value::Table(table)) => table.sequence_values::<String>().collect(),
        _ => Ok(Vec::new()),
    }
}

/// Adds the functions that read values of the process.
fn telling(lua: &Lua, native: &Table, keeps_booleans: bool) -> mlua::Result<()> {
    native.set(
        "now",
        lua.create_function(|_, ()| {
            let since = rt::clock::since_epoch();
            Ok((since.as_secs(), since.subsec_micros()))
        })?,
    )?;
    native.set(
        "get_var",
        lua.create_function(move |_, name: String| {
            let variable = Variable::parse(&name).ok().filter(|_| name.starts_with("proc."));
            // The second value: the variable is not process-wide.
            let is_other = variable.is_none();
            Ok((variable.map_or(Plain::Nil, |variable| process_variable(&variable, keeps_booleans)), is_other))
        })?,
    )?;
    native.set(
        "info",
        lua.create_function(|_, ()| match crate::info() {
            Some(rows) => {
                let rows = rows.into_iter().map(|(name, value)| {
                    let value = value.parse().map_or_else(|_| Plain::Text(value.into_bytes()), Plain::Int);
                    (Plain::Text(name.into_bytes()), value)
                });
                Ok((Plain::Table(rows.collect()), Plain::Nil))
            }
            None => Ok((Plain::Nil, Plain::from("'core.get_info' is not available while the configuration is read"))),
        })?,
    )?;
    native.set(
        "date",
        lua.create_function(|_, (kind, text): (String, mlua::LuaString)| {
            let text = text.as_bytes();
            Ok(match kind.as_str() {
                "imf_date" => date::imf_date(&text),
                "rfc850_date" => date::rfc850_date(&text),
                "asctime_date" => date::asctime_date(&text),
                _ => date::http_date(&text),
            })
        })?,
    )?;
    native.set(
        "real_name",
        lua.create_function(|_, (kind, name): (String, String)| Ok(crate::methods::real_name(kind == "fetch", &name)))?,
    )?;
    native.set(
        "reason",
        lua.create_function(|_, status: i64| Ok(wire::http::reason(u16::try_from(status).unwrap_or(0))))?,
    )?;
    native.set(
        "wake_time",
        lua.create_function(|lua, period: u64| {
            lua.set_app_data(WakeTime(Duration::from_millis(period)));
            Ok(())
        })?,
    )
}

/// Returns the value of a variable of the process.
fn process_variable(variable: &Variable, keeps_booleans: bool) -> Plain {
    let shown = |value: Option<Sample<'_>>| value.map_or(Plain::Nil, |value| of_sample(value, keeps_booleans));
    let asked = |context: &Context<'_>| context.variables.lend(variable, shown).unwrap_or(Plain::Nil);
    match (crate::here(), crate::process()) {
        (Some(worker), _) => lend(&worker, asked),
        (None, Some(process)) => {
            let known = Variables { process: Some(&process.live.variables), ..Variables::default() };
            lend_early(None, known, asked)
        }
        (None, None) => {
            let early = crate::VARIABLES.lock().unwrap_or_else(PoisonError::into_inner);
            shown(early.iter().find(|(known, _)| **known == *variable.text).map(|(_, value)| value.value()))
        }
    }
}

/// Calls `with` with a context without a stream.
pub(crate) fn lend<T>(worker: &Worker, with: impl FnOnce(&Context<'_>) -> T) -> T {
    lend_process(worker, &worker.generation(), "LUA", with)
}

fn texts(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set("integer", lua.create_function(|lua, value: Value| Ok(lua.coerce_integer(value).ok().flatten()))?)?;
    native.set(
        "integer_part",
        lua.create_function(|_, number: f64| Ok(number.clamp(0.0, f64::from(i32::MAX)) as i64))?,
    )?;
    native.set(
        "part",
        lua.create_function(|lua, (whole, first, last): (mlua::LuaString, i64, i64)| {
            let whole = whole.as_bytes().to_vec();
            let length = i64::try_from(whole.len()).unwrap_or(i64::MAX);
            let place = |at: i64| if at < 0 { length + at + 1 } else { at };
            let (first, last) = (place(first).max(1) - 1, place(last).min(length));
            let part = usize::try_from(first).ok().zip(usize::try_from(last).ok());
            lua.create_string(part.and_then(|(first, last)| whole.get(first..last)).unwrap_or_default())
        })?,
    )?;
    native.set(
        "replace",
        lua.create_function(|_, (whole, old, new): (String, String, String)| Ok(whole.replace(&old, &new)))?,
    )?;
    native.set(
        "concat",
        lua.create_function(|lua, pieces: Table| {
            let mut whole = Vec::new();
            for piece in pieces.sequence_values::<mlua::LuaString>() {
                whole.extend_from_slice(&piece?.as_bytes());
            }
            lua.create_string(&whole)
        })?,
    )?;
    native.set(
        "tokenize",
        lua.create_function(|lua, (whole, separators, noblank): (mlua::LuaString, mlua::LuaString, bool)| {
            let (whole, separators) = (whole.as_bytes().to_vec(), separators.as_bytes().to_vec());
            let parts = whole.split(|byte| separators.contains(byte)).filter(|part| !noblank || !part.is_empty());
            lua.create_sequence_from(parts.map(|part| lua.create_string(part)).collect::<mlua::Result<Vec<_>>>()?)
        })?,
    )?;
    native.set(
        "compile",
        lua.create_function(|lua, (pattern, case): (mlua::LuaString, bool)| {
            Ok(match Regex::new(&pattern.to_string_lossy(), !case) {
                Ok(regex) => (Value::UserData(lua.create_userdata(Pattern(regex))?), None),
                Err(why) => (Value::Nil, Some(why)),
            })
        })?,
    )?;
    native.set(
        "regex",
        lua.create_function(|lua, (pattern, whole, groups): (mlua::UserDataRef<Pattern>, mlua::LuaString, bool)| {
            match look(&pattern.0, &whole.as_bytes(), groups) {
                Some(None) => Ok((Value::Boolean(false), None)),
                Some(Some(_)) if !groups => Ok((Value::Boolean(true), None)),
                Some(Some(found)) => {
                    let found: mlua::Result<Vec<_>> = found.iter().map(|part| lua.create_string(part)).collect();
                    Ok((Value::Table(lua.create_sequence_from(found?)?), None))
                }
                None => Ok((Value::Nil, Some("the regular expression takes too many steps"))),
            }
        })?,
    )
}

/// Returns the match and its groups; `None`: too many steps.
fn look(regex: &Regex, whole: &[u8], groups: bool) -> Option<Option<Vec<Vec<u8>>>> {
    let steps = Steps::for_text(whole.len());
    if !groups {
        return regex.is_match_within(whole, &steps).ok().map(|found| found.then(Vec::new));
    }
    let mut places = Places::default();
    let mut search = regex.search(&mut places, whole, &steps, true).ok()?;
    if search.next(0).ok()?.is_none() {
        return Some(None);
    }
    let part = |index| search.get(index).map(|(start, end)| whole[start..end].to_vec());
    Some(Some((0..20).map_while(part).collect()))
}

/// Whether one of two networks contains the other.
fn overlap(one: Network, other: Network) -> bool {
    match (one, other) {
        (Network::V4(one, mask), Network::V4(other, further)) => (one ^ other) & mask & further == 0,
        (Network::V6(one, mask), Network::V6(other, further)) => (one ^ other) & mask & further == 0,
        _ => false,
    }
}

fn addresses(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set(
        "parse_addr",
        lua.create_function(|lua, text: mlua::LuaString| match Network::parse(&text.to_string_lossy()) {
            Some(network) => lua.create_userdata(Address(network)).map(Value::UserData),
            None => Ok(Value::Nil),
        })?,
    )?;
    native.set(
        "match_addr",
        lua.create_function(|_, (one, other): (Value, Value)| {
            let address = |value: &Value| {
                value.as_userdata().and_then(|data| data.borrow::<Address>().ok().map(|address| address.0))
            };
            // An invalid address matches nothing.
            Ok(address(&one).zip(address(&other)).is_some_and(|(one, other)| overlap(one, other)))
        })?,
    )
}
