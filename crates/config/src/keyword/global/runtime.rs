//! The runtime API (section 3.1, "stats ...").

use super::{GlobalContext, GlobalKeyword, removed, supported};
use crate::document::Line;
use crate::keyword::argument::{lenient, limit, milliseconds};
use crate::keyword::bind;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("stats socket", "<address> [<option>...]", "Socket for the runtime API.", socket),
    supported("stats timeout", "<time>", "Idle timeout of runtime API connections.", timeout),
    supported("stats maxconn", "<number>", "Maximum number of concurrent runtime API connections.", maxconn),
    supported(
        "stats calculate-max-counters",
        "{ on | off }",
        "Whether counters of maximum values are calculated.",
        calculate_max_counters,
    ),
    removed(
        "stats bind-process",
        "",
        "Process of the statistics socket; there is a single process.",
        "'stats bind-process' is not supported anymore.",
    ),
];

fn socket(context: &mut GlobalContext<'_>, line: &Line) {
    if line.words.len() < 3 {
        context.report.alert(
            line.span(line.words.len()),
            "'stats socket' in global section expects an address or a path to a UNIX socket",
        );
        return;
    }
    let earlier = &context.spec.runtime.sockets;
    let found = bind::read_global(line, "stats socket", 2, earlier, context.around, &mut context.report);
    context.spec.runtime.sockets.extend(found);
}

fn timeout(context: &mut GlobalContext<'_>, line: &Line) {
    let time = milliseconds(
        line.words.get(2),
        line,
        "stats timeout",
        "'stats timeout' expects a time as argument.",
        "'stats timeout' : unexpected character '%c'",
        &mut context.report,
    );
    match time {
        Some(0) => context.report.alert(line.span(2), "'stats timeout' expects a positive value"),
        Some(time) => context.spec.runtime.timeout = Some(time),
        None => {}
    }
}

fn maxconn(context: &mut GlobalContext<'_>, line: &Line) {
    // HAProxy truncates the value to 32 bits.
    let value = line.words.get(2).map(|word| lenient(word, "stats maxconn", &mut context.report) as i32);
    let most = value.and_then(|value| limit(value.into()));
    match most {
        Some(most) => context.spec.runtime.maxconn = Some(most),
        None => context.report.alert(line.span(2), "'stats maxconn' expects a positive value"),
    }
}

fn calculate_max_counters(context: &mut GlobalContext<'_>, line: &Line) {
    match line.text(2) {
        "on" => context.spec.runtime.without_maxima = false,
        "off" => context.spec.runtime.without_maxima = true,
        other => {
            let sentence = format!("'calculate-max-counters' only supports 'on' and 'off', received '{other}'");
            context.report.alert(line.span(2), sentence);
        }
    }
}
