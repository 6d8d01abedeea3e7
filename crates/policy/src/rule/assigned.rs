//! Values assigned to variables outside of rules: in the `global` section and by the runtime API. Must never choose the
//! variable.

use expression::log_format::{LogFormat, Purpose};
use expression::sample::{Context, EvalPlace, Value};
use expression::variable::Variable;
use expression::{Expression, Names};

/// The source of a variable's value.
pub enum Assigned {
    /// An expression.
    Expression(Expression),
    /// A log-format string.
    Format(LogFormat),
}

impl Assigned {
    /// Parses the text after the variable's name.
    ///
    /// # Errors
    /// HAProxy's message, and a hint.
    pub fn parse(
        variable: &Variable,
        text: &str,
        is_format: bool,
        place: EvalPlace,
        names: &dyn Names,
    ) -> Result<Self, (String, Option<String>)> {
        if is_format {
            let format = LogFormat::for_rule(text, Purpose::Text, place, names);
            return format.map(Self::Format).map_err(|error| (error.to_string(), error.hint()));
        }
        let (expression, _) = Expression::parse(text, place, names).map_err(|error| (error.message, error.hint))?;
        if !expression.fetch().places.has(place) {
            let needs = expression.fetch().needs.unwrap_or_else(|| expression.fetch().places.needs());
            let message = format!(
                "fetch method 'set-var({})' extracts information from '{needs}', none of which is available here",
                variable.text
            );
            return Err((message, None));
        }
        Ok(Self::Expression(expression))
    }

    /// Sets the variable, if there is a value and enough space for it.
    pub fn set(&self, variable: &Variable, context: &Context<'_>) {
        match self {
            Self::Expression(expression) => {
                if let Some(value) = expression.evaluate(context) {
                    context.variables.set(variable, value);
                }
            }
            Self::Format(format) => {
                let mut text = Vec::new();
                format.render_in(context, &mut text);
                text.truncate(context.limit);
                context.variables.set(variable, Value::Str(&text));
            }
        }
    }
}
