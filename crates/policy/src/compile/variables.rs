//! `set-var` and `set-var-fmt` of the `global` section: process variables with initial values (configuration manual,
//! section 3.1), evaluated when the configuration is compiled. Must never set a variable of another scope.

use super::{Compiler, Resolver};
use crate::rule::{Assigned, expression_text};
use base::moment::Moment;
use bumpalo::Bump;
use config::diagnostic::Form;
use config::spec::{SetVariableSpec, Spec, TuneSpec};
use expression::Names as _;
use expression::sample::{Context, EvalPlace, Meter, Probes};
use expression::variable::VariableSizes;
use expression::variable::{Scope, Store, StoredValue, Variable, Variables};
use std::sync::RwLock;

impl Compiler<'_> {
    /// Sets the variables; each expression may use the ones before it.
    pub(super) fn variables(&mut self, spec: &Spec, limit: usize) -> Vec<(Variable, StoredValue)> {
        let written = &spec.global.variables;
        if written.is_empty() {
            return Vec::new();
        }
        let (store, limits) = (RwLock::<Store>::default(), sizes(&spec.global.tune).limits());
        for line in written {
            let Some((variable, source)) = self.set_variable(spec, line) else { continue };
            let arena = Bump::new();
            let probes = self.resolver.probes();
            let variables = Variables { process: Some(&store), limits: limits.as_ref(), ..Variables::default() };
            source.set(&variable, &context(&arena, limit, probes, variables, &Meter::default()));
        }
        let Ok(store) = store.into_inner() else { return Vec::new() };
        // A converter may have set further variables.
        let known = self.shared.known.borrow();
        let named = store.iter(Scope::Process).filter_map(|(name, stored)| {
            let text = format!("proc.{}", known.text(name)?);
            let value = StoredValue::from(stored.value());
            Some((Variable { scope: Scope::Process, name, text: text.into() }, value))
        });
        named.collect()
    }

    fn set_variable(&mut self, spec: &Spec, line: &SetVariableSpec) -> Option<(Variable, Assigned)> {
        let keyword = if line.is_format { "set-var-fmt" } else { "set-var" };
        let variable = match Variable::parse(&line.name.text) {
            Ok(variable) if variable.scope == Scope::Process => variable,
            Ok(variable) => {
                let message = format!(
                    "'{keyword}': cannot set variable '{}', only scope 'proc' is permitted in the global section.",
                    variable.text
                );
                self.alert(line.name.span, Form::Parsing, message);
                return None;
            }
            Err(why) => {
                self.alert(line.name.span, Form::Parsing, why);
                return None;
            }
        };
        let names = self.names(spec, None);
        names.declare(&variable);
        let text = if line.is_format {
            line.value.first()?.text.clone()
        } else {
            expression_text(&line.value, names.vocabulary())
        };
        match Assigned::parse(&variable, &text, line.is_format, EvalPlace::Configuration, &names) {
            Ok(source) => Some((variable, source)),
            Err((message, hint)) => {
                let span = line.value.first().map_or(line.name.span, |word| word.span);
                self.alert_with_hint(span, Form::Parsing, message, hint);
                None
            }
        }
    }
}

/// Returns the variables of the `global` section, for scripts that use them while the configuration is read: names and
/// values. Errors are reported when the configuration is compiled.
pub fn early_variables(spec: &Spec, resolver: &mut dyn Resolver) -> Vec<(String, StoredValue)> {
    let mut out = Vec::new();
    let limit = super::buffers(spec).0;
    let set = Compiler::new(spec, resolver, &mut out).variables(spec, limit);
    set.into_iter().map(|(variable, value)| (variable.text.into(), value)).collect()
}

/// Returns the context of expressions that are evaluated at compile time.
pub(super) fn context<'a>(
    arena: &'a Bump,
    limit: usize,
    probes: &'a dyn Probes,
    variables: Variables<'a>,
    meter: &'a Meter,
) -> Context<'a> {
    Context { variables, ..Context::blank(arena, limit, Moment::ZERO, probes, meter) }
}

/// Returns the size limits of variables ("tune.vars.*").
pub(super) fn sizes(tune: &TuneSpec) -> VariableSizes {
    let written = &tune.variables;
    let bytes = |size: Option<u64>| size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    VariableSizes {
        global: bytes(written.global),
        process: bytes(written.process),
        session: bytes(written.session),
        transaction: bytes(written.transaction),
        message: bytes(written.message),
        check: bytes(written.check),
    }
}
