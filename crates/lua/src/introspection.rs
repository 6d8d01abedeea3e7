//! The functions of Lua's library `debug` that only read: `getinfo` and `traceback`. Must never change a function, a hook or an
//! upvalue, nor return a function: HAProxy's classes depend on theirs.

use mlua::{Error, IntoLua, Lua, LuaString, Table, Value, Variadic};

/// The options of `getinfo`: source, line, name, tail call, numbers of upvalues and parameters.
const OPTIONS: &str = "Slntu";

/// Opens the library.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua) -> mlua::Result<()> {
    let library = lua.create_table()?;
    library.set("getinfo", lua.create_function(getinfo)?)?;
    library.set("traceback", lua.create_function(traceback)?)?;
    if let Ok(package) = lua.globals().get::<Table>("package") {
        package.get::<Table>("loaded")?.set("debug", library.clone())?;
    }
    lua.globals().set("debug", library)
}

fn wrong(argument: usize, function: &str, message: &str) -> Error {
    Error::runtime(format!("bad argument #{argument} to '{function}' ({message})"))
}

/// The answer of `getinfo` about a function.
struct Description {
    source: [Option<String>; 2],
    lines: [Option<usize>; 2],
    what: &'static str,
    current: Option<usize>,
    name: Option<String>,
    name_what: Option<&'static str>,
    tail: bool,
    upvalues: u8,
    parameters: u8,
    variadic: bool,
}

impl Description {
    /// Returns the table of the chosen fields.
    fn into_table(self, lua: &Lua, options: &str) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        let line = |found: Option<usize>| found.and_then(|line| i64::try_from(line).ok()).unwrap_or(-1);
        for option in options.chars() {
            match option {
                'S' => {
                    let [source, short] = &self.source;
                    table.set("source", source.as_deref())?;
                    table.set("short_src", short.as_deref())?;
                    table.set("linedefined", line(self.lines[0]))?;
                    table.set("lastlinedefined", line(self.lines[1]))?;
                    table.set("what", self.what)?;
                }
                'l' => table.set("currentline", line(self.current))?,
                'n' => {
                    table.set("name", self.name.as_deref())?;
                    table.set("namewhat", self.name_what.unwrap_or_default())?;
                }
                't' => table.set("istailcall", self.tail)?,
                _ => {
                    table.set("nups", self.upvalues)?;
                    table.set("nparams", self.parameters)?;
                    table.set("isvararg", self.variadic)?;
                }
            }
        }
        Ok(table)
    }
}

/// `debug.getinfo ([thread,] f [, what])`, without threads, `func` and `activelines`.
fn getinfo(lua: &Lua, mut arguments: Variadic<Value>) -> mlua::Result<Value> {
    let options = match arguments.get(1) {
        None | Some(Value::Nil) => OPTIONS.to_owned(),
        Some(Value::String(text)) => text.to_string_lossy(),
        Some(_) => return Err(wrong(2, "getinfo", "string expected")),
    };
    let asked = if arguments.is_empty() { Value::Nil } else { arguments.swap_remove(0) };
    if let Some(option) = options.chars().find(|option| !OPTIONS.contains(*option)) {
        return Err(wrong(2, "getinfo", &format!("invalid option '{option}'; permitted are those of '{OPTIONS}'")));
    }
    let found = match asked {
        Value::Function(function) => {
            let info = function.info();
            Some(Description {
                source: [info.source, info.short_src],
                lines: [info.line_defined, info.last_line_defined],
                what: info.what,
                current: None,
                name: None,
                name_what: None,
                tail: false,
                upvalues: info.num_upvalues,
                parameters: info.num_params,
                variadic: info.is_vararg,
            })
        }
        level => {
            let level = level.as_integer().or_else(|| level.as_number().map(|number| number as i64));
            let level = level.ok_or_else(|| wrong(1, "getinfo", "number expected"))?;
            let level = usize::try_from(level).map_err(|_| wrong(1, "getinfo", "level out of range"))?;
            lua.inspect_stack(level, |frame| {
                let (source, names, stack) = (frame.source(), frame.names(), frame.stack());
                Description {
                    source: [source.source.map(Into::into), source.short_src.map(Into::into)],
                    lines: [source.line_defined, source.last_line_defined],
                    what: source.what,
                    current: frame.current_line(),
                    name: names.name.map(Into::into),
                    name_what: names.name_what,
                    tail: frame.is_tail_call(),
                    upvalues: stack.num_upvalues,
                    parameters: stack.num_params,
                    variadic: stack.is_vararg,
                }
            })
        }
    };
    match found {
        Some(found) => Ok(Value::Table(found.into_table(lua, &options)?)),
        None => Ok(Value::Nil),
    }
}

/// `debug.traceback ([thread,] [message [, level]])`, without threads.
fn traceback(lua: &Lua, mut arguments: Variadic<Value>) -> mlua::Result<Value> {
    let level = match arguments.get(1) {
        None | Some(Value::Nil) => Some(1),
        Some(level) => level.as_usize(),
    };
    let level = level.ok_or_else(|| wrong(2, "traceback", "level expected"))?;
    let message = if arguments.is_empty() { Value::Nil } else { arguments.swap_remove(0) };
    let message: Option<LuaString> = match message {
        Value::Nil => None,
        Value::String(text) => Some(text),
        Value::Integer(_) | Value::Number(_) => lua.coerce_string(message)?,
        Value::Thread(_) => return Err(wrong(1, "traceback", "threads are not supported")),
        // As in Lua: it is returned as it is.
        other => return Ok(other),
    };
    let text = message.as_ref().map(LuaString::to_string_lossy);
    lua.traceback(text.as_deref(), level)?.into_lua(lua)
}
