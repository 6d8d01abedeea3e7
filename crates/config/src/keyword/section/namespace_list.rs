//! Network namespaces that PROXY headers may name (HAProxy's document network-namespaces.txt).

use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::span::Spanned;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[supported("namespace", "<name>", "A network namespace.", namespace)];

/// Opens a section; all sections form one list.
pub(super) fn open(_: &mut SectionContext<'_>, _: &Line) -> bool {
    true
}

fn namespace(context: &mut SectionContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else { return };
    if context.content.namespaces.iter().any(|known| known.value == word.text) {
        let message = format!("Namespace '{}' is already added.", word.text);
        context.report.push(Diagnostic::alert(word.span, message).with_form(Form::ParsingTight));
        return;
    }
    context.content.namespaces.push(Spanned::new(word.text.clone(), word.span));
}
