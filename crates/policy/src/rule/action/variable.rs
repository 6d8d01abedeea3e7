//! Actions on variables: `set-var`, `set-var-fmt`, `unset-var`. Must never set one.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use expression::TokenAlgorithmUse;
use expression::variable::{Variable, VariableCondition};

/// The actions of this family.
pub(super) const TABLE: &[Row] =
    &[row("set-var", set_variable), row("set-var-fmt", format_variable), row("unset-var", unset_variable)];

/// Parses the parentheses: the variable and its conditions.
fn variable(words: &Words<'_>) -> Result<(Variable, VariableCondition), RuleError> {
    let Some(inside) = words.parentheses() else {
        return Err(RuleError::new(format!(
            "invalid or incomplete action '{}'. Expects 'set-var(<var-name>)', 'set-var-fmt(<var-name>)' or 'unset-var(<var-name>)'",
            words.action()
        )));
    };
    let mut parts = inside.split(',').map(str::trim);
    let variable = Variable::parse(parts.next().unwrap_or_default()).map_err(RuleError::new)?;
    let mut condition = VariableCondition::default();
    // Empty conditions are ignored.
    for part in parts.filter(|part| !part.is_empty()) {
        condition.add(part).map_err(RuleError::new)?;
    }
    Ok((variable, condition))
}

fn unset_variable(words: &mut Words<'_>, _: &Parsing<'_>) -> Result<Action, RuleError> {
    if words.parentheses().is_some_and(|inside| inside.contains(',')) {
        return Err(RuleError::new(
            "unset-var does not expect parameters after the variable name. Only \"set-var\" and \"set-var-fmt\" manage conditions",
        ));
    }
    Ok(Action::UnsetVariable(variable(words)?.0))
}

fn set_variable(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let (variable, condition) = variable(words)?;
    parsing.names.declare(&variable);
    parsing.names.note_token_algorithm(TokenAlgorithmUse::Assigned(&variable));
    Ok(Action::SetVariable(variable, condition, parsing.expression(words)?))
}

fn format_variable(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let (variable, condition) = variable(words)?;
    parsing.names.declare(&variable);
    parsing.names.note_token_algorithm(TokenAlgorithmUse::Assigned(&variable));
    let word = words.expect("missing fetch method")?;
    Ok(Action::FormatVariable(variable, condition, parsing.text_format(word)?))
}
