//! Files that a process passes on to its successor (section 3.1). Must never open one.

use super::{GlobalContext, GlobalKeyword, supported};
use crate::diagnostic::{Diagnostic, Severity};
use crate::document::Line;
use crate::keyword::argument::leading_number;
use crate::spec::KeptSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("server-state-base", "<directory>", "Directory of state files with relative names.", state_base),
    supported("server-state-file", "<file>", "State file of all backends that use the global one.", state_file),
    supported("stats-file", "<path>", "File with initial counters, as written by \"dump stats-file\".", stats_file),
    supported(
        "shm-stats-file",
        "<name>",
        "Shared memory that keeps counters of objects with a \"guid\" across reloads.",
        shared_file,
    ),
    supported(
        "shm-stats-file-max-objects",
        "<number>",
        "Maximum number of objects in the shared memory of \"shm-stats-file\" (2000).",
        shared_objects,
    ),
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

fn shared_file(context: &mut GlobalContext<'_>, line: &Line) {
    if context.spec.kept.shared_file.is_some() {
        return context.report.alert(line.span(0), "'shm-stats-file' already specified.");
    }
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), "'shm-stats-file' expect one argument: a file path.");
    };
    // Names that shm_open(3) accepts: one component, with or without a slash in front.
    let name = word.text.trim_start_matches('/');
    if name.is_empty() || name.len() > 255 || name.contains('/') || name == "." || name == ".." {
        // Directory where Linux exposes shared memory as files.
        let shown = name.strip_prefix("dev/shm/").filter(|name| !name.is_empty() && !name.contains('/'));
        let instead = match shown.filter(|_| word.text.starts_with('/')) {
            Some(name) => format!("write '/{name}'"),
            None => "it has no further slash".to_owned(),
        };
        let message = format!("'shm-stats-file' : '{}' is not a name of shared memory: {instead}.", word.text);
        return context.report.alert(word.span, message);
    }
    context.spec.kept.shared_file = Some(word.text.clone());
}

fn shared_objects(context: &mut GlobalContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        let message = "'shm-stats-file-max-objects' expect one argument: max objects number.";
        return context.report.alert(line.span(1), message);
    };
    match u32::try_from(leading_number(&word.text).0).ok().filter(|number| *number <= MOST_SHARED) {
        Some(number) => context.spec.kept.shared_objects = Some(number),
        None => {
            let message = format!("'shm-stats-file-max-objects' expects a number from 0 to {MOST_SHARED}.");
            context.report.alert(word.span, message);
        }
    }
}

/// Maximum number of objects with shared counters, 512 bytes each.
const MOST_SHARED: u32 = 1_000_000;

/// The first word and the first line apply; HAProxy ignores the others.
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
