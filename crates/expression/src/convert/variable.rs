//! Converters that set or remove a variable. Must never change the sample.

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::variable::VariableCondition;
use crate::{Argument, Arguments, Checking, Kind, Signature, TokenAlgorithmUse, to_variable};
use std::sync::Arc;

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "set-var",
        Signature::new(1, &[Kind::Str; 5]),
        Type::Any,
        Type::Any,
        "Sets a variable to the sample; no sample if a condition after the name is false.",
        set,
    )
    .checked(check_set),
    Converter::new("unset-var", Signature::new(1, &[Kind::Str]), Type::Any, Type::Any, "Unsets a variable.", unset)
        .checked(check_unset),
];

fn check_set(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    check_unset(arguments, checking)?;
    if let Some(variable) = arguments.variable(0) {
        checking.names.declare(variable);
        checking.names.note_token_algorithm(TokenAlgorithmUse::Assigned(variable));
    }
    let mut condition = VariableCondition::default();
    for index in 1..5 {
        if let Some(word) = arguments.utf8(index) {
            condition.add(word)?;
        }
    }
    arguments.set(1, Argument::Made(Arc::new(condition)));
    Ok(())
}

fn check_unset(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    if arguments.text(0).is_none_or(<[u8]>::is_empty) {
        return Err("Empty variable name cannot be accepted".to_owned());
    }
    to_variable(arguments, 0)
}

fn set<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (variable, condition) = (arguments.variable(0)?, arguments.made::<VariableCondition>(1)?);
    (condition.holds(context, variable, value) && context.variables.set(variable, value)).then_some(value)
}

fn unset<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    context.variables.unset(arguments.variable(0)?);
    Some(value)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn variables_are_set_and_removed() {
        let rows = [
            (7, "ifexists", "14"),
            (7, "ifnotexists", "<none>"),
            (7, "ifgt", "<none>"),
            (7, "iflt", "14"),
            (3, "ifgt", "6"),
            (3, "iflt", "<none>"),
            (3, "ifempty", "<none>"),
            (3, "ifnotempty", "6"),
            (3, "ifset", "6"),
            (3, "ifnotset", "<none>"),
            (3, "ifset,ifgt", "6"),
            (3, "ifset,iflt", "<none>"),
            (3, "nope", "!invalid args in converter 'set-var' : unknown condition \"nope\""),
        ];
        for (number, conditions, expected) in rows {
            let text = format!("int(5),set-var(txn.n),add({}),set-var(txn.n,{conditions}),add(txn.n)", number - 5);
            assert_eq!(Scene::default().eval(&text), expected, "{text}");
        }
        check_rows(
            &Scene::default(),
            &[
                ("int(7),set-var(txn.x,ifexists)", "<none>"),
                ("str(3),set-var(txn.n),set-var(txn.n,iflt),add(1)", "4"),
                ("int(3),set-var(txn.n),unset-var(txn.n),add(txn.n)", "<none>"),
                ("int(3),unset-var(txn.n)", "3"),
                ("int(3),set-var()", "!invalid args in converter 'set-var' : Empty variable name cannot be accepted"),
            ],
        );
    }
}
