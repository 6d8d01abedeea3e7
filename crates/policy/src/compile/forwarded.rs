//! Compiles the expressions of `option forwarded`. Must never write the field.

use super::Compiler;
use super::rules::owner;
use config::diagnostic::{Diagnostic, Form};
use config::spec::{ForwardedExpressionSpec, ForwardedPart, Mode, ProxyKind, ProxySpec, Spec};
use expression::Expression;
use expression::sample::EvalPlace;

impl Compiler<'_> {
    /// Compiles a proxy's expressions, if it has servers that receive the field.
    pub(super) fn forwarded(
        &mut self,
        spec: &Spec,
        index: usize,
        written: &ProxySpec,
    ) -> Vec<(ForwardedPart, Expression)> {
        if written.kind == ProxyKind::Frontend || written.mode != Mode::Http {
            return Vec::new();
        }
        let expressions = written.http.forwarded_expressions.iter();
        expressions.filter_map(|one| Some((one.part, self.forwarded_expression(spec, index, written, one)?))).collect()
    }

    fn forwarded_expression(
        &mut self,
        spec: &Spec,
        index: usize,
        written: &ProxySpec,
        ForwardedExpressionSpec { line, .. }: &ForwardedExpressionSpec,
    ) -> Option<Expression> {
        let names = self.names(spec, Some(index));
        names.begin(line);
        let word = line.words.first()?;
        let file = self.shared.files.get(line.span.file as usize).map_or("", |name| name);
        let (what, text) = (format!("{} [{file}:{}]", owner(written), line.span.line), &word.text);
        match Expression::parse_all(text, EvalPlace::BackRequestHead, &names) {
            Ok(expression) => {
                if let Some(why) = expression.fetch().refusal(EvalPlace::BackRequestHead) {
                    let message = format!("{what}: in 'option forwarded' sample expression '{text}' : {why}.");
                    self.warn(Diagnostic::warning(word.span, message).with_form(Form::Bare));
                }
                Some(expression)
            }
            Err(error) => {
                let why = error.message;
                let message = format!("{what}: failed to parse 'option forwarded' expression '{text}' in : {why}.");
                self.alert_with_hint(word.span, Form::Bare, message, error.hint);
                None
            }
        }
    }
}
