//! Limits of the process (section 3.2).

use super::{GlobalContext, GlobalKeyword, supported, tuning};
use crate::diagnostic::{Diagnostic, Severity};
use crate::document::{Line, Word};
use crate::keyword::argument::{leading_number, lenient, milliseconds};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("maxconn", "<number>", "Maximum number of concurrent client connections of the process.", maxconn),
    supported("ulimit-n", "<number>", "Maximum number of file descriptors to request from the system.", ulimit_n),
    supported(
        "fd-hard-limit",
        "<number>",
        "Upper bound on the number of file descriptors, whatever the system allows.",
        fd_hard_limit,
    ),
    supported("nosplice", "", "Disables splicing by the kernel.", nosplice),
    supported("maxconnrate", "<number>", "Maximum number of new connections per second.", maxconnrate),
    supported("maxsessrate", "<number>", "Maximum number of new sessions per second.", maxsessrate),
    supported("maxsslrate", "<number>", "Maximum number of new TLS sessions per second.", maxsslrate),
    supported("maxpipes", "<number>", "Maximum number of pipes for splicing.", maxpipes),
    supported(
        "spread-checks",
        "<0..50>",
        "Random variation of the interval of health checks, in percent.",
        spread_checks,
    ),
    supported(
        "max-spread-checks",
        "<time>",
        "Maximum time over which the first health checks are spread.",
        max_spread_checks,
    ),
    tuning("nogetaddrinfo", "", "Resolves names at start-up with gethostbyname only; Weir uses the system's resolver."),
    tuning("noktls", "", "Disables kernel TLS; Weir does not use it."),
    tuning("noepoll", "", "Disables epoll; Weir has no other poller on Linux."),
    tuning("nopoll", "", "Disables poll; Weir does not use it."),
    tuning("nokqueue", "", "Disables kqueue; Weir does not use it."),
    tuning("noevports", "", "Disables event ports; Weir does not use them."),
];

/// Returns the only argument of a limit that may be written once. HAProxy labels a repetition an alert and continues.
fn once<'a>(context: &mut GlobalContext<'_>, line: &'a Line, known: bool) -> Option<&'a Word> {
    let name = line.keyword();
    if context.report.too_many(line, 2, name) {
        return None;
    }
    if known {
        let message = format!("'{name}' already specified. Continuing.");
        context.report.push(Diagnostic::new(Severity::Notice, line.span(0), message));
        return None;
    }
    let word = line.words.get(1);
    if word.is_none() {
        context.report.alert(line.span(1), format!("'{name}' expects an integer argument."));
    }
    word
}

fn maxconn(context: &mut GlobalContext<'_>, line: &Line) {
    let known = context.spec.maxconn.is_some();
    let Some(word) = once(context, line, known) else { return };
    match leading_number(&word.text) {
        (value, true) => context.spec.maxconn = crate::keyword::argument::limit(value),
        _ => context
            .report
            .alert(word.span, format!("cannot parse 'maxconn' value '{}', an integer is expected.", word.text)),
    }
}

fn ulimit_n(context: &mut GlobalContext<'_>, line: &Line) {
    let known = context.spec.ulimit_n.is_some();
    let Some(word) = once(context, line, known) else { return };
    let value = lenient(word, "ulimit-n", &mut context.report);
    context.spec.ulimit_n = u64::try_from(value).ok().filter(|&value| value > 0);
}

fn fd_hard_limit(context: &mut GlobalContext<'_>, line: &Line) {
    let known = context.spec.fd_hard_limit.is_some();
    let Some(word) = once(context, line, known) else { return };
    let value = lenient(word, "fd-hard-limit", &mut context.report);
    context.spec.fd_hard_limit = u64::try_from(value).ok().filter(|&value| value > 0);
}

fn nosplice(context: &mut GlobalContext<'_>, line: &Line) {
    if !context.report.too_many(line, 1, "nosplice") {
        context.spec.nosplice = true;
    }
}

/// Parses a limit that may be written once; a missing argument and 0 mean no limit.
fn bound(context: &mut GlobalContext<'_>, line: &Line, known: Option<u32>) -> Option<u32> {
    let Some(word) = once(context, line, known.is_some()) else { return known };
    crate::keyword::argument::limit(lenient(word, line.keyword(), &mut context.report))
}

fn maxconnrate(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.rates.connections = bound(context, line, context.spec.rates.connections);
}

fn maxsessrate(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.rates.sessions = bound(context, line, context.spec.rates.sessions);
}

fn maxsslrate(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.rates.tls_sessions = bound(context, line, context.spec.rates.tls_sessions);
}

fn maxpipes(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.maxpipes = bound(context, line, context.spec.maxpipes);
}

fn spread_checks(context: &mut GlobalContext<'_>, line: &Line) {
    let known = context.spec.checks.spread.is_some();
    let Some(word) = once(context, line, known) else { return };
    match u32::try_from(lenient(word, line.keyword(), &mut context.report)) {
        Ok(share @ 0..=50) => context.spec.checks.spread = Some(share),
        _ => context.report.alert(word.span, "'spread-checks' needs a positive value in range 0..50."),
    }
}

fn max_spread_checks(context: &mut GlobalContext<'_>, line: &Line) {
    let missing = "'max-spread-checks' expects an integer argument (0..50).";
    let unexpected = "unsupported character '%c' in 'max-spread-checks' (wants an integer delay).";
    let word = line.words.get(1);
    let time = milliseconds(word, line, "max-spread-checks", missing, unexpected, &mut context.report);
    context.spec.checks.longest_spread = time;
}
