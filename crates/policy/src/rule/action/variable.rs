//! Actions on variables: `set-var`, `set-var-fmt`, `unset-var`.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use crate::sample::{Context, Value};
use crate::variable::{Scope, Variable};

/// Every action of the family.
pub(super) const TABLE: &[Row] =
    &[row("set-var", set_variable), row("set-var-fmt", format_variable), row("unset-var", unset_variable)];

/// When a variable is set (`ifexists` and its kin).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VariableCondition {
    /// Whether it has to be there already: `ifexists`, `ifnotexists`. Those of the process are there from the start.
    pub exists: Option<bool>,
    /// Whether the new value has to be empty: `ifempty`, `ifnotempty`.
    pub empty: Option<bool>,
    /// Whether it has to have a value already: `ifset`, `ifnotset`.
    pub set: Option<bool>,
    /// Its value has to be greater than the new one, if both are integers: `ifgt`.
    pub greater: bool,
    /// Its value has to be less than the new one, if both are integers: `iflt`.
    pub less: bool,
}

impl VariableCondition {
    /// Sets a variable to a new value, if the condition holds. Without a value nothing happens.
    pub fn set(&self, context: &Context<'_>, variable: &Variable, value: Option<Value<'_>>) {
        if let Some(value) = value
            && self.holds(context, variable, value)
        {
            context.variables.set(variable, value);
        }
    }

    /// Whether a variable may be set to that value.
    pub fn holds(&self, context: &Context<'_>, variable: &Variable, value: Value<'_>) -> bool {
        if *self == Self::default() {
            return true;
        }
        let is_empty = value.bytes().is_some_and(<[u8]>::is_empty);
        let is_set = context.variables.is_set(variable);
        let exists = is_set || variable.scope == Scope::Process;
        let compares = |holds: fn(i64, i64) -> bool| match (context.variables.get(context, variable), value) {
            (Some(Value::Int(old)), Value::Int(new)) => holds(old, new),
            _ => true,
        };
        self.exists.is_none_or(|wanted| exists == wanted)
            && self.empty.is_none_or(|wanted| is_empty == wanted)
            && self.set.is_none_or(|wanted| is_set == wanted)
            && (!self.greater || compares(|old, new| old > new))
            && (!self.less || compares(|old, new| old < new))
    }

    /// Adds one of the manual's words.
    ///
    /// # Errors
    /// There is no such condition.
    pub fn add(&mut self, word: &str) -> Result<(), String> {
        match word {
            "ifexists" => self.exists = Some(true),
            "ifnotexists" => self.exists = Some(false),
            "ifempty" => self.empty = Some(true),
            "ifnotempty" => self.empty = Some(false),
            "ifset" => self.set = Some(true),
            "ifnotset" => self.set = Some(false),
            "ifgt" => self.greater = true,
            "iflt" => self.less = true,
            _ => return Err(format!("unknown condition \"{word}\"")),
        }
        Ok(())
    }
}

/// What stands in the parentheses.
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
    // An empty condition is none.
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
    Ok(Action::SetVariable(variable, condition, parsing.expression(words)?))
}

fn format_variable(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let (variable, condition) = variable(words)?;
    parsing.names.declare(&variable);
    let word = words.expect("missing fetch method")?;
    Ok(Action::FormatVariable(variable, condition, parsing.text_format(word)?))
}
