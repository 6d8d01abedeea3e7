//! Lua (sections 3.1 and 3.2): the scripts to load, and their limits. Must never read a script.

use super::{GlobalContext, GlobalKeyword, supported};
use crate::diagnostic::{Diagnostic, Form, ReportOrder};
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::spec::{LuaLibraries, LuaPathSpec, LuaScriptSpec, LuaStderr};
use crate::units::{self, TimeError};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("lua-load", "<file> [<argument>...]", "Loads a Lua file, shared by all threads.", load),
    supported(
        "lua-load-per-thread",
        "<file> [<argument>...]",
        "Loads a Lua file into a state for each thread.",
        load_per_thread,
    ),
    supported("lua-prepend-path", "<path> [<type>]", "Adds a path before Lua's search paths of modules.", prepend_path),
    supported(
        "tune.lua.bool-sample-conversion",
        "{ normal | pre-3.1-bug }",
        "How boolean samples are converted for Lua.",
        bool_conversion,
    ),
    supported("tune.lua.burst-timeout", "<time>", "Maximum time Lua may run without yielding.", timeout),
    supported(
        "tune.lua.forced-yield",
        "<number>",
        "Number of Lua instructions after which a script yields.",
        forced_yield,
    ),
    supported("tune.lua.log.loggers", "{ on | off }", "Whether Lua's messages are sent to the log targets.", loggers),
    supported(
        "tune.lua.log.stderr",
        "{ on | auto | off }",
        "Whether Lua's messages are printed on standard error.",
        stderr,
    ),
    supported("tune.lua.maxmem", "<number>", "Maximum memory of Lua, in megabytes.", maxmem),
    supported("tune.lua.openlibs", "{ all | none | <library>[,<library>...] }", "Lua libraries to open.", libraries),
    supported("tune.lua.service-timeout", "<time>", "Maximum run time of a Lua service.", timeout),
    supported("tune.lua.session-timeout", "<time>", "Maximum run time of a Lua action, fetch or converter.", timeout),
    supported("tune.lua.task-timeout", "<time>", "Maximum run time of a Lua task.", timeout),
];

/// The libraries that `tune.lua.openlibs` accepts.
const LIBRARIES: [&str; 8] = ["table", "io", "os", "string", "math", "utf8", "package", "debug"];

fn load(context: &mut GlobalContext<'_>, line: &Line) {
    if line.text(1).is_empty() {
        return context.report.alert(line.span(0), "'lua-load' expects a file name as parameter.");
    }
    add(context, line, false);
}

fn load_per_thread(context: &mut GlobalContext<'_>, line: &Line) {
    if line.text(1).is_empty() {
        return context.report.alert(line.span(0), "'lua-load-per-thread' expects a file as parameter.");
    }
    add(context, line, true);
}

fn add(context: &mut GlobalContext<'_>, line: &Line, per_thread: bool) {
    let lua = &mut context.spec.lua;
    if lua.scripts.is_empty() && !lua.conversion_is_set {
        const AMBIGUOUS: &str = "hlua: please set \"tune.lua.bool-sample-conversion\" tunable to either \"normal\" or \
            \"pre-3.1-bug\" explicitly to avoid ambiguities. This must be set before any \"lua-load\" or \
            \"lua-load-per-thread\" directive. Defaulting to \"pre-3.1-bug\".";
        let found = Diagnostic::warning(line.span(0), AMBIGUOUS).with_form(Form::Config);
        context.report.push(found.in_turn(ReportOrder::Reading, line.span(0)));
    }
    let arguments = line.words.iter().skip(2).map(|word| word.text.clone()).collect();
    let folder = context.around.paths.folder(line.span(1), context.around.sources);
    let script = LuaScriptSpec { file: line.text(1).to_owned(), arguments, per_thread, folder, span: line.span(1) };
    context.spec.lua.scripts.push(script);
}

fn prepend_path(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 3, line.keyword()) {
        return;
    }
    if line.text(1).is_empty() {
        return context.report.alert(line.span(0), "'lua-prepend-path' expects to receive a <path> as argument");
    }
    let of_libraries = match line.text(2) {
        "" | "path" => false,
        "cpath" => true,
        _ => {
            let message = "'lua-prepend-path' expects <type> to either be 'path' or 'cpath'";
            return context.report.alert(line.span(2), message);
        }
    };
    context.spec.lua.paths.push(LuaPathSpec { pattern: line.text(1).to_owned(), of_libraries });
}

fn bool_conversion(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.spec.lua.scripts.is_empty() {
        let message = "ignored as some Lua was loaded already. \"tune.lua.bool-sample-conversion\" must be set before any \
                       \"lua-load\" or \"lua-load-per-thread\" directive for it to be considered.";
        return context.report.warning(line.span(0), message);
    }
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    match line.text(1) {
        word @ ("normal" | "pre-3.1-bug") => {
            context.spec.lua.conversion_is_set = true;
            context.spec.lua.keeps_booleans = word == "normal";
        }
        word => {
            let message = format!("'{}' expects either 'normal' or 'pre-3.1-bug' but got '{word}'.", line.keyword());
            context.report.alert(line.span(1), message);
        }
    }
}

fn timeout(context: &mut GlobalContext<'_>, line: &Line) {
    let keyword = line.keyword();
    let text = line.text(1);
    let value = match units::milliseconds(text) {
        Ok(time) => time.value,
        Err(TimeError::Overflow) => {
            let message = format!(
                "timer overflow in argument <{text}> to <{keyword}> (maximum value is 2147483647 ms or ~24.8 days)"
            );
            return context.report.alert(line.span(1), message);
        }
        Err(_) => return context.report.alert(line.span(1), format!("{keyword}: invalid timeout")),
    };
    let lua = &mut context.spec.lua;
    match keyword {
        "tune.lua.burst-timeout" => lua.burst_timeout = Some(value),
        "tune.lua.service-timeout" => lua.service_timeout = Some(value),
        "tune.lua.session-timeout" => lua.session_timeout = Some(value),
        _ => lua.task_timeout = Some(value),
    }
}

fn forced_yield(context: &mut GlobalContext<'_>, line: &Line) {
    let text = line.text(1);
    if text.is_empty() {
        return context.report.alert(line.span(0), "'tune.lua.forced-yield' expects an integer argument.");
    }
    match leading_number(text) {
        (number, true) => context.spec.lua.forced_yield = Some(u32::try_from(number).unwrap_or(0)),
        _ => context.report.alert(line.span(1), format!("{}: invalid number", line.keyword())),
    }
}

fn loggers(context: &mut GlobalContext<'_>, line: &Line) {
    match line.text(1) {
        word @ ("on" | "off") => context.spec.lua.no_loggers = word == "off",
        word => {
            let message = format!("'{}' expects either 'on' or 'off' but got '{word}'.", line.keyword());
            context.report.alert(line.span(1), message);
        }
    }
}

fn stderr(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.lua.stderr = match line.text(1) {
        "on" => LuaStderr::On,
        "auto" => LuaStderr::Auto,
        "off" => LuaStderr::Off,
        word => {
            let message = format!("'{}' expects either 'on', 'auto', or 'off' but got '{word}'.", line.keyword());
            return context.report.alert(line.span(1), message);
        }
    };
}

fn maxmem(context: &mut GlobalContext<'_>, line: &Line) {
    let text = line.text(1);
    if text.is_empty() {
        let message = "'tune.lua.maxmem' expects an integer argument (Lua memory size in MB).";
        return context.report.alert(line.span(0), message);
    }
    let (number, clean) = leading_number(text);
    if !clean {
        let wrong = text.trim_start_matches(|found: char| found.is_ascii_digit());
        let message = format!("{}: invalid number {text} (error at '{wrong}')", line.keyword());
        return context.report.alert(line.span(1), message);
    }
    context.spec.lua.maxmem = u32::try_from(number).unwrap_or(0);
}

fn libraries(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.spec.lua.scripts.is_empty() {
        let message = "'tune.lua.openlibs' must be set before any \"lua-load\" or \"lua-load-per-thread\" directive.";
        return context.report.alert(line.span(0), message);
    }
    if context.report.too_many(line, 2, "tune.lua.openlibs") {
        return;
    }
    let text = line.text(1);
    let known = LIBRARIES.join(",");
    if text.is_empty() {
        let message =
            format!("'tune.lua.openlibs' expects 'all', 'none', or a comma-separated list of libraries: {known}");
        return context.report.alert(line.span(0), message);
    }
    let names: Vec<&str> = text.split(',').filter(|name| !name.is_empty()).collect();
    for name in &names {
        if !matches!(*name, "all" | "none") && !LIBRARIES.contains(name) {
            let message = format!("'tune.lua.openlibs': unknown library '{name}', expected one of: all,none,{known}");
            return context.report.alert(line.span(1), message);
        }
    }
    if names.contains(&"none") && names.len() > 1 {
        let message = "'tune.lua.openlibs': 'none' cannot be combined with other libraries.";
        return context.report.alert(line.span(1), message);
    }
    context.spec.lua.libraries = if names.contains(&"all") {
        LuaLibraries::All
    } else {
        LuaLibraries::Some(names.iter().filter(|name| **name != "none").map(|name| (*name).to_owned()).collect())
    };
}
