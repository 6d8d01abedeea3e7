//! `get var` and `set var`: process-wide variables (management manual, section 9.3). Must never access a variable of a
//! session or a stream.

use config::spec::{ProxyKind, RuntimeLevel};
use expression::Names;
use expression::pattern::{Content, Lookup, Method, Use};
use expression::sample::EvalPlace;
use expression::variable::{Scope, Variable};
use expression::vocabulary::Vocabulary;
use policy::program::Program;
use policy::rule::Assigned;

use super::super::command::Mode;
use super::super::{Call, Command, Run};
use engine::generation::Generation;
use engine::service::streamless_context::lend_process;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("get var", "get var <name>", "retrieve contents of a process-wide variable", Run::Now(get))
        .at(RuntimeLevel::Operator),
    Command::new(
        "set var",
        "set var <name> [fmt|expr] {<fmt>|<expr>}",
        "set variable from an expression/format",
        Run::Now(set),
    )
    .at(RuntimeLevel::Operator)
    .in_mode(Mode::Experimental),
];

/// Resolves names at run time: proxies of the configuration; files are not read.
struct Running<'a>(&'a Program);

impl Running<'_> {
    fn find(&self, name: &str, other: ProxyKind) -> Option<usize> {
        self.0.proxies.iter().find(|proxy| proxy.kind != other && &*proxy.name == name).map(|proxy| proxy.index)
    }
}

impl Names for Running<'_> {
    fn frontend(&self, name: &str) -> Option<usize> {
        self.find(name, ProxyKind::Backend)
    }

    fn backend(&self, name: &str) -> Option<usize> {
        self.find(name, ProxyKind::Frontend)
    }

    fn server(&self, name: &str) -> Result<(usize, usize), String> {
        let missing = || format!("unable to find server '{name}'");
        let (backend, server) = name.split_once('/').ok_or_else(missing)?;
        let index = self.backend(backend).ok_or_else(|| format!("unable to find proxy '{backend}'"))?;
        let found = self.0.proxies[index].servers().find(|known| &*known.name == server);
        Ok((index, found.ok_or_else(missing)?.index))
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.0.registry.vocabulary
    }

    fn userlist(&self, _: &str) -> Option<usize> {
        None
    }

    fn current(&self) -> Option<usize> {
        None
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("cannot read '{path}' at runtime"))
    }

    fn list(&self, _: &str, _: Use, _: Method, _: bool, _: Content) -> Result<Lookup, String> {
        Err("map: cannot load map at runtime".to_owned())
    }
}

fn get(call: &mut Call<'_, Worker>) {
    let name = call.word(2).to_owned();
    if name.is_empty() {
        return call.refuse("Missing process-wide variable identifier.\n");
    }
    let variable = Variable::parse(&name).ok().filter(|variable| variable.scope == Scope::Process);
    let line = variable.and_then(|variable| {
        lend_process(call.state, call.generation, "CLI", |context| {
            let value = context.variables.get(context, &variable)?;
            let mut line = format!("{name}: type={} value=<", value.kind()).into_bytes();
            line.extend(context.as_text(value).unwrap_or_default());
            line.extend(b">\n");
            Some(line)
        })
    });
    match line {
        Some(line) => call.answer.push(line),
        None => call.refuse("Variable not found.\n"),
    }
}

fn set(call: &mut Call<'_, Worker>) {
    let (name, kind, further) = (call.word(2).to_owned(), call.word(3).to_owned(), call.word(4).to_owned());
    if name.is_empty() {
        return call.refuse("Missing process-wide variable identifier.\n");
    }
    if kind.is_empty() {
        return call.refuse("Missing either 'expr', 'fmt' or expression.\n");
    }
    let (is_format, text) = match (kind.as_str(), further.is_empty()) {
        (_, true) => (false, &kind),
        ("expr", false) => (false, &further),
        ("fmt", false) => (true, &further),
        (other, false) => {
            return call.refuse(&format!("'set var': arg type must be either 'expr' or 'fmt' but got '{other}'.\n"));
        }
    };
    if let Err(why) = assign(call.state, call.generation, &name, text, is_format) {
        call.refuse(&format!("{why}\n"));
    }
}

fn assign(worker: &Worker, generation: &Generation, name: &str, text: &str, is_format: bool) -> Result<(), String> {
    let variable = Variable::parse(name)?;
    if variable.scope != Scope::Process {
        return Err(format!("'set var': cannot set variable '{name}', only scope 'proc' is permitted here."));
    }
    let live = &worker.process.live;
    let names = Running(&generation.program);
    let assigned = Assigned::parse(&variable, text, is_format, EvalPlace::Runtime, &names).map_err(|(why, _)| why)?;
    if let Ok(mut known) = live.names.write() {
        known.add(&variable);
    }
    lend_process(worker, generation, "CLI", |context| assigned.set(&variable, context));
    Ok(())
}
