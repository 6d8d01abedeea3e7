//! `when`: passes a sample through under a condition (section 7.3.1). Must never change it.

use super::Converter;
use crate::condition::AclReference;
use crate::sample::{Context, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use std::sync::Arc;

/// Every converter of the family.
pub const TABLE: &[Converter] = &[Converter::new(
    "when",
    Signature::new(1, &[Kind::Str, Kind::Str, Kind::Str]),
    Type::Any,
    Type::Any,
    "Returns the sample unchanged if the condition holds; no sample otherwise.",
    when,
)
.checked(check)];

/// The condition to be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selector {
    Stopping,
    Normal,
    Error,
    Forwarded,
    ToApplet,
    Processed,
    Acl,
}

const SELECTORS: [(&str, Selector); 7] = [
    ("stopping", Selector::Stopping),
    ("normal", Selector::Normal),
    ("error", Selector::Error),
    ("forwarded", Selector::Forwarded),
    ("toapplet", Selector::ToApplet),
    ("processed", Selector::Processed),
    ("acl", Selector::Acl),
];

fn check(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    let text = arguments.utf8(0).unwrap_or_default();
    let (name, negated) = text.strip_prefix('!').map_or((text, false), |name| (name, true));
    let Some((_, selector)) = SELECTORS.iter().find(|(known, _)| *known == name) else {
        let names = SELECTORS.map(|(name, _)| name).join(",");
        return Err(format!("expects a supported keyword among {{{names}}} but got '{name}'"));
    };
    if *selector == Selector::Acl {
        if !arguments.has(1) {
            return Err("'acl' selector requires an extra argument with the ACL name".to_owned());
        }
        AclReference::resolve(arguments, 1, false, checking)?;
    }
    arguments.set(0, Argument::Made(Arc::new((*selector, negated))));
    Ok(())
}

fn when<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (selector, negated) = *arguments.made::<(Selector, bool)>(0)?;
    let stream = || context.probes.stream();
    let holds = match selector {
        Selector::Stopping => context.probes.process().stopping,
        Selector::Normal => stream()?.is_normal,
        Selector::Error => !stream()?.is_normal,
        // Only servers respond to streams.
        Selector::ToApplet => false,
        Selector::Forwarded | Selector::Processed => stream()?.timings.connected.is_some(),
        Selector::Acl => arguments.made::<AclReference>(1)?.holds(context)?,
    };
    (holds != negated).then_some(value)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn samples_pass_under_conditions() {
        let rows = [
            ("str(a),when(stopping)", "<none>"),
            ("str(a),when(!stopping)", "a"),
            // Arguments that the condition does not take are ignored.
            ("str(a),when(!stopping,b)", "a"),
            ("str(a),when(!stopping,b,c)", "a"),
            ("str(a),when(stopping,b,c,d)", "!invalid arg 3 in converter 'when' : expected ')' before ',d)'"),
            ("str(a),when(normal)", "<none>"),
            ("str(a),when(error)", "a"),
            ("str(a),when(forwarded)", "a"),
            ("str(a),when(processed)", "a"),
            ("str(a),when(toapplet)", "<none>"),
            ("int(4),when(error),add(1)", "5"),
            (
                "str(a),when(foo)",
                "!invalid args in converter 'when' : expects a supported keyword among \
                 {stopping,normal,error,forwarded,toapplet,processed,acl} but got 'foo'",
            ),
            (
                "str(a),when(acl)",
                "!invalid args in converter 'when' : 'acl' selector requires an extra argument with the ACL name",
            ),
            ("str(a),when(acl,b)", "!invalid args in converter 'when' : ACL 'b' not found"),
        ];
        check_rows(&Scene::default(), &rows);
    }
}
