//! Reads the sections in order: inheritance, duplicate names, then the finished specification.
//! Owns HAProxy's rules about `defaults`.

use super::inheritance::{self, Users};
use super::paths::Paths;
use super::place::{Holder, Section as Kind};
use super::proxy::{self, ProxyDraft};
use super::report::Report;
use super::{
    DEFAULT_BUFSIZE, Experimental, ReadContext, SpecOptions, elsewhere, filter, global, haterm, is_name_character,
    section, server, udp_lb, upgrade, verify,
};
use crate::diagnostic::{Diagnostic, Form, Severity};
use crate::document::{Document, Line, Section, Sources};
use crate::span::{Span, Spanned};
use crate::spec::{DefaultsSpec, GlobalSpec, Mode, SectionsSpec, Spec};
use std::collections::{HashMap, HashSet};

struct Defaults {
    /// Empty for an anonymous section.
    name: String,
    span: Span,
    draft: ProxyDraft,
    /// The same as sections inherit it.
    heir: ProxyDraft,
    /// A section names it in `from`.
    explicit: bool,
    /// A section after it has no `from`.
    implicit: bool,
    told: bool,
    /// Sections that inherit its rules.
    users: Users,
}

/// State of reading.
struct Reader<'a> {
    around: ReadContext<'a>,
    report: Report<'a>,
    global: GlobalSpec,
    content: SectionsSpec,
    defaults: Vec<Defaults>,
    proxies: Vec<ProxyDraft>,
    /// The origin of a proxy without a `defaults` section.
    documented: ProxyDraft,
    /// The first proxy of each name.
    names: HashMap<String, usize>,
    /// The first proxy of each explicit number.
    ids: HashMap<u32, usize>,
    /// The `defaults` sections of each name.
    named_defaults: HashMap<String, Vec<usize>>,
}

/// Reads all sections.
pub(super) fn read(sources: &Sources, document: &Document, options: &SpecOptions, out: &mut Vec<Diagnostic>) -> Spec {
    let paths = Paths::of(document);
    let experimental = Experimental::default();
    let around = ReadContext {
        sources,
        environment: &document.environment,
        options,
        paths: &paths,
        bufsize: DEFAULT_BUFSIZE,
        earlier: &[],
        local_peer: &options.local_peer,
        experimental: &experimental,
        follows_sections: false,
    };
    let mut reader = Reader {
        around,
        report: Report::new(out).with_other_tables(elsewhere::hint),
        global: GlobalSpec::default(),
        content: SectionsSpec::default(),
        defaults: Vec::new(),
        proxies: Vec::new(),
        documented: ProxyDraft::documented().heir(),
        names: HashMap::new(),
        ids: HashMap::new(),
        named_defaults: HashMap::new(),
    };
    for section in &document.sections {
        reader.section(section);
    }
    reader.finish()
}

impl Reader<'_> {
    fn section(&mut self, section: &Section) {
        let is_global = section.line.keyword() == "global";
        self.around.follows_sections |= !is_global;
        match section.line.keyword() {
            "global" => {
                global::read(section, &mut self.global, self.around, &mut self.report);
                self.around.bufsize = self.global.tune.bufsize.unwrap_or(DEFAULT_BUFSIZE);
            }
            "defaults" => self.read_defaults(section),
            "frontend" => self.read_proxy(section, Kind::Frontend),
            "listen" => self.read_proxy(section, Kind::Listen),
            "backend" => self.read_proxy(section, Kind::Backend),
            udp_lb::NAME => self.read_udp_lb(section),
            name => match section::find(name) {
                Some(row) => {
                    let said = self.global.localpeer.as_deref();
                    let around = ReadContext { local_peer: said.unwrap_or(self.around.local_peer), ..self.around };
                    section::read(row, section, &mut self.content, around, &mut self.report);
                }
                None => {
                    let message = format!("unknown keyword '{name}' out of section.");
                    self.report.alert(section.line.span(0), message);
                }
            },
        }
    }

    fn read_defaults(&mut self, section: &Section) {
        let line = &section.line;
        let (name, from) = defaults_arguments(line);
        let mut draft = ProxyDraft::documented();
        if let Some(at) = from {
            match self.find_defaults(line, at, &format!("defaults '{name}'")) {
                Some(index) => {
                    self.refuse_rules(line, Kind::Defaults, index);
                    draft = self.defaults[index].draft.clone();
                }
                None => draft.gaps.base = true,
            }
        }
        if !name.is_empty() {
            self.refuse_replacement(line, &name);
        }
        let holder = Holder { section: Kind::Defaults, name: Some(name.as_str()).filter(|name| !name.is_empty()) };
        proxy::read(section, &mut draft, holder, self.around, &mut self.report);
        let span = line.whole();
        self.named_defaults.entry(name.clone()).or_default().push(self.defaults.len());
        self.defaults.push(Defaults {
            name,
            span,
            heir: draft.heir(),
            draft,
            explicit: false,
            implicit: false,
            told: false,
            users: Users::default(),
        });
    }

    /// Reports a `defaults` section that replaces one of the same name to which another section has referred.
    fn refuse_replacement(&mut self, line: &Line, name: &str) {
        let mut same = self.named_defaults.get(name).into_iter().flatten().map(|index| &self.defaults[*index]);
        let Some(other) = same.find(|other| other.explicit) else { return };
        let message = format!(
            "defaults '{name}' has the same name as another defaults section declared at {} which was explicitly \
             referenced hence cannot be replaced. Please remove or rename one of the offending defaults section.",
            self.around.place(other.span)
        );
        self.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ConfigLateParsing));
    }

    /// Returns the section that the word at `at` names; the last one of that name.
    fn find_defaults(&mut self, line: &Line, at: usize, who: &str) -> Option<usize> {
        let name = line.text(at);
        let span = line.span(at);
        let named = self.named_defaults.get(name).into_iter().flatten().rev();
        let mut found = named.map(|index| (*index, &self.defaults[*index]));
        let Some((index, chosen)) = found.next().filter(|_| !name.is_empty()) else {
            self.report.alert(span, format!("defaults section '{name}' not found for {who}."));
            return None;
        };
        let place = self.around.place(chosen.span);
        let mut notices = Vec::new();
        if let Some((_, other)) = found.next() {
            notices.push(format!(
                "ambiguous defaults section name '{name}' referenced by {who} exists at least at {place} and {}.",
                self.around.place(other.span)
            ));
        }
        if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
            notices.push(format!(
                "character '{bad}' is not permitted in defaults section name '{name}' when designated by its name \
                 (section found at {place})."
            ));
        }
        // HAProxy labels both alerts, and continues.
        for notice in notices {
            self.report.push(Diagnostic::new(Severity::Notice, span, notice));
        }
        self.defaults[index].explicit = true;
        Some(index)
    }

    fn read_proxy(&mut self, section: &Section, kind: Kind) {
        let line = &section.line;
        if line.words.len() < 2 {
            self.report.alert(line.span(1), format!("'{}' expects an <id> argument", kind.keyword()));
        }
        let name = line.text(1).to_owned();
        if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
            let message = format!("character '{bad}' is not permitted in '{}' name '{name}'.", kind.keyword());
            self.report.push(Diagnostic::new(Severity::Notice, line.span(1), message));
        }
        let is_dropped = self.is_dropped(section, kind);
        if !is_dropped {
            self.refuse_duplicate(line, kind, &name);
        }
        let mut draft = self.inherit(line, kind, &name);
        let holder = Holder { section: kind, name: Some(&name) };
        let around = ReadContext { earlier: &self.proxies, ..self.around };
        proxy::read(section, &mut draft, holder, around, &mut self.report);
        if !name.is_empty() && !is_dropped {
            self.add(draft);
        }
    }

    /// Reads a `udp-lb` section: a proxy that inherits nothing.
    fn read_udp_lb(&mut self, section: &Section) {
        let line = &section.line;
        if self.report.too_many(line, 2, udp_lb::NAME) {
            return;
        }
        let name = line.text(1);
        if name.is_empty() {
            return self.report.alert(line.span(1), format!("'{}' expects a <name> argument.", udp_lb::NAME));
        }
        if let Some(bad) = name.chars().find(|&found| !is_name_character(found)) {
            let message = format!("character '{bad}' is not permitted in '{}' name '{name}'.", udp_lb::NAME);
            return self.report.alert(line.span(1), message);
        }
        self.refuse_duplicate(line, Kind::UdpLb, name);
        let spanned = Spanned::new(name.to_owned(), line.span(1));
        let mut draft = self.documented.begin(Kind::UdpLb, spanned, line.whole());
        let holder = Holder { section: Kind::UdpLb, name: Some(name) };
        let around = ReadContext { earlier: &self.proxies, ..self.around };
        udp_lb::read(section, &mut draft, holder, around, &mut self.report);
        self.add(draft);
    }

    /// Adds a proxy.
    fn add(&mut self, draft: ProxyDraft) {
        self.check_id(&draft);
        if let Some(id) = &draft.id {
            self.ids.entry(id.value).or_insert(self.proxies.len());
        }
        self.names.entry(draft.spec.name.value.clone()).or_insert(self.proxies.len());
        self.proxies.push(draft);
    }

    /// Whether a backend is dropped because its name is followed by something other than `from`. HAProxy does not
    /// report that, but rejects the lines that follow.
    fn is_dropped(&mut self, section: &Section, kind: Kind) -> bool {
        let line = &section.line;
        let follows_name = line.words.get(2).filter(|word| word.text != "from" || line.words.len() == 3);
        let Some(extra) = follows_name.filter(|_| kind == Kind::Backend) else { return false };
        let hint = format!("only 'from <defaults>' may follow a backend's name: remove '{}'", extra.text);
        let Some(first) = section.body.first() else {
            let message = format!("backend '{}' is left out, since '{}' follows its name.", line.text(1), extra.text);
            self.report.push(Diagnostic::new(Severity::Notice, extra.span, message).with_hint(hint));
            return true;
        };
        let hint = format!("{hint} on line {}", line.number);
        self.report.push(Diagnostic::alert(first.whole(), "'listen' or 'defaults' expected.").with_hint(hint));
        false
    }

    fn refuse_duplicate(&mut self, line: &Line, kind: Kind, name: &str) {
        let Some(other) = self.names.get(name).map(|&index| &self.proxies[index]) else { return };
        let message = format!(
            "{} '{name}' has the same name as {} '{name}' declared at {}. This is no longer supported as of 3.3. \
             Please rename one or the other.",
            kind.noun(),
            super::place::noun(other.spec.kind),
            self.around.place(other.spec.span)
        );
        self.report.push(Diagnostic::alert(line.span(1), message).with_form(Form::ConfigLateParsing));
    }

    /// Returns the draft to start from: the section named after `from`, or the last one before.
    fn inherit(&mut self, line: &Line, kind: Kind, name: &str) -> ProxyDraft {
        let spanned = Spanned::new(name.to_owned(), line.span(1));
        let span = line.whole();
        let begin = |draft: &ProxyDraft| draft.begin(kind, spanned.clone(), span);
        if line.text(2) == "from" && line.words.len() > 3 {
            self.report.too_many(line, 4, kind.keyword());
            return match self.find_defaults(line, 3, &format!("{} '{name}'", kind.noun())) {
                Some(index) => {
                    self.warn_of_mixture(line, index);
                    self.refuse_rules(line, kind, index);
                    begin(&self.defaults[index].heir)
                }
                None => {
                    let mut draft = begin(&self.documented);
                    draft.gaps.base = true;
                    draft
                }
            };
        }
        if line.words.len() > 2 && kind != Kind::Backend {
            self.report.alert(line.span(2), "please use the 'bind' keyword for listening addresses.");
        }
        let Some(index) = self.defaults.len().checked_sub(1) else { return begin(&self.documented) };
        self.defaults[index].implicit = true;
        self.warn_of_mixture(line, index);
        self.refuse_rules(line, kind, index);
        begin(&self.defaults[index].heir)
    }

    /// Reports an error if this section may not inherit rules.
    fn refuse_rules(&mut self, line: &Line, kind: Kind, index: usize) {
        let place = self.around.place(self.defaults[index].span);
        let Defaults { draft, users, .. } = &mut self.defaults[index];
        if let Some(message) = inheritance::refusal(kind, &draft.spec.rules, users, &place) {
            self.report.push(Diagnostic::alert(line.whole(), message).with_form(Form::ParsingTight));
        }
    }

    fn warn_of_mixture(&mut self, line: &Line, index: usize) {
        let defaults = &mut self.defaults[index];
        if !(defaults.explicit && defaults.implicit) || std::mem::replace(&mut defaults.told, true) {
            return;
        }
        let message = format!(
            "defaults section '{}' (declared at {}) is explicitly referenced by another proxy and implicitly used \
             here. To avoid any ambiguity don't mix both usage. Add a last defaults section not explicitly used or \
             always use explicit references.",
            defaults.name,
            self.around.place(defaults.span)
        );
        self.report.warning(line.whole(), message);
    }

    fn check_id(&mut self, draft: &ProxyDraft) {
        let Some(id) = &draft.id else { return };
        let Some(other) = self.ids.get(&id.value).map(|place| &self.proxies[*place]) else { return };
        let message = format!(
            "{} {} reuses same custom id as {} {} (declared at {}).",
            super::place::noun(draft.spec.kind),
            draft.spec.name.value,
            super::place::noun(other.spec.kind),
            other.spec.name.value,
            self.around.place(other.spec.span)
        );
        self.report.alert(id.span, message);
    }

    fn finish(mut self) -> Spec {
        global::finish(&mut self.global, self.around, &mut self.report);
        upgrade::mark(&mut self.proxies);
        verify::proxies(&self.proxies, &self.global, self.around, &mut self.report);
        verify::error_pages(&self.proxies, &self.content.http_errors, self.around, &mut self.report);
        filter::complete(&mut self.proxies, &self.content.caches, &mut self.report);
        haterm::normalize(&mut self.proxies, &mut self.report);
        section::cache::verify(&self.content.caches, &mut self.report);
        section::store::verify(&self.content.stores, &mut self.report);
        verify::healthchecks(&self.content.healthchecks, &mut self.report);
        verify::guids(&self.proxies, &mut self.report);
        verify::log_targets(&self.proxies, &self.global, &self.content, self.around, &mut self.report);
        verify::peers(&self.proxies, &mut self.content.peers, &mut self.report);
        verify::sums(&self.proxies, &self.content.peers, &mut self.report);
        for section in self.content.peers.iter_mut().filter(|section| section.logs_globally) {
            section.logs.splice(0..0, self.global.logs.iter().cloned());
        }
        verify::log_forwards(&self.proxies, &self.content.log_forwards, self.around, &mut self.report);
        for forward in self.content.log_forwards.iter_mut().filter(|forward| forward.logs_globally) {
            forward.logs.splice(0..0, self.global.logs.iter().cloned());
        }
        if let Some(span) = self.around.experimental.allowed_in_vain().filter(|_| !self.report.has_alerts()) {
            let message = "Option 'expose-experimental-directives' is set in the global section but is no longer used. It is \
                           strongly recommended to remove it in order to avoid using an experimental directive by accident in \
                           the future.";
            self.report.late(Severity::Warning, span, message);
        }
        number(&mut self.proxies);
        let defaults = self.named_defaults();
        let mut proxies: Vec<_> =
            self.proxies.into_iter().map(|draft| draft.finish(&self.global, &self.content)).collect();
        // Drafts take more, and their memory was taken over.
        proxies.shrink_to_fit();
        if self.global.tune.purge.servers {
            for proxy in &mut proxies {
                proxy.default_servers.clear();
                proxy.added_defaults = None;
            }
        }
        Spec { global: self.global, sections: self.content, proxies, defaults }
    }

    /// Returns the `defaults` sections that backends added at run time may inherit from.
    fn named_defaults(&self) -> Vec<DefaultsSpec> {
        let named = self.defaults.iter().filter(|section| !section.name.is_empty());
        named
            .map(|section| {
                let inherits = |mode: Mode| {
                    let mut draft = section.draft.begin(Kind::Backend, Spanned::default(), Span::default());
                    draft.spec.mode = mode;
                    filter::imply(&mut draft);
                    draft.finish(&self.global, &self.content)
                };
                let place = self.around.place(section.span);
                let mut users = section.users;
                // HAProxy keeps a section in use if other sections refer to its rules or checks instead of copying
                // them.
                let (spec, used) = (&section.draft.spec, section.explicit || section.implicit);
                let lends = !(spec.rules.rules.is_empty() && spec.check.http.is_empty() && spec.check.tcp.is_empty());
                DefaultsSpec {
                    name: section.name.clone(),
                    purged: self.global.tune.purge.sections && !(used && lends),
                    mode: Some(section.draft.spec.mode).filter(|_| section.draft.says_mode),
                    refusal: inheritance::refusal(Kind::Backend, &section.draft.spec.rules, &mut users, &place),
                    tcp: inherits(Mode::Tcp),
                    http: inherits(Mode::Http),
                }
            })
            .collect()
    }
}

/// Returns the section's name and the index of the name after `from`: `defaults [name] [from <name>]`.
fn defaults_arguments(line: &Line) -> (String, Option<usize>) {
    if line.text(1) == "from" && line.words.len() == 3 {
        return (String::new(), Some(2));
    }
    let from = (line.text(2) == "from").then_some(3);
    (line.text(1).to_owned(), from)
}

/// Assigns numbers to proxies: explicit ones are kept, the others count from 2 and skip them. Servers likewise, from 1.
fn number(proxies: &mut [ProxyDraft]) {
    let taken: HashSet<u32> = proxies.iter().filter_map(|draft| Some(draft.id.as_ref()?.value)).collect();
    let mut free = (2..).filter(|id| !taken.contains(id));
    for draft in proxies {
        draft.spec.id_is_written = draft.id.is_some();
        draft.spec.id = match &draft.id {
            Some(id) => id.value,
            None => free.next().unwrap_or(u32::MAX),
        };
        server::number(&mut draft.spec.servers);
    }
}
