//! Parser of `filter compression`, `filter comp-req` and `filter comp-res` (configuration manual, section 9.2), and the
//! filters that `compression` lines imply. Must never decide about a message.

use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::proxy::{ProxyContext, ProxyDraft};
use crate::keyword::report::Report;
use crate::spec::FilterSpec;

/// Reads `filter compression`: both directions, as set by `compression direction`.
pub(super) fn both(context: &mut ProxyContext<'_>, line: &Line) {
    read(context, line, &[(true, false), (false, false)]);
}

/// Reads `filter comp-req`.
pub(super) fn request(context: &mut ProxyContext<'_>, line: &Line) {
    read(context, line, &[(true, true)]);
}

/// Reads `filter comp-res`.
pub(super) fn response(context: &mut ProxyContext<'_>, line: &Line) {
    read(context, line, &[(false, true)]);
}

fn read(context: &mut ProxyContext<'_>, line: &Line, filters: &[(bool, bool)]) {
    if let Some(extra) = line.words.get(2) {
        let message = format!("'filter {}' : unknown keyword '{}'.", line.text(1), extra.text);
        context.report.alert(extra.span, message);
        return;
    }
    for (upload, explicit) in filters {
        let list = &context.draft.spec.filters.list;
        if list.iter().any(|filter| matches!(filter, FilterSpec::Compression { upload: known, .. } if known == upload))
        {
            let message = format!("'filter' : {}: Proxy supports only one compression filter", context.name());
            context.report.alert(line.span(1), message);
            return;
        }
        let filter = FilterSpec::Compression { upload: *upload, explicit: *explicit };
        context.draft.spec.filters.list.push(filter);
    }
}

/// Whether the presence of a filter requires compression filters to be declared explicitly.
fn is_other(filter: &FilterSpec) -> bool {
    !matches!(filter, FilterSpec::Compression { .. } | FilterSpec::Cache { .. } | FilterSpec::FcgiApp)
}

/// Adds the filters that `compression` lines imply, after all others.
pub(crate) fn imply(draft: &mut ProxyDraft) {
    let is_it = |filter: &FilterSpec| matches!(filter, FilterSpec::Compression { .. });
    if draft.spec.compression.written && !draft.spec.filters.list.iter().any(is_it) {
        let list = &mut draft.spec.filters.list;
        list.extend([true, false].map(|upload| FilterSpec::Compression { upload, explicit: false }));
    }
}

/// Reports `compression` lines beside filters whose order they do not define. Must be called before [`imply`].
pub(crate) fn verify(drafts: &[ProxyDraft], report: &mut Report<'_>) {
    for draft in drafts {
        let list = &draft.spec.filters.list;
        if draft.spec.compression.written
            && list.iter().any(is_other)
            && !list.iter().any(|filter| matches!(filter, FilterSpec::Compression { .. }))
        {
            let name = &draft.spec.name;
            let message = format!(
                "config: proxy '{}': require an explicit filter declaration to use HTTP compression",
                name.value
            );
            let hint = "write 'filter compression' at its place among the filters";
            report.push(Diagnostic::alert(name.span, message).with_form(Form::Bare).with_hint(hint));
        }
    }
}
