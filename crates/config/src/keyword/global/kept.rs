//! Files that one process leaves to the next (section 3.1). Must never open one.

use super::{GlobalContext, GlobalKeyword, not_yet, supported};
use crate::diagnostic::{Diagnostic, Severity};
use crate::document::Line;
use crate::spec::KeptSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported(
        "server-state-base",
        "<directory>",
        "Folder of state files whose names do not begin with a slash.",
        state_base,
    ),
    supported("server-state-file", "<file>", "State file for all backends that ask for the global one.", state_file),
    supported("stats-file", "<path>", "Counters to start from, as written by \"dump stats-file\".", stats_file),
    not_yet("shm-stats-file", "<name>", "Shared memory that keeps the counters across reloads."),
    not_yet("shm-stats-file-max-objects", "<number>", "Objects that fit into the shared counters."),
];

fn state_base(context: &mut GlobalContext<'_>, line: &Line) {
    path(context, line, "expects one argument: a directory path.", |kept| &mut kept.state_base);
}

fn state_file(context: &mut GlobalContext<'_>, line: &Line) {
    path(context, line, "expect one argument: a file path.", |kept| &mut kept.state_file);
}

fn stats_file(context: &mut GlobalContext<'_>, line: &Line) {
    path(context, line, "expect one argument: a file path.", |kept| &mut kept.stats_file);
}

/// The first word counts, and the first line: HAProxy passes over the others.
fn path(context: &mut GlobalContext<'_>, line: &Line, expects: &str, field: fn(&mut KeptSpec) -> &mut Option<String>) {
    let name = line.keyword();
    let known = field(&mut context.spec.kept);
    match line.words.get(1) {
        _ if known.is_some() => {
            let message = format!("'{name}' already specified. Continuing.");
            context.report.push(Diagnostic::new(Severity::Notice, line.span(0), message));
        }
        None => context.report.alert(line.span(1), format!("'{name}' {expects}")),
        Some(word) => *known = Some(word.text.clone()),
    }
    if let Some(extra) = line.words.get(2) {
        context.report.diag(extra.span, format!("'{name}' takes one argument; '{}' is passed over.", extra.text));
    }
}
