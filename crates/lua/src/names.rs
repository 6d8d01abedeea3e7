//! Resolves names in expressions of scripts at run time. Must never read a file.

use config::spec::ProxyKind;
use expression::Names;
use expression::pattern::{Content, Lookup, Method, Use};
use expression::vocabulary::Vocabulary;
use policy::program::Program;

/// The names of a program, as seen by one of its proxies.
pub(crate) struct Running<'a> {
    program: &'a Program,
    current: Option<usize>,
}

impl<'a> Running<'a> {
    pub(crate) fn new(program: &'a Program, current: Option<usize>) -> Self {
        Self { program, current }
    }

    fn find(&self, name: &str, other: ProxyKind) -> Option<usize> {
        self.program.proxies.iter().find(|proxy| proxy.kind != other && &*proxy.name == name).map(|proxy| proxy.index)
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
        let (backend, server) = match name.split_once('/') {
            Some((backend, server)) => {
                (self.backend(backend).ok_or_else(|| format!("unable to find proxy '{backend}'"))?, server)
            }
            None => (self.current.ok_or_else(missing)?, name),
        };
        let found = self.program.proxies[backend].servers().find(|known| &*known.name == server);
        Ok((backend, found.ok_or_else(missing)?.index))
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.program.registry.vocabulary
    }

    fn userlist(&self, _: &str) -> Option<usize> {
        None
    }

    fn table(&self, name: &str) -> Option<usize> {
        self.program.tables.iter().position(|table| *table.name == *name)
    }

    fn current(&self) -> Option<usize> {
        self.current
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("cannot read '{path}' at runtime"))
    }

    fn list(&self, _: &str, _: Use, _: Method, _: bool, _: Content) -> Result<Lookup, String> {
        Err("map: cannot load map at runtime".to_owned())
    }
}
