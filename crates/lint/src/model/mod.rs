//! The configuration as rules look at it: proxies with their own lines, ACLs and rules, and which backends a frontend may
//! select. Owns the reading of words that the parser left as they are. Must never judge them.

mod condition;
mod elsewhere;
mod reach;
mod sample;
mod statement;
mod tables;

pub use condition::{Acl, Condition, Term, TermKind, Test, predefined};
pub use sample::{Sample, samples_in};
pub use statement::{Statement, StatementKind};
pub use tables::{CounterAccess, CounterRead, Datum, Track, counter_of_action, counter_of_call};

use crate::Configuration;
use config::document::{Document, Line, Section, Word};
use config::span::Span;
use config::spec::{ProxyKind, ProxySpec, Spec, TableSpec};
use reach::Reach;
use std::collections::{BTreeMap, BTreeSet};

/// A whole configuration.
pub struct Model<'a> {
    pub spec: &'a Spec,
    pub document: &'a Document,
    pub proxies: Vec<Proxy<'a>>,
    reach: Reach,
    /// Indices of the proxies that accept connections.
    fronts: Vec<usize>,
    /// Indices of the proxies that may have servers, by name.
    backends: BTreeMap<&'a str, usize>,
    /// Stick tables of proxies, by name.
    tables: BTreeMap<&'a str, &'a TableSpec>,
    /// Names in lines that are not part of the document.
    elsewhere: BTreeSet<String>,
}

/// A `frontend`, `backend` or `listen`.
pub struct Proxy<'a> {
    pub spec: &'a ProxySpec,
    /// Index in [`Model::proxies`] and in [`Spec::proxies`].
    pub index: usize,
    /// The section itself.
    pub section: Option<&'a Section>,
    /// Its lines.
    pub lines: &'a [Line],
    /// Its ACLs, those of its `defaults` section included.
    pub acls: Vec<Acl>,
    /// Positions in `acls`, by name and by whether the ACL is inherited.
    acl_names: BTreeMap<(String, bool), usize>,
    /// Its rules in the order of the file, those of its `defaults` section included.
    pub statements: Vec<Statement<'a>>,
    /// Its `track-sc` rules.
    pub tracks: Vec<Track>,
    /// The samples in its own lines.
    pub samples: Vec<Sample>,
}

impl<'a> Model<'a> {
    pub fn new(configuration: Configuration<'a>) -> Self {
        let Configuration { sources, document, spec } = configuration;
        let mut sections = document.sections.iter();
        let mut proxies = Vec::with_capacity(spec.proxies.len());
        for (index, proxy) in spec.proxies.iter().enumerate() {
            // Both lists have the order of the files.
            let own = sections.find(|section| {
                (section.line.file, section.line.number) == (proxy.name.span.file, proxy.name.span.line)
            });
            proxies.push(Proxy::new(proxy, index, own));
        }
        let reach = Reach::of(&spec.proxies);
        let backends = proxies.iter().filter(|proxy| proxy.may_have_servers());
        let backends = backends.map(|proxy| (proxy.name(), proxy.index)).collect();
        let fronts = proxies.iter().filter(|proxy| proxy.has_clients()).map(|proxy| proxy.index).collect();
        let tables = spec.proxies.iter().filter_map(|proxy| Some((&*proxy.name.value, proxy.stick_table.as_ref()?)));
        let tables = tables.collect();
        Self {
            spec,
            document,
            proxies,
            reach,
            fronts,
            backends,
            tables,
            elsewhere: elsewhere::names(sources, document),
        }
    }

    /// Whether a name is in a block whose condition is false, or in a file that a filter names.
    pub fn is_named_elsewhere(&self, name: &str) -> bool {
        self.elsewhere.contains(name)
    }

    /// Returns the proxy of that name that may have servers.
    pub fn backend(&self, name: &str) -> Option<&Proxy<'a>> {
        self.proxies.get(*self.backends.get(name)?)
    }

    /// Whether a script may do what no line says.
    pub fn has_scripts(&self) -> bool {
        !self.spec.global.lua.scripts.is_empty()
    }

    /// Returns the proxies that may serve requests of a frontend, itself included if it has servers of its own.
    pub fn backends_of(&self, frontend: &Proxy<'a>) -> impl Iterator<Item = &Proxy<'a>> {
        let all = if frontend.has_clients() { self.proxies.as_slice() } else { &[] };
        all.iter().filter(|backend| self.reach.is_selected(frontend.index, backend.index))
    }

    /// Returns the frontends whose requests a backend may serve.
    pub fn frontends_of(&self, backend: &Proxy<'a>) -> impl Iterator<Item = &Proxy<'a>> {
        let frontends = self.fronts.iter().filter_map(|index| self.proxies.get(*index));
        frontends.filter(|frontend| self.reach.is_selected(frontend.index, backend.index))
    }

    /// Returns every proxy whose rules a stream of this proxy may run through.
    pub fn company_of(&self, proxy: &Proxy<'a>) -> Vec<&Proxy<'a>> {
        let others = self.backends_of(proxy).chain(self.frontends_of(proxy));
        let mut all: Vec<&Proxy<'a>> = others.chain(self.proxies.get(proxy.index)).collect();
        all.sort_by_key(|one| one.index);
        all.dedup_by_key(|one| one.index);
        all
    }

    /// Returns every line of every section, the line that opens it first.
    pub fn lines(&self) -> impl Iterator<Item = &'a Line> {
        self.document.sections.iter().flat_map(|section| std::iter::once(&section.line).chain(&section.body))
    }
}

impl<'a> Proxy<'a> {
    fn new(spec: &'a ProxySpec, index: usize, section: Option<&'a Section>) -> Self {
        let lines = section.map_or(&[][..], |section| &section.body);
        let acls = condition::acls(&spec.rules.acls);
        let statements = statement::statements(spec);
        let acl_names = acls.iter().enumerate().map(|(at, acl)| ((acl.name.clone(), acl.inherited), at)).collect();
        let tracks = tables::tracks(&statements, &spec.name.value);
        let samples = lines.iter().flat_map(|line| samples_in(&line.words)).collect();
        Self { spec, index, section, lines, acls, acl_names, statements, tracks, samples }
    }

    pub fn name(&self) -> &'a str {
        &self.spec.name.value
    }

    /// The place of its name.
    pub fn span(&self) -> Span {
        self.spec.name.span
    }

    /// Whether it accepts connections.
    pub fn has_clients(&self) -> bool {
        self.spec.kind != ProxyKind::Backend
    }

    /// Whether it may have servers.
    pub fn may_have_servers(&self) -> bool {
        self.spec.kind != ProxyKind::Frontend
    }

    /// Returns the noun for its kind.
    pub fn noun(&self) -> &'static str {
        match self.spec.kind {
            ProxyKind::Frontend => "frontend",
            ProxyKind::Backend => "backend",
            ProxyKind::Listen => "listen",
        }
    }

    /// Returns its own lines that begin with these words.
    pub fn own<'s>(&'s self, words: &'s [&'s str]) -> impl Iterator<Item = &'a Line> + 's {
        self.lines.iter().filter(|line| begins(line, words))
    }

    /// Returns the ACL that a condition names; `inherited`: the condition is in the `defaults` section.
    pub fn acl(&self, name: &str, inherited: bool) -> Option<&Acl> {
        self.acls.get(*self.acl_names.get(&(name.to_owned(), inherited))?)
    }

    /// Returns every test: those of ACLs and those written in conditions.
    pub fn tests(&self) -> impl Iterator<Item = &Test> {
        let named = self.acls.iter().flat_map(|acl| &acl.tests);
        let conditions = self.statements.iter().filter_map(|statement| statement.condition.as_ref());
        named.chain(conditions.flat_map(Condition::own_tests))
    }
}

/// Whether a line begins with these words.
pub fn begins(line: &Line, words: &[&str]) -> bool {
    line.words.len() >= words.len() && line.words.iter().zip(words).all(|(own, word)| own.text == *word)
}

/// Splits a word where no name continues: `nbsrv(b/s)` contains `nbsrv`, `b` and `s`.
pub fn names_in(word: &Word) -> impl Iterator<Item = &str> {
    let in_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':');
    word.text.split(move |letter: char| !in_name(letter)).filter(|name| !name.is_empty())
}

/// Returns the words of a condition: from the first unquoted `if` or `unless` on.
pub fn condition_start(words: &[Word]) -> Option<usize> {
    words.iter().position(|word| !word.quoted && matches!(word.text.as_str(), "if" | "unless"))
}
