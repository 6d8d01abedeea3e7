//! Fetches of the rule that ended the processing of a stream, or that it waits for (section 7.3.2). Must never return
//! more of a rule than its position.

use super::{Fetch, plain};
use crate::sample::{Context, Places, RulePlace, Type, Value};
use std::fmt::Write as _;

const RUNNING: Places = Places::RUNNING;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    plain("last_entity", Type::Str, RUNNING, "File and line of the last rule that ended an evaluation.", |c, _| {
        entity(c, c.probes.stream()?.last_rule?)
    }),
    plain("last_rule_file", Type::Str, RUNNING, "File of the last rule that ended an evaluation.", |c, _| {
        file(c, c.probes.stream()?.last_rule?).map(|name| Value::Str(name.as_bytes()))
    }),
    plain("last_rule_line", Type::Int, RUNNING, "Line of the last rule that ended an evaluation.", |c, _| {
        Some(Value::Int(c.probes.stream()?.last_rule?.line.into()))
    }),
    plain("term_events", Type::Str, RUNNING, "Termination events of the layers; none are recorded.", |c, _| {
        c.probes.session().map(|_| Value::Str(b"{-,-,-,-,-,-,-}"))
    }),
    plain("waiting_entity", Type::Str, RUNNING, "File and line of the rule or filter that was waited for.", |c, _| {
        entity(c, c.probes.stream()?.waiting_rule?)
    }),
];

fn file<'a>(context: &Context<'a>, place: RulePlace) -> Option<&'a str> {
    context.program?.file(place.file)
}

fn entity<'a>(context: &Context<'a>, place: RulePlace) -> Option<Value<'a>> {
    let file = file(context, place)?;
    let mut text = context.text(file.len() + 11);
    write!(text, "{file}:{}", place.line).ok()?;
    text.finish().map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Files, Scene, check_rows};

    #[test]
    fn rules_are_told_by_their_places() {
        let scene = Scene { files: Some(Files(&["a.cfg"])), complete: true, ..Scene::default() };
        let rows = [
            ("last_entity", "a.cfg:12"),
            ("last_rule_file", "a.cfg"),
            ("last_rule_line", "12"),
            ("waiting_entity", "<none>"),
            ("term_events", "{-,-,-,-,-,-,-}"),
        ];
        check_rows(&scene, &rows);
    }
}
