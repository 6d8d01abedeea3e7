//! Parser of `filter-sequence`: the order in which a proxy's filters process one direction (configuration manual,
//! section 4). Must never depend on a particular filter.

use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::proxy::{ProxyContext, ProxyDraft};
use crate::keyword::report::Report;
use crate::span::Spanned;
use crate::spec::{FilterSpec, Mode, PlainFilter};

pub(crate) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let missing = match (line.text(1), line.words.get(2)) {
        ("", _) => Some((1, "missing argument")),
        ("request" | "response", None) => Some((2, "missing filter list")),
        ("request" | "response", _) => None,
        _ => Some((1, "expected either 'request' or 'response'")),
    };
    if let Some((at, what)) = missing {
        let message = format!("{what} for 'filter-sequence' in proxy '{}'.", context.name());
        context.report.alert(line.span(at), message);
        return;
    }
    if let Some(extra) = line.words.get(3) {
        let message = format!("'filter-sequence' takes one list; '{}' behind it is not looked at.", extra.text);
        context.report.diag(extra.span, message);
    }
    let names = line.text(2).split(',').map(str::to_owned).collect();
    let filters = &mut context.draft.spec.filters;
    let sequence = if line.text(1) == "request" { &mut filters.request } else { &mut filters.response };
    *sequence = Some(Spanned { value: names, span: line.span(2) });
}

/// Reports filters that sequences name and that do not exist, and those that the proxy's mode does not allow.
pub(crate) fn verify(drafts: &[ProxyDraft], report: &mut Report<'_>) {
    for draft in drafts {
        let filters = &draft.spec.filters;
        if draft.spec.mode != Mode::Http && filters.list.contains(&FilterSpec::Plain(PlainFilter::GrpcWeb)) {
            let message = format!("{}: 'filter grpc-web' requires 'mode http'.", draft.spec.name.value);
            report.push(Diagnostic::alert(draft.spec.name.span, message).with_form(Form::Bare));
        }
        for (direction, sequence) in [("request", &filters.request), ("response", &filters.response)] {
            let Some(sequence) = sequence else { continue };
            let known = |name: &str| filters.list.iter().any(|filter| filter.name() == name);
            let Some(unknown) = sequence.value.iter().find(|name| !known(name)) else { continue };
            let message = format!(
                "{}: error while postparsing {direction} filter-sequence '{unknown}' : invalid filter name: \
                 '{unknown}' is not defined on the proxy",
                draft.spec.name.value
            );
            report.push(Diagnostic::alert(sequence.span, message).with_form(Form::Bare));
        }
    }
}
