//! The `filter` line: filters are known by name (configuration manual, section 9).

use super::proxy::ProxyContext;
use super::section::filter::TABLE;
use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::suggest;

/// Reads a `filter` line.
pub(crate) fn read(context: &mut ProxyContext<'_>, line: &Line) {
    let name = line.text(1);
    if name.is_empty() {
        let message = format!("missing argument for 'filter' in proxy '{}'.", context.name());
        context.report.alert(line.span(1), message);
        return;
    }
    if TABLE.iter().any(|row| row.name == name) || name.starts_with("lua.") {
        let place = context.holder.describe();
        context.report.not_yet(line.span(0), &format!("filter {name}"), &place);
        return;
    }
    let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
    let mut diagnostic = Diagnostic::alert(
        line.span(1),
        format!("'filter' : unknown keyword '{name}'. Registered keywords : {}", names.join(", ")),
    );
    diagnostic.hint = suggest::nearest(name, names).map(|known| format!("write 'filter {known}'"));
    context.report.push(diagnostic);
}
