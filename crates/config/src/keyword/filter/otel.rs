//! Parser of `filter otel` and `filter opentelemetry`. Must never read the file that it names.

use crate::document::Line;
use crate::keyword::proxy::ProxyContext;
use crate::span::Spanned;
use crate::spec::{FilterSpec, OtelFilterSpec};

pub(super) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let keyword = if line.text(1) == "otel" { "otel" } else { "opentelemetry" };
    let (mut id, mut file) = (None, None);
    let mut at = 2;
    while let Some(word) = line.words.get(at) {
        let name = word.text.as_str();
        let option = match name {
            "id" => &mut id,
            "config" => &mut file,
            _ => return context.report.alert(word.span, format!("'filter' : unknown keyword '{name}'")),
        };
        let Some(value) = line.words.get(at + 1) else {
            let message = format!("'filter' : '{keyword}' : '{name}' option without value");
            return context.report.alert(line.span(at + 1), message);
        };
        *option = Some(Spanned::new(value.text.clone(), value.span));
        at += 2;
    }
    let Some(file) = file else {
        return context.report.alert(line.span(at), format!("'filter' : '{keyword}' : missing config file"));
    };
    let span = line.whole();
    let path = context.around.paths.full(&file.value, span, context.around.sources).into_owned();
    let filter = OtelFilterSpec { span, keyword, id, file, path, content: None, groups: Vec::new() };
    context.draft.spec.filters.list.push(FilterSpec::Otel(filter));
}
