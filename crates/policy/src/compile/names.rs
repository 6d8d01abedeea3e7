//! Resolves the names in expressions: proxies, servers, lists, ACLs, keys, variables. Must never compile a rule.

use super::connection_names::names_connections;
use super::engine::Engine;
use super::system::{FindHost, ReadFile};
use super::token_algorithms::TokenAlgorithms;
use crate::program::{EVENTS, PROVISIONING, PROVISIONING_RING, SpoeCall};
use crate::registry::Registry;
use crate::rule::{BackendNames, RuleNames, SideRequests, fits_mode};
use base::NameIndex;
use config::diagnostic::{Diagnostic, Severity};
use config::span::Span;
use config::spec::{AddressSpec, Mode, MuxProtocol, ProxyHeaderSpec, ProxyKind, RuleLineSpec, ServerSpec, Spec};
use config::text;
use expression::condition::{Acl, AclScope, Acls, LinePosition, predefined};
use expression::key::Keys;
use expression::pattern;
use expression::sample::Sink;
use expression::variable::{Variable, VariableNames};
use expression::vocabulary::Vocabulary;
use expression::{Names, TokenAlgorithmUse};
use live::table::StickTable;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use tls::details::DetailSet;

/// The implicit section of name servers.
pub(super) const DEFAULT_RESOLVERS: &str = "default";

/// The names of a configuration that are visible in the expressions of one proxy.
pub(super) struct SpecNames<'a> {
    pub(super) spec: &'a Spec,
    /// Index of the proxy; `None` outside of proxies.
    pub(super) proxy: Option<usize>,
    pub(super) read: ReadFile,
    /// Base directory of relative file names on the current line.
    folder: RefCell<Option<String>>,
    shared: Shared,
    /// Location of the current line.
    line: RefCell<Option<Span>>,
    /// The current line is inherited from a `defaults` section.
    inherited: Cell<bool>,
    /// Position of the current line; `None` if it is compiled after all lines have been read.
    position: Cell<Option<LinePosition>>,
    /// Locations of known errors in the specification.
    pub(super) doubts: Rc<[Span]>,
    /// Resolves host names.
    pub(super) find_host: Option<FindHost>,
}

/// State that the expressions of all proxies share.
#[derive(Clone, Default)]
pub(super) struct Shared {
    /// The pattern lists so far.
    pub(super) lists: Rc<RefCell<pattern::Registry>>,
    /// The names of the configuration files.
    pub(super) files: Rc<[String]>,
    /// The public keys so far.
    pub(super) keys: Rc<RefCell<Keys>>,
    /// The ACLs so far of the current proxy.
    pub(super) acls: Rc<RefCell<Reach>>,
    /// Pairs of a proxy and a `userlist` that it uses.
    pub(super) asked: Rc<RefCell<Vec<(usize, usize)>>>,
    /// Notices about valid expressions.
    pub(super) notices: Rc<RefCell<Vec<Diagnostic>>>,
    /// Uses of the algorithm of signed tokens.
    pub(super) token_algorithms: Rc<RefCell<TokenAlgorithms>>,
    /// The names of variables so far.
    pub(super) known: Rc<RefCell<VariableNames>>,
    /// The event sinks that expressions write to.
    pub(super) sinks: Rc<RefCell<Sinks>>,
    /// Proxies and servers that the configuration refers to, so that they cannot be removed at run time.
    pub(super) pins: Rc<RefCell<Referenced>>,
    pub(super) tables: Rc<RefCell<Vec<StickTable>>>,
    /// Rows and services that are registered in addition to the built-in tables.
    pub(super) registry: Rc<Registry>,
    /// Properties of TLS handshakes that expressions use.
    pub(super) wanted: Arc<DetailSet>,
    /// The SPOE engines of the current proxy.
    pub(super) spoe: Rc<RefCell<Vec<Engine>>>,
    /// Indexes for name lookups.
    pub(super) indexes: Rc<Indexes>,
}

/// Indexes of the names of a specification, by the kind of object.
#[derive(Default)]
pub(super) struct Indexes {
    frontends: NameIndex,
    backends: NameIndex,
    log_backends: NameIndex,
    userlists: NameIndex,
    rings: NameIndex,
    log_profiles: NameIndex,
    caches: NameIndex,
    resolvers: NameIndex,
    http_errors: NameIndex,
    healthchecks: NameIndex,
    fcgi_apps: NameIndex,
    /// Servers, by the index of their proxy.
    servers: RefCell<HashMap<usize, NameIndex>>,
    pub(super) tables: NameIndex,
    /// Backends for `use_backend` rules with a dynamic name, by the mode of their proxy.
    switched: RefCell<Vec<(Option<Mode>, Arc<BackendNames>)>>,
}

impl Indexes {
    /// Returns the frontend with that name.
    pub(super) fn frontend(&self, spec: &Spec, name: &str) -> Option<usize> {
        self.frontends
            .find(&spec.proxies, name, |proxy| (proxy.kind != ProxyKind::Backend).then_some(&*proxy.name.value))
    }

    /// Returns the backend with that name.
    pub(super) fn backend(&self, spec: &Spec, name: &str) -> Option<usize> {
        self.backends
            .find(&spec.proxies, name, |proxy| (proxy.kind != ProxyKind::Frontend).then_some(&*proxy.name.value))
    }

    /// Returns the backend in `mode log` with that name.
    pub(super) fn log_backend(&self, spec: &Spec, name: &str) -> Option<usize> {
        self.log_backends.find(&spec.proxies, name, |proxy| {
            (proxy.mode == Mode::Log && proxy.kind != ProxyKind::Frontend).then_some(&*proxy.name.value)
        })
    }

    /// Returns the server with that name in a proxy.
    pub(super) fn server(&self, spec: &Spec, proxy: usize, name: &str) -> Option<usize> {
        let mut known = self.servers.borrow_mut();
        known.entry(proxy).or_default().find(&spec.proxies[proxy].servers, name, |server| Some(&server.name.value))
    }

    /// Returns the backends that a proxy's `use_backend` rule with a dynamic name may select: those of the proxy's
    /// mode, and those of HTTP mode to which a connection can be upgraded. Proxies of the same mode share them.
    pub(super) fn switched(&self, spec: &Spec, proxy: Option<usize>) -> Arc<BackendNames> {
        let mode = proxy.and_then(|index| spec.proxies.get(index)).map(|proxy| proxy.mode);
        let mut known = self.switched.borrow_mut();
        if let Some((_, found)) = known.iter().find(|(of, _)| *of == mode) {
            return Arc::clone(found);
        }
        let fits = |other: Mode| mode.is_some_and(|mode| fits_mode(mode, other));
        let backends = spec.proxies.iter().enumerate().filter(|(_, proxy)| proxy.kind != ProxyKind::Frontend);
        let backends = backends.filter(|(_, proxy)| fits(proxy.mode));
        let found = backends.map(|(at, proxy)| (text::to_bytes(&proxy.name.value).into_owned().into(), at)).collect();
        let found = Arc::new(found);
        known.push((mode, Arc::clone(&found)));
        found
    }

    /// Returns the `log-profile` section with that name.
    pub(super) fn log_profile(&self, spec: &Spec, name: &str) -> Option<usize> {
        self.log_profiles.find(&spec.sections.log_profiles, name, |profile| Some(&profile.name))
    }

    /// Returns the `cache` section with that name.
    pub(super) fn cache(&self, spec: &Spec, name: &str) -> Option<usize> {
        self.caches.find(&spec.sections.caches, name, |cache| Some(&cache.name))
    }

    /// Returns the `resolvers` section with that name.
    pub(super) fn resolvers(&self, spec: &Spec, name: &str) -> Option<usize> {
        self.resolvers.find(&spec.sections.resolvers, name, |section| Some(&section.name.value))
    }

    /// Returns the `fcgi-app` section with that name.
    pub(super) fn fcgi_app(&self, spec: &Spec, name: &str) -> Option<usize> {
        self.fcgi_apps.find(&spec.sections.fcgi_apps, name, |app| Some(&app.name.value))
    }

    /// Returns the `healthcheck` section with that name.
    pub(super) fn healthcheck(&self, spec: &Spec, name: &str) -> Option<usize> {
        self.healthchecks.find(&spec.sections.healthchecks, name, |section| Some(&section.name.value))
    }
}

/// The event sinks that expressions refer to.
#[derive(Default)]
pub(super) struct Sinks {
    /// File descriptors.
    pub(super) descriptors: BTreeSet<i32>,
    /// Names of missing sinks, with the lines that refer to them.
    pub(super) missing: Vec<(pattern::ListLine, String)>,
}

/// Proxies and servers that the configuration refers to.
#[derive(Default)]
pub(super) struct Referenced {
    /// Indices of proxies.
    pub(super) proxies: BTreeSet<usize>,
    /// Indices of servers: of the proxy, and of the server in it.
    pub(super) servers: BTreeSet<(usize, usize)>,
}

impl<'a> SpecNames<'a> {
    /// Creates the names for the expressions of a proxy, or for those outside of proxies.
    pub(super) fn new(spec: &'a Spec, proxy: Option<usize>, read: ReadFile, shared: Shared) -> Self {
        Self {
            spec,
            proxy,
            read,
            folder: RefCell::default(),
            shared,
            line: RefCell::default(),
            inherited: Cell::default(),
            position: Cell::default(),
            doubts: Rc::default(),
            find_host: None,
        }
    }

    /// Starts another line.
    pub(super) fn begin(&self, line: &RuleLineSpec) {
        self.folder.borrow_mut().clone_from(&line.folder);
        self.line.replace(Some(line.span));
        self.inherited.set(line.inherited);
        self.begin_at(line.span);
    }

    /// Sets the position of the following expressions, which may refer to ACLs above it. Objects added by the runtime
    /// API come after all lines.
    pub(super) fn begin_at(&self, span: Span) {
        self.position.set(Some(position(span)).filter(|_| span.line > 0));
    }

    /// Marks the following expressions as compiled after all lines: they may refer to every ACL.
    pub(super) fn begin_late(&self) {
        self.position.set(None);
    }

    /// Whether lines of that proxy have errors: a missing object may be defined on one of them.
    fn is_doubtful(&self, proxy: usize) -> bool {
        let Some(start) = self.spec.proxies.get(proxy).map(|proxy| proxy.name.span) else { return false };
        let follows = |span: &Span| span.file == start.file && span.line > start.line;
        let next = self.spec.proxies.iter().map(|proxy| proxy.name.span).filter(follows).map(|span| span.line).min();
        self.doubts.iter().any(|doubt| follows(doubt) && next.is_none_or(|next| doubt.line < next))
    }

    fn find(&self, name: &str, other: ProxyKind) -> Option<usize> {
        match other {
            ProxyKind::Backend => self.shared.indexes.frontend(self.spec, name),
            _ => self.shared.indexes.backend(self.spec, name),
        }
    }
}

impl Names for SpecNames<'_> {
    fn frontend(&self, name: &str) -> Option<usize> {
        self.find(name, ProxyKind::Backend)
    }

    fn backend(&self, name: &str) -> Option<usize> {
        let found = self.find(name, ProxyKind::Frontend);
        self.shared.pins.borrow_mut().proxies.extend(found);
        found
    }

    fn server(&self, name: &str) -> Result<(usize, usize), String> {
        let (backend, server) = match name.split_once('/') {
            Some((backend, server)) => {
                let found = self.backend(backend).ok_or_else(|| format!("unable to find proxy '{backend}'"))?;
                (found, server)
            }
            // Each proxy that uses a 'defaults' section would refer to its own server.
            None if self.inherited.get() => return Err("backend name must be set".to_owned()),
            None => (self.proxy.ok_or_else(|| format!("unable to find server '{name}'"))?, name),
        };
        let found = self.shared.indexes.server(self.spec, backend, server);
        let found = found.or_else(|| self.is_doubtful(backend).then_some(0));
        self.shared.pins.borrow_mut().servers.extend(found.map(|index| (backend, index)));
        found.map(|index| (backend, index)).ok_or_else(|| format!("unable to find server '{server}'"))
    }

    fn userlist(&self, name: &str) -> Option<usize> {
        let lists = &self.spec.sections.userlists;
        let found = self.shared.indexes.userlists.find(lists, name, |list| Some(&list.name))?;
        self.shared.asked.borrow_mut().extend(self.proxy.map(|proxy| (proxy, found)));
        Some(found)
    }

    fn has_group(&self, list: &str, group: &str) -> bool {
        let lists = &self.spec.sections.userlists;
        let Some(list) = lists.iter().find(|known| known.name == list) else { return true };
        list.groups.iter().any(|known| known.0 == group)
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.shared.registry.vocabulary
    }

    fn sink(&self, name: &str) -> Option<Sink> {
        let mut sinks = self.shared.sinks.borrow_mut();
        let mut descriptor = |number| {
            sinks.descriptors.insert(number);
            Some(Sink::Descriptor(number))
        };
        match name {
            "stdout" => return descriptor(1),
            "stderr" => return descriptor(2),
            EVENTS => return Some(Sink::Ring(0)),
            PROVISIONING => return Some(Sink::Ring(PROVISIONING_RING)),
            _ => {}
        }
        // The rings of sections follow that of events, in order.
        let rings = &self.spec.sections.rings;
        let found = self.shared.indexes.rings.find(rings, name, |ring| Some(&ring.name));
        if found.is_none() {
            sinks.missing.push((self.line(), name.to_owned()));
        }
        found.map(|index| Sink::Ring(PROVISIONING_RING + 1 + index))
    }

    fn table(&self, name: &str) -> Option<usize> {
        self.shared.indexes.tables.find(&self.shared.tables.borrow(), name, |table| Some(&table.name))
    }

    fn limit(&self, name: &str) -> Option<usize> {
        limit(self.spec, name)
    }

    fn current(&self) -> Option<usize> {
        self.proxy
    }

    fn want_of_handshakes(&self, bits: u8) {
        self.shared.wanted.add(bits);
    }

    fn is_inherited(&self) -> bool {
        self.inherited.get()
    }

    fn current_name(&self) -> Option<&str> {
        self.spec.proxies.get(self.proxy?).map(|proxy| proxy.name.value.as_str())
    }

    fn read_file(&self, path: &str) -> Result<Vec<u8>, String> {
        let folder = self.folder.borrow();
        let read = match folder.as_deref().filter(|_| !path.starts_with('/')) {
            Some(folder) => (self.read)(&format!("{folder}{path}")),
            None => (self.read)(path),
        };
        read.map_err(|error| error.to_string())
    }

    fn resolve(&self, host: &str) -> Option<IpAddr> {
        self.find_host.and_then(|find| find(host))
    }

    fn acl(&self, name: &str) -> Option<Arc<Acl>> {
        let reach = self.shared.acls.borrow();
        let scope = reach.visible(self.inherited.get(), self.position.get());
        let Some(found) = scope.find(name) else { return predefined(name, self) };
        // Limits the depth of ACLs that refer to other ACLs.
        (found.depth() < DEEPEST_ACL).then(|| Arc::clone(found))
    }

    fn declare(&self, variable: &Variable) {
        self.shared.known.borrow_mut().add(variable);
    }

    fn lists(&self) -> Rc<RefCell<pattern::Registry>> {
        Rc::clone(&self.shared.lists)
    }

    fn keys(&self) -> Rc<RefCell<Keys>> {
        Rc::clone(&self.shared.keys)
    }

    fn note_valueless(&self, fetch: &str, why: &str) {
        let message = format!("fetch method '{fetch}' never has a sample: {why}.");
        let notice = match *self.line.borrow() {
            Some(span) => Diagnostic::new(Severity::Notice, span, message),
            None => Diagnostic::general(Severity::Notice, message),
        };
        let mut notices = self.shared.notices.borrow_mut();
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    fn note_token_algorithm(&self, found: TokenAlgorithmUse<'_>) {
        if let Some(span) = *self.line.borrow()
            && !self.spec.global.tokens.rejects_unsigned
        {
            self.shared.token_algorithms.borrow_mut().add(found, span);
        }
    }

    fn line(&self) -> pattern::ListLine {
        let Some(span) = *self.line.borrow() else { return pattern::ListLine { late: true, ..Default::default() } };
        let name = self.shared.files.get(span.file as usize).cloned().unwrap_or_default();
        pattern::ListLine { late: false, file: span.file, line: span.line, name }
    }
}

/// Returns the index of a limit, written as `store/limit`.
pub(super) fn limit(spec: &Spec, name: &str) -> Option<usize> {
    let (store, limit) = name.split_once('/')?;
    let stores = spec.sections.stores.iter();
    let mut all = stores.flat_map(|section| section.limits.iter().map(move |limit| (&section.name, &limit.name)));
    all.position(|(section, own)| section.value == store && own.value == limit)
}

impl RuleNames for SpecNames<'_> {
    fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    fn log_profile(&self, name: &str) -> Option<usize> {
        self.shared.indexes.log_profile(self.spec, name)
    }

    fn cache(&self, name: &str) -> Option<usize> {
        self.shared.indexes.cache(self.spec, name)
    }

    fn side_backend(&self, name: &str, requests: SideRequests) -> Result<usize, String> {
        let found = self.backend(name).ok_or_else(|| format!("unable to find backend '{name}'"))?;
        let proxy = &self.spec.proxies[found];
        if proxy.mode != Mode::Http {
            return Err(format!("backend '{name}' is not in HTTP mode"));
        }
        let unfit = |server: &ServerSpec| {
            let connecting = &server.connecting;
            let speaks = connecting.protocol.filter(|protocol| match protocol {
                MuxProtocol::Http1 | MuxProtocol::None => false,
                MuxProtocol::Http2 => !requests.has_http2(),
                _ => true,
            });
            let what = speaks.map(|protocol| format!("proto {}", protocol.name()));
            what.or_else(|| connecting.socks4.is_some().then(|| "socks4".to_owned()))
                .or_else(|| matches!(server.address.value, AddressSpec::Reverse { .. }).then(|| "rhttp@".to_owned()))
                .or_else(|| server.address.value.is_quic().then(|| "quic4@".to_owned()))
                .or_else(|| (connecting.proxy_header != ProxyHeaderSpec::default()).then(|| "send-proxy".to_owned()))
        };
        let mut servers = proxy.servers.iter().filter_map(|server| Some((&server.name.value, unfit(server)?)));
        match servers.next() {
            Some((server, option)) => {
                Err(format!("server '{name}/{server}' uses '{option}', which {} do not support yet", requests.name()))
            }
            None => Ok(found),
        }
    }

    fn reversed_server(&self, name: &str, is_named: bool) -> Result<(usize, usize), String> {
        let invalid = || format!("attach-srv rule: invalid server name '{name}'.");
        let (backend, server) = name.split_once('/').ok_or_else(invalid)?;
        let proxy = self.backend(backend).ok_or_else(|| format!("attach-srv rule: no such backend '{name}'."))?;
        let (mode, servers) = (self.spec.proxies[proxy].mode, &self.spec.proxies[proxy].servers);
        let found = self.shared.indexes.server(self.spec, proxy, server);
        let found = found.ok_or_else(|| format!("attach-srv rule: no such server '{name}'."))?;
        self.shared.pins.borrow_mut().servers.insert((proxy, found));
        match (is_named, names_connections(&servers[found], mode)) {
            (true, false) => Err(format!(
                "attach-srv rule has a name argument while server '{name}' does not use pool-conn-name; either reconfigure the \
                 server or remove the name argument from this attach-srv rule."
            )),
            (false, true) => Err(format!(
                "attach-srv rule has no name argument while server '{name}' uses pool-conn-name; either add a name argument to \
                 the attach-srv rule or reconfigure the server."
            )),
            _ => Ok((proxy, found)),
        }
    }

    fn resolvers(&self, name: &str) -> Option<usize> {
        let sections = &self.spec.sections.resolvers;
        let written = self.shared.indexes.resolvers(self.spec, name);
        // The implicit `default` section follows the configured ones.
        written.or((name == DEFAULT_RESOLVERS).then_some(sections.len()))
    }

    fn table_plan(&self, index: usize) -> Option<StickTable> {
        self.shared.tables.borrow().get(index).cloned()
    }

    fn stick_counters(&self) -> u8 {
        self.spec.global.tune.stick_counters.map_or(3, |number| number.min(100) as u8)
    }

    fn spoe_group(&self, engine: &str, group: &str) -> Option<Option<Arc<SpoeCall>>> {
        let engines = self.shared.spoe.borrow();
        let engine = engines.iter().find(|known| known.name == engine)?;
        Some(engine.groups.iter().find(|known| known.0 == group).map(|known| Arc::clone(&known.1)))
    }

    fn error_pages(&self, section: &str) -> Option<Vec<(u16, Vec<u8>)>> {
        let sections = &self.spec.sections.http_errors;
        let section = &sections[self.shared.indexes.http_errors.find(sections, section, |known| Some(&known.name))?];
        Some(section.files.iter().map(|file| (file.status, file.content.clone())).collect())
    }
}

/// Maximum depth of ACLs that refer to other ACLs.
const DEEPEST_ACL: usize = 32;

/// The ACLs that a proxy's lines may refer to: its own, and those of its `defaults` section for the rules from there.
#[derive(Default, Clone)]
pub(super) struct Reach {
    own: Acls,
    inherited: Acls,
}

impl Reach {
    /// Returns the ACLs that a line may refer to.
    pub(super) fn of(&self, line: &RuleLineSpec) -> AclScope<'_> {
        self.visible(line.inherited, Some(position(line.span)))
    }

    pub(super) fn of_mut(&mut self, line: &RuleLineSpec) -> &mut Acls {
        if line.inherited { &mut self.inherited } else { &mut self.own }
    }

    /// Returns the inherited or own ACLs that are defined above `before`.
    fn visible(&self, inherited: bool, before: Option<LinePosition>) -> AclScope<'_> {
        let acls = if inherited { &self.inherited } else { &self.own };
        before.map_or(acls.all(), |line| acls.before(line))
    }
}

/// Returns the position of a line.
pub(super) fn position(span: Span) -> LinePosition {
    (span.file, span.line)
}

/// Reports the notices about valid expressions, and the patterns that have to be matched with PCRE2.
pub(super) fn diagnose_expressions(shared: &Shared, out: &mut Vec<Diagnostic>) {
    out.extend(shared.notices.take());
    out.extend(shared.token_algorithms.take().notices());
    for (place, pattern) in shared.lists.borrow_mut().take_backtracking() {
        let span = Span { file: place.file, line: place.line, start: 0, end: 0 };
        let message =
            format!("regex '{pattern}' cannot be matched in linear time: PCRE2 matches it, with a limit on its steps.");
        out.push(Diagnostic::new(Severity::Diag, span, message));
    }
}
