//! Keywords of `global` about the life cycle of processes: master and workers, soft stop.

use super::GlobalContext;
use crate::document::Line;
use crate::keyword::argument::{lenient, milliseconds, only};
use crate::spec::CloseSpread;

/// `master-worker no-exit-on-failure`; the mode itself is chosen on the command line.
pub(super) fn master_worker(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, line.keyword()) {
        return;
    }
    match line.text(1) {
        "no-exit-on-failure" => context.spec.lifetime.no_exit_on_failure = true,
        "" => context.report.alert(
            line.span(0),
            "support for 'master-worker' was removed in version 3.5. Use -W or -Ws in the startup script instead.",
        ),
        _ => context.report.alert(line.span(1), "'master-worker' only supports 'no-exit-on-failure' option"),
    }
}

/// `mworker-max-reloads`.
pub(super) fn max_reloads(context: &mut GlobalContext<'_>, line: &Line) {
    let sentence = "'mworker-max-reloads' expects an integer argument.";
    let Some(word) = only(line, sentence, &mut context.report) else { return };
    let value = lenient(word, "mworker-max-reloads", &mut context.report);
    match u32::try_from(value) {
        Ok(value) => context.spec.lifetime.max_reloads = Some(value),
        Err(_) => {
            context.report.alert(word.span, "'mworker-max-reloads' expects a positive value or zero.");
        }
    }
}

/// `reload`, a keyword of Weir only.
pub(super) fn reload(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "reload") {
        return;
    }
    context.spec.lifetime.reload_in_place = match line.text(1) {
        "in-place" => true,
        "new-worker" => false,
        other => {
            let message = format!("'reload' expects 'in-place' or 'new-worker' but got '{other}'.");
            return context.report.alert(line.span(1), message);
        }
    };
}

/// `close-spread-time`.
pub(super) fn close_spread_time(context: &mut GlobalContext<'_>, line: &Line) {
    if line.text(1) == "infinite" {
        context.spec.lifetime.close_spread = CloseSpread::Never;
        return;
    }
    let time = milliseconds(
        line.words.get(1),
        line,
        "close-spread-time",
        "'close-spread-time' expects <time> as argument.",
        "unexpected character '%c' in argument to <close-spread-time>.",
        &mut context.report,
    );
    if let Some(time) = time {
        context.spec.lifetime.close_spread = CloseSpread::Over(time);
    }
}
