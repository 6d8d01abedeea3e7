//! The group sections of an SPOE file (SPOE.txt, section 2.4). Must never resolve the messages that it names.

use super::spoe_agent::{add_names, section_name};
use super::{SectionContext, SectionKeyword, supported};
use crate::document::Line;
use crate::spec::SpoeGroupSpec;

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] =
    &[supported("messages", "<message>...", "Messages of the group.", messages)];

/// Opens a section.
pub(super) fn open(context: &mut SectionContext<'_>, line: &Line) -> bool {
    let Some(name) = section_name(context, line) else { return false };
    let around = context.around;
    let Some(engine) = context.content.spoe_engines.last_mut() else { return false };
    if let Some(other) = engine.groups.iter().find(|other| other.name.value == name.value) {
        let message = format!(
            "spoe-group section '{}' has the same name as another one declared at {}.",
            name.value,
            around.place(other.name.span)
        );
        context.report.tight(name.span, message);
        return false;
    }
    engine.groups.push(SpoeGroupSpec { name, messages: Vec::new() });
    true
}

fn messages(context: &mut SectionContext<'_>, line: &Line) {
    let engine = context.content.spoe_engines.last_mut();
    let Some(group) = engine.and_then(|engine| engine.groups.last_mut()) else { return };
    add_names(&mut group.messages, line, "spoe-message", &mut context.report);
}
