//! `no` and `default` in front of a keyword. Owns HAProxy's list of keywords that allow them.

use super::report::Report;
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use std::borrow::Cow;

/// Keywords that may be preceded by `no` and `default`, in addition to `log` and `option`.
const NEGATABLE: &[&str] =
    &["busy-polling", "set-dumpable", "strict-limits", "insecure-fork-wanted", "numa-cpu-mapping"];

/// Prefix of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Negation {
    None,
    No,
    Default,
}

/// Strips `no` or `default` from a line. Returns `None` if they are not allowed there, which has been reported.
pub(crate) fn take<'a>(line: &'a Line, report: &mut Report<'_>) -> Option<(Cow<'a, Line>, Negation)> {
    let negation = match line.keyword() {
        "no" => Negation::No,
        "default" => Negation::Default,
        _ => return Some((Cow::Borrowed(line), Negation::None)),
    };
    let keyword = line.text(1);
    if keyword != "option" && keyword != "log" && !NEGATABLE.contains(&keyword) {
        report.push(
            Diagnostic::alert(
                line.whole(),
                "negation/default currently supported only for options, log, busy-polling, set-dumpable, \
                 strict-limits, insecure-fork-wanted and numa-cpu-mapping.",
            )
            .with_form(Form::ParsingTight),
        );
        return None;
    }
    let rest = Line { words: line.words[1..].to_vec(), file: line.file, number: line.number };
    Some((Cow::Owned(rest), negation))
}
