//! Maps that scripts look up in: they are read as those of expressions are, and share their changes. Must never look one up.

use super::Compiler;
use config::diagnostic::{Diagnostic, Severity};
use config::spec::Spec;
use expression::Conversion;
use expression::sample::{EvalPlace, Type};

impl Compiler<'_> {
    /// The maps of the registry, in their order.
    pub(super) fn script_maps(&mut self, spec: &Spec) -> Box<[Conversion]> {
        let texts = self.shared.registry.maps.clone();
        let mut made = Vec::with_capacity(texts.len());
        for text in &texts {
            let names = self.names(spec, None);
            match Conversion::parse(text, Type::Str, EvalPlace::FrontRequestHead, &names) {
                Ok(conversion) => made.push(conversion),
                Err(error) => {
                    self.failed = true;
                    let why = error.message.trim_end_matches('.').to_owned();
                    self.out.push(Diagnostic::general(Severity::Alert, format!("Lua map '{text}' : {why}.")));
                }
            }
        }
        made.into()
    }
}
