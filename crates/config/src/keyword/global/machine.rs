//! Interaction of the running process with the machine (sections 3.1 to 3.3).

use super::{GlobalContext, GlobalKeyword, supported};
use crate::document::Line;
use crate::keyword::argument::{leading_number, lenient, milliseconds};
use crate::spec::DriverSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported(
        "warn-blocked-traffic-after",
        "<time>",
        "Time after which a task that blocks its thread is reported by a warning.",
        warn_blocked_traffic_after,
    ),
    supported("tune.renice.runtime", "<number>", "Scheduling priority of the running process.", renice_runtime),
    supported(
        "tune.runqueue-depth",
        "<number>",
        "Maximum number of tasks that run between two polls for events.",
        runqueue_depth,
    ),
    supported("prealloc-fd", "", "Allocates the table of file descriptors at start-up.", prealloc_fd),
    supported("busy-polling", "[no]", "Polls without sleeping when there is nothing to do.", busy_polling),
    supported(
        "harden.reject-privileged-ports.tcp",
        "{ on | off }",
        "Ignores TCP clients whose source port is below 1024.",
        reject_privileged_ports,
    ),
    supported("noreuseport", "", "Disables SO_REUSEPORT on listening sockets.", noreuseport),
    supported(
        "tune.driver",
        "{ auto | epoll | posix }",
        "Weir's own: calls for sockets: those of the kernel (epoll), functions of the C library (posix), or the latter if a \
         preloaded library replaces them (auto, default).",
        driver,
    ),
];

fn warn_blocked_traffic_after(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "warn-blocked-traffic-after";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    let time = up_to_a_second(
        context,
        line,
        NAME,
        "'warn-blocked-traffic-after' expects <time> as argument between 1 and 1000 ms.",
        "unexpected character '%c' in argument to <warn-blocked-traffic-after>.",
    );
    context.spec.machine.warn_blocked_after = time.or(context.spec.machine.warn_blocked_after);
}

/// Parses a time of 1 to 1000 ms, the line's only argument; `None` after an error, which has been reported.
fn up_to_a_second(
    context: &mut GlobalContext<'_>,
    line: &Line,
    name: &str,
    missing: &str,
    unexpected: &str,
) -> Option<u64> {
    let time = milliseconds(line.words.get(1), line, name, missing, unexpected, &mut context.report)?;
    if (1..=1000).contains(&time) {
        return Some(time);
    }
    let text = line.text(1);
    let message = format!("timer out of range in argument '{text}' to '{name}' (value must be between 1 and 1000 ms)");
    context.report.alert(line.span(1), message);
    None
}

fn renice_runtime(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "tune.renice.runtime";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    match leading_number(line.text(1)) {
        // HAProxy reads a missing argument as 0.
        (0, _) if line.words.len() < 2 => context.spec.machine.nice = Some(0),
        (value @ -20..=19, true) => context.spec.machine.nice = i32::try_from(value).ok(),
        _ => {
            let text = line.text(1);
            let message = format!("'{NAME}' only supports values between -20 and 19 inclusive (was given {text})");
            context.report.alert(line.span(1), message);
        }
    }
}

fn runqueue_depth(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "tune.runqueue-depth";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), format!("'{NAME}' expects an integer argument."));
    };
    let value = lenient(word, NAME, &mut context.report);
    context.spec.machine.run_queue_depth = u32::try_from(value).ok().filter(|depth| *depth > 0);
}

fn busy_polling(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.report.too_many(line, 1, "busy-polling") {
        context.spec.machine.busy_polling = !context.negated;
    }
}

fn reject_privileged_ports(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "harden.reject-privileged-ports.tcp";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    match line.text(1) {
        "on" => context.spec.machine.reject_privileged_ports = true,
        "off" => context.spec.machine.reject_privileged_ports = false,
        _ => context.report.alert(line.span(1), format!("'{NAME}' expects either 'on' or 'off'.")),
    }
}

fn prealloc_fd(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.machine.prealloc_fd |= !context.report.too_many(line, 1, "prealloc-fd");
}

fn driver(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "tune.driver";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    context.spec.machine.driver = match line.text(1) {
        "auto" => DriverSpec::Auto,
        "epoll" => DriverSpec::Epoll,
        "posix" => DriverSpec::Posix,
        _ => return context.report.alert(line.span(1), format!("'{NAME}' expects 'auto', 'epoll' or 'posix'.")),
    };
}

fn noreuseport(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.machine.no_reuse_port |= !context.report.too_many(line, 1, "noreuseport");
}

pub(super) fn max_rules_at_once(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "tune.max-rules-at-once";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), format!("'{NAME}' expects a positive numeric value"));
    };
    match u32::try_from(lenient(word, NAME, &mut context.report)) {
        Ok(value) => context.spec.tune.max_rules_at_once = Some(value),
        Err(_) => context.report.alert(word.span, format!("'{NAME}' expects a positive numeric value")),
    }
}

pub(super) fn evaluation_time(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "tune.eval.max-time";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    let time = up_to_a_second(
        context,
        line,
        NAME,
        "'tune.eval.max-time' expects <time> as argument between 1 and 1000 ms.",
        "unexpected character '%c' in argument to <tune.eval.max-time>.",
    );
    context.spec.tune.evaluation_time = time.or(context.spec.tune.evaluation_time);
}
