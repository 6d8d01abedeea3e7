//! Parser of `use-fcgi-app` and `filter fcgi-app` (configuration manual, sections 9.5 and 10.1.2): the FastCGI
//! application of a proxy. Must never look into the application.

use crate::diagnostic::{Diagnostic, Form};
use crate::document::{Line, Word};
use crate::keyword::proxy::{ProxyContext, ProxyDraft};
use crate::keyword::report::Report;
use crate::span::Spanned;
use crate::spec::FilterSpec;

/// Reads `use-fcgi-app`.
pub(crate) fn use_fcgi_app(context: &mut ProxyContext<'_>, line: &Line) {
    match line.words.get(1) {
        Some(word) => name(context, word),
        None => context.report.alert(line.span(1), "'use-fcgi-app' expects <name> as argument"),
    }
}

/// Reads `filter fcgi-app`.
pub(super) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(2) else {
        return context.report.alert(line.span(2), "'filter' : fcgi-app : expects a <name> argument");
    };
    if let Some(extra) = line.words.get(3) {
        let message = format!("'filter fcgi-app' : unknown keyword '{}'.", extra.text);
        return context.report.alert(extra.span, message);
    }
    name(context, word);
    let list = &mut context.draft.spec.filters.list;
    if !list.contains(&FilterSpec::FcgiApp) {
        list.push(FilterSpec::FcgiApp);
    }
}

fn name(context: &mut ProxyContext<'_>, word: &Word) {
    let app = &mut context.draft.spec.fcgi_app;
    if app.as_ref().is_some_and(|known| known.value != word.text) {
        let message = "'use-fcgi-app' : only one fcgi-app supported per backend";
        return context.report.alert(word.span, message);
    }
    *app = Some(Spanned::new(word.text.clone(), word.span));
}

/// Reports proxies whose other filters require an explicit position of the application's filter.
pub(super) fn verify(drafts: &[ProxyDraft], report: &mut Report<'_>) {
    for draft in drafts {
        let Some(app) = &draft.spec.fcgi_app else { continue };
        let list = &draft.spec.filters.list;
        let asks = |filter: &FilterSpec| !matches!(filter, FilterSpec::Compression { .. } | FilterSpec::Cache { .. });
        if list.contains(&FilterSpec::FcgiApp) || !list.iter().any(asks) {
            continue;
        }
        let message = format!(
            "config: proxy '{}': require an explicit filter declaration to use the fcgi-app '{}'.",
            draft.spec.name.value, app.value
        );
        let hint = format!("write 'filter fcgi-app {}' at its place among the filters", app.value);
        report.push(Diagnostic::alert(app.span, message).with_form(Form::Bare).with_hint(hint));
    }
}
