//! The conditions for setting a variable (`ifexists` and others). Must never depend on what sets it.

use super::{Scope, Variable};
use crate::sample::{Context, Value};

/// The conditions for setting a variable (`ifexists` and others).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VariableCondition {
    /// Whether it must exist: `ifexists`, `ifnotexists`. Variables of the process always exist.
    pub exists: Option<bool>,
    /// Whether the new value must be empty: `ifempty`, `ifnotempty`.
    pub empty: Option<bool>,
    /// Whether it must have a value: `ifset`, `ifnotset`.
    pub set: Option<bool>,
    /// Its value must be greater than the new one, if both are integers: `ifgt`.
    pub greater: bool,
    /// Its value must be less than the new one, if both are integers: `iflt`.
    pub less: bool,
}

impl VariableCondition {
    /// Sets a variable to a new value, if the condition holds. Does nothing without a value.
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

    /// Adds a condition by its keyword.
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
