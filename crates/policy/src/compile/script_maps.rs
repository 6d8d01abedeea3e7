//! Compiles the maps that scripts use: they are read like those of expressions, and share their changes. Must never
//! look up a key.

use super::{Compiler, NoData, Resolver, variables};
use crate::program::Program;
use bumpalo::Bump;
use config::diagnostic::{Diagnostic, Severity};
use config::spec::Spec;
use expression::Conversion;
use expression::pattern::{Key, ListName, ListStates, Registry};
use expression::sample::{Context, EvalPlace, Meter, Type};
use expression::variable::Variables;

impl Compiler<'_> {
    /// Compiles the maps of the registry, in order.
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

/// Reads a map for a script that looks up keys before there is a program. `text` is its converter. It has the contents
/// of the file: runtime changes apply to the program's lists.
///
/// # Errors
/// The file or the converter is invalid.
pub fn script_map(text: &str, resolver: &mut dyn Resolver) -> Result<Conversion, String> {
    let (spec, mut out) = (Spec::default(), Vec::new());
    Compiler::new(&spec, resolver, &mut out).script_map(&spec, text)
}

/// A map that a script creates after the configuration was compiled.
#[derive(Debug, Clone, Copy)]
pub struct ScriptMap<'a> {
    /// The converter: `map_str("file")`.
    pub converter: &'a str,
    /// The file name with its prefix.
    pub file: &'a str,
    /// File and line of the script.
    pub place: (&'a str, usize),
}

/// Adds a map to a program and to the states of its lists. A list that the program already has for that file is shared,
/// including its runtime changes. Must not be called once requests are served: two concurrent callers could add a list
/// twice.
///
/// # Errors
/// The map is invalid.
pub fn add_script_map(
    map: ScriptMap<'_>,
    program: &Program,
    states: &ListStates,
    key: Key,
    resolver: &mut dyn Resolver,
) -> Result<Conversion, String> {
    let name = ListName::parse(map.file).reference();
    let (spec, mut out) = (Spec::default(), Vec::new());
    let mut compiler = Compiler::new(&spec, resolver, &mut out);
    compiler.shared.lists.replace(Registry::beside(&program.lists, name));
    let conversion = compiler.script_map(&spec, map.converter)?;
    let mut made = compiler.shared.lists.take().finish().all.iter().cloned().collect::<Vec<_>>();
    let Some(mut list) = made.pop() else { return Err("there is no such list".to_owned()) };
    if let Some(place) = program.lists.find(name) {
        let known = program.lists.all.get(place).zip(states.get(place));
        let (known, state) = known.ok_or_else(|| "there is no such list".to_owned())?;
        for view in list.views.iter().skip(known.views.len()) {
            state.add_view(view.clone());
            known.views.push(|_| view.clone()).map_err(|_| FULL.to_owned())?;
        }
        return Ok(conversion);
    }
    let (script, line) = map.place;
    list.description = format!("pattern loaded from file '{}' used by map at file '{script}' line {line}", map.file);
    states.add(&list, key).map_err(|_| FULL.to_owned())?;
    program.lists.add(list).map_err(|_| FULL.to_owned())?;
    Ok(conversion)
}

/// The error when too many maps are added.
const FULL: &str = "too many maps";

/// Calls `with` with an evaluation context for scripts that run before the process serves requests. `lists` are those
/// of the program, once there is one.
pub fn lend_early<T>(lists: Option<&ListStates>, known: Variables<'_>, with: impl FnOnce(&Context<'_>) -> T) -> T {
    let (arena, meter) = (Bump::new(), Meter::default());
    let limit = super::buffers(&Spec::default()).0;
    with(&Context { lists, ..variables::context(&arena, limit, &NoData, known, &meter) })
}
