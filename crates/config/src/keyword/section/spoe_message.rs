//! The message sections of an SPOE file (SPOE.txt, section 2.3). Must never parse an expression.

use super::spoe_agent::section_name;
use super::{SectionContext, SectionKeyword, supported};
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::keyword::is_name_character;
use crate::spec::{SpoeEvent, SpoeMessageSpec};
use crate::suggest;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("acl", "<name> <expression> [<flag>...] [<value>...]", "Defines an ACL.", acl),
    supported("args", "[<name>=]<sample>...", "What is sent.", arguments),
    supported("event", "<event> [{ if | unless } <condition>]", "When it is sent.", event),
];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let Some(name) = section_name(context, line) else { return false };
    let around = context.around;
    let Some(engine) = context.content.spoe_engines.last_mut() else { return false };
    if let Some(other) = engine.messages.iter().find(|other| other.name.value == name.value) {
        let message = format!(
            "spoe-message section '{}' has the same name as another one declared at {}.",
            name.value,
            around.place(other.name.span)
        );
        context.report.tight(name.span, message);
        return false;
    }
    engine.messages.push(SpoeMessageSpec { name, ..SpoeMessageSpec::default() });
    true
}

/// Returns the open section.
fn message<'a>(context: &'a mut SectionContext<'_>) -> Option<&'a mut SpoeMessageSpec> {
    context.content.spoe_engines.last_mut()?.messages.last_mut()
}

fn acl(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1);
    if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
        context.report.alert(line.span(1), format!("character '{bad}' is not permitted in acl name '{name}'."));
        return;
    }
    if name.is_empty() {
        return context.report.alert(line.span(0), "'acl' expects a name and an expression.");
    }
    let line = context.around.rule_line(line, 1);
    if let Some(message) = message(context) {
        message.acls.push(line);
    }
}

fn arguments(context: &mut SectionContext<'_>, line: &Line) {
    let line = context.around.rule_line(line, 1);
    if let Some(message) = message(context) {
        message.arguments.push(line);
    }
}

fn event(context: &mut SectionContext<'_>, line: &Line) {
    let name = line.text(1);
    if name.is_empty() {
        return context.report.alert(line.span(1), "missing event name.");
    }
    let Some(event) = SpoeEvent::named(name) else {
        let known = suggest::nearest(name, SpoeEvent::NAMES.iter().map(|(known, _)| *known));
        let mut found = Diagnostic::alert(line.span(1), format!("unknown event '{name}'."));
        found.hint = known.map(|known| format!("write 'event {known}'"));
        return context.report.push(found);
    };
    if let Some(word) = line.words.get(2).filter(|word| !matches!(word.text.as_str(), "if" | "unless")) {
        let message = format!(
            "'event {name}' expects either 'if' or 'unless' followed by a condition but found '{}'.",
            word.text
        );
        return context.report.push(Diagnostic::alert(word.span, message).with_form(Form::ParsingTight));
    }
    let condition = context.around.rule_line(line, 2);
    if let Some(message) = message(context) {
        message.event = Some((event, condition));
    }
}
