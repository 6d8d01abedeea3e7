//! Lua (section 3.1).

use super::{GlobalContext, GlobalKeyword, not_yet, supported};
use crate::diagnostic::Diagnostic;
use crate::document::Line;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("lua-load", "<file> [<argument>...]", "Loads a Lua file, shared by all threads.", load),
    not_yet("lua-load-per-thread", "<file> [<argument>...]", "Loads a Lua file once in each thread."),
    not_yet("lua-prepend-path", "<path> [<type>]", "Where Lua looks for modules first."),
    not_yet("tune.lua.bool-sample-conversion", "{ normal | pre-3.1-bug }", "How booleans reach Lua."),
    not_yet("tune.lua.burst-timeout", "<time>", "Longest time Lua may run without a pause."),
    not_yet("tune.lua.forced-yield", "<number>", "Lua instructions between two pauses."),
    not_yet("tune.lua.log.loggers", "{ on | off }", "Whether Lua's messages go to the log targets."),
    not_yet("tune.lua.log.stderr", "{ on | auto | off }", "Whether Lua's messages go to standard error."),
    not_yet("tune.lua.maxmem", "<number>", "Megabytes that Lua may use."),
    not_yet("tune.lua.openlibs", "{ all | none | <library>[,<library>...] }", "Lua libraries to open."),
    not_yet("tune.lua.service-timeout", "<time>", "Longest run time of a Lua service."),
    not_yet("tune.lua.session-timeout", "<time>", "Longest run time of a Lua action, fetch or converter."),
    not_yet("tune.lua.task-timeout", "<time>", "Longest run time of a Lua task."),
];

/// HAProxy sends mails by a script that comes with it; here that is no script's business.
fn load(context: &mut GlobalContext<'_>, line: &Line) {
    let file = line.text(1);
    if file.rsplit('/').next() == Some("mailers.lua") {
        let message =
            format!("'lua-load' : '{file}' is not loaded: Weir sends the mails of 'mailers' sections itself.");
        let hint = "remove the line".to_owned();
        context.report.push(Diagnostic::warning(line.span(1), message).with_hint(hint));
        return;
    }
    context.report.not_yet(line.span(0), "lua-load", "section 'global'");
}
