//! Maps that scripts look up in: they are read as those of expressions are, and share their changes. Must never look one up.

use super::{Compiler, Nothing, Resolver, variables};
use bumpalo::Bump;
use config::diagnostic::{Diagnostic, Severity};
use config::spec::Spec;
use expression::Conversion;
use expression::pattern::ListStates;
use expression::sample::{Context, EvalPlace, Meter, Type};
use expression::variable::Variables;

impl Compiler<'_> {
    /// The maps of the registry, in their order.
    pub(super) fn script_maps(&mut self, spec: &Spec) -> Box<[Conversion]> {
        let texts = self.shared.registry.maps.clone();
        let mut made = Vec::with_capacity(texts.len());
        for text in &texts {
            match self.script_map(spec, text) {
                Ok(conversion) => made.push(conversion),
                Err(why) => {
                    self.failed = true;
                    self.out.push(Diagnostic::general(Severity::Alert, format!("Lua map '{text}' : {why}.")));
                }
            }
        }
        made.into()
    }

    fn script_map(&mut self, spec: &Spec, text: &str) -> Result<Conversion, String> {
        let names = self.names(spec, None);
        let made = Conversion::parse(text, Type::Str, EvalPlace::FrontRequestHead, &names);
        made.map_err(|error| error.message.trim_end_matches('.').to_owned())
    }
}

/// Reads a map for a script that looks up in it before there is a program. `text`: its converter. It has what the file has: changes
/// are those of the program's lists.
///
/// # Errors
/// What is wrong with the file, or the converter.
pub fn script_map(text: &str, resolver: &mut dyn Resolver) -> Result<Conversion, String> {
    let (spec, mut out) = (Spec::default(), Vec::new());
    Compiler::new(&spec, resolver, &mut out).script_map(&spec, text)
}

/// Lends an evaluation of a script that runs before the process serves. `lists`: those of the program that it is an evaluation of,
/// once there is one.
pub fn lend_early<T>(lists: Option<&ListStates>, known: Variables<'_>, with: impl FnOnce(&Context<'_>) -> T) -> T {
    let (arena, meter) = (Bump::new(), Meter::default());
    let limit = super::buffers(&Spec::default()).0;
    with(&Context { lists, ..variables::context(&arena, limit, &Nothing, known, &meter) })
}
