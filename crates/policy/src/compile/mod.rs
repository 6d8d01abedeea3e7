//! Compiles a specification to a [`Program`]: names become indices, addresses are resolved through a [`Resolver`],
//! limits are computed. Must never open anything, and must not repeat checks of the configuration parser.

mod acme;
mod added;
mod address;
mod backend;
mod bgp;
mod cache;
mod check;
mod connecting;
mod connection_names;
mod defaults;
mod engine;
mod errors;
mod fcgi;
mod features;
mod filter;
mod forwarded;
mod frontend;
mod http;
mod http_client;
pub mod in_place_reload;
mod key_log;
mod limits;
mod listening;
mod log;
mod mail;
mod names;
mod otel;
mod peers;
mod persistence;
mod places;
mod quic;
mod resolvers;
mod reverse;
mod rules;
mod script_maps;
mod slots;
mod spoe;
mod stats_page;
mod stick;
mod store;
mod system;
mod table;
mod table_seat;
#[cfg(test)]
pub(crate) mod tests;
mod timeouts;
mod tls;
mod token_algorithms;
mod traces;
mod tracking;
mod udp;
mod userlist;
mod variables;

pub use self::system::{FindHost, ReadFile, ReadFolder};
pub use self::tls::{AddError, AddedLine, KnownTls, add_to_list};
pub use added::{add_backend, add_server, is_backend_predecessor, predecessors, refuses_servers};
pub use limits::{KEPT_DATAGRAM_SOCKETS, SystemLimits};
use names::SpecNames;
pub use script_maps::{ScriptMap, add_script_map, lend_early, script_map};
pub use variables::early_variables;

use crate::program::{
    Features, Global, GlobalCompression, Options, Program, ProgramIndex, Proxy, Ring, SharedCounters, SocketBuffers,
};
use crate::registry::Registry;
use base::moment::WallTime;
use config::diagnostic::{Diagnostic, Form, Severity};
use config::span::Span;
use config::spec::{Family, GlobalSpec, OptionsSpec, ProxyKind, ProxySpec, Spec, SpliceSpec};
use config::text;
use expression::sample::{Probes, Transport, Value};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use table_seat::TableSeat;
use wire::h1::Spelling;

/// Access to the system for the compiler.
pub trait Resolver {
    /// Returns the first address of `host` in the requested family.
    ///
    /// # Errors
    /// The reason, for the log.
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, String>;

    /// Returns the ID of a system user; `None` if there is no such user.
    fn user(&mut self, _name: &str) -> Option<u32> {
        None
    }

    /// Returns the ID of a system group; `None` if there is no such group.
    fn group(&mut self, _name: &str) -> Option<u32> {
        None
    }

    /// Returns a reader of the files that ACLs and maps name.
    fn file_reader(&self) -> ReadFile {
        |_| Err(std::io::ErrorKind::NotFound.into())
    }

    /// Returns a reader of directories.
    fn folder_reader(&self) -> ReadFolder {
        |_| None
    }

    /// Returns a resolver of the hosts that ACLs name.
    fn host_finder(&self) -> FindHost {
        |_| None
    }

    /// Runs a program that prints the passphrase of a private key, and returns its output; the first word of `command`
    /// is the program.
    ///
    /// # Errors
    /// The reason why there is no output.
    fn passphrase(&mut self, command: &[String]) -> Result<Vec<u8>, String> {
        let _ = command;
        Err("no program is run".to_owned())
    }

    /// Returns the names of the configuration files, by index.
    fn file_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the rows and services that are registered in addition to the built-in tables.
    fn registry(&self) -> &Registry {
        const NONE: &Registry = &Registry::none();
        NONE
    }

    /// Returns the data source of expressions that are evaluated at compile time.
    fn probes(&self) -> &dyn Probes {
        &NoData
    }

    /// Returns the address that a server had in the previous process, from its state file.
    fn last_address(&mut self, backend: &str, server: &str) -> Option<IpAddr> {
        let _ = (backend, server);
        None
    }

    /// Whether the process has a file descriptor with that number.
    fn has_descriptor(&mut self, number: i32) -> bool {
        let _ = number;
        true
    }

    /// Whether a network namespace exists and may be opened.
    fn has_namespace(&mut self, name: &str) -> bool {
        let _ = name;
        true
    }
}

/// A data source without data.
struct NoData;

impl Probes for NoData {
    fn source(&self) -> Option<SocketAddr> {
        None
    }

    fn destination(&self) -> Option<SocketAddr> {
        None
    }

    fn wall(&self) -> WallTime {
        WallTime::default()
    }

    fn random(&self) -> u64 {
        0
    }

    fn transport(&self, _: Transport) -> Option<Value<'static>> {
        None
    }
}

/// Compiles a specification. Returns `None` if it has added an alert to `out`.
pub fn compile(
    spec: &Spec,
    resolver: &mut dyn Resolver,
    limits: &SystemLimits,
    out: &mut Vec<Diagnostic>,
) -> Option<Program> {
    compile_seated(spec, Vec::new(), resolver, limits, out)
}

/// Compiles a specification, with stick tables at the indices that they have in a running process.
fn compile_seated(
    spec: &Spec,
    table_seats: Vec<TableSeat>,
    resolver: &mut dyn Resolver,
    limits: &SystemLimits,
    out: &mut Vec<Diagnostic>,
) -> Option<Program> {
    let refused = defaults::diagnose(spec, resolver, out);
    let mut compiler = Compiler::new(spec, resolver, out);
    (compiler.failed, compiler.table_seats) = (refused, table_seats);
    compiler.prerequisites(spec);
    let (namespaces, global) = (compiler.namespaces(spec), compiler.global(spec, limits));
    let variables = compiler.variables(spec, global.bufsize);
    compiler.tables(spec);
    let mut proxies = compiler.proxies(spec, &global);
    let servers = compiler.link(spec, &mut proxies);
    compiler.compare_sections(spec);
    let (fcgi_logs, spoe_logs) = (compiler.fcgi_logs(spec), compiler.spoe_logs(spec));
    let (log_forwards, resolvers) = (compiler.log_forwards(spec, global.nbthread), compiler.resolvers(spec));
    let (acme, ocsp, stores) = (compiler.acme(spec), compiler.ocsp(&spec.global.tls), compiler.stores(spec));
    let (http_client, userlists) = (compiler.http_client(&spec.global, &resolvers), compiler.userlists(spec));
    let (peers, bgp) = (compiler.peers(spec, global.nbthread), compiler.bgp(spec));
    let spare_logs = spec.defaults.iter().map(|written| compiler.logs(&written.tcp.logs, spec)).collect();
    features::derive(&compiler.shared, &userlists, &mut proxies);
    crate::program::number_decision_rules(&mut proxies);
    let (profiles, runtime) = (compiler.profiles(spec), compiler.runtime(&spec.global, global.nbthread));
    let (script_maps, traces, tls) = (compiler.script_maps(spec), compiler.traces(spec), compiler.tls_parts());
    let (otel_exporters, otel_metrics) = (compiler.otel_exporters(spec), compiler.otel_metrics(&spec.global));
    compiler.leftovers(spec);
    let Compiler { failed, rings, shared, .. } = compiler;
    names::diagnose_expressions(&shared, out);
    let program = Program {
        global,
        proxies: proxies.into_iter().map(Arc::new).collect(),
        index: ProgramIndex::default(),
        caches: spec.sections.caches.iter().map(cache::plan).collect(),
        rings,
        log_forwards,
        fcgi_logs,
        spoe_logs,
        profiles,
        bgp,
        resolvers,
        acme,
        ocsp,
        http_client,
        otel_exporters,
        otel_metrics,
        peers,
        userlists,
        namespaces,
        servers,
        runtime,
        variables,
        names: shared.known.take(),
        files: shared.files.iter().map(|name| name.as_str().into()).collect(),
        lists: shared.lists.take().finish(),
        keys: shared.keys.take(),
        registry: Registry::clone(&shared.registry),
        script_maps,
        wanted: Arc::clone(&shared.wanted),
        event_descriptors: [1, 2].into(),
        traces,
        tables: shared.tables.take(),
        spare_logs,
        stores,
        tls,
    };
    (!failed).then_some(program)
}

/// Reports errors in the expressions, rules and formats of a specification that cannot be used: it has other errors,
/// which `out` contains.
pub fn diagnose(spec: &Spec, resolver: &mut dyn Resolver, out: &mut Vec<Diagnostic>) {
    defaults::diagnose(spec, resolver, out);
    let mut compiler = Compiler::new(spec, resolver, out);
    compiler.tables(spec);
    compiler.doubts = compiler.out.iter().filter(|known| known.is_alert()).filter_map(|known| known.span).collect();
    let _ = (compiler.profiles(spec), compiler.bgp(spec));
    for (index, proxy) in spec.proxies.iter().enumerate() {
        let _ = compiler.rules(spec, index, proxy);
        let _ = compiler.pages(spec, index, proxy);
        let _ = compiler.forwarded(spec, index, proxy);
        let _ = compiler.check(spec, index, proxy);
        let _ = (compiler.log_lines(spec, index, proxy), compiler.unique_id(spec, index, proxy));
        compiler.server_addresses(spec, proxy);
    }
    compiler.unused_checks(spec);
    compiler.bind_addresses(spec);
}

/// The state of a compilation.
struct Compiler<'a> {
    resolver: &'a mut dyn Resolver,
    out: &'a mut Vec<Diagnostic>,
    /// GUIDs and their owners.
    guids: listening::Guids<'a>,
    /// Loaded certificates.
    tls: tls::Store,
    /// Certificates to be obtained with ACME.
    acme: Vec<acme::CertificateRequest>,
    failed: bool,
    /// Indices of stick tables in a running process, if there is one.
    table_seats: Vec<TableSeat>,
    /// A server has no initial address.
    lacks_address: bool,
    /// Rings so far: the sections in order, then those of `log tcp@…`.
    rings: Vec<Ring>,
    /// A `log` line exports to the OpenTelemetry collector (`log otel@`).
    sends_logs: bool,
    /// State that all expressions share.
    shared: names::Shared,
    /// Locations of known errors in the specification: objects missing from there are not reported again.
    doubts: Rc<[Span]>,
}

/// Returns the sizes of sockets' buffers; for unsent bytes, 0 is no limit.
fn buffers_of(receive: Option<u32>, send: Option<u32>, unsent: Option<u32>) -> SocketBuffers {
    SocketBuffers { receive, send, unsent: unsent.filter(|bytes| *bytes > 0) }
}

/// Returns the effective `tune.bufsize` and `tune.maxrewrite` in bytes.
fn buffers(spec: &Spec) -> (usize, usize) {
    let tune = &spec.global.tune;
    // HAProxy rounds up to multiples of 16 on 64-bit machines.
    let bufsize = (tune.bufsize.unwrap_or(16_384) as usize).next_multiple_of(16);
    (bufsize, (tune.maxrewrite.unwrap_or(1_024) as usize).min(bufsize / 2))
}

impl<'a> Compiler<'a> {
    fn new(spec: &'a Spec, resolver: &'a mut dyn Resolver, out: &'a mut Vec<Diagnostic>) -> Self {
        let (files, registry) = (resolver.file_names().into(), Rc::new(resolver.registry().clone()));
        let shared = names::Shared { files, registry, ..names::Shared::default() };
        let guids = listening::Guids::of(spec);
        let (bufsize, maxrewrite) = buffers(spec);
        Self {
            resolver,
            out,
            guids,
            tls: tls::Store::for_buffers(bufsize, maxrewrite),
            acme: Vec::new(),
            failed: false,
            table_seats: Vec::new(),
            lacks_address: false,
            rings: Vec::new(),
            sends_logs: false,
            shared,
            doubts: Rc::default(),
        }
    }

    /// Links the proxies with each other, and returns the number of their servers.
    fn link(&mut self, spec: &Spec, proxies: &mut [Proxy]) -> usize {
        let pins = self.shared.pins.take();
        let mut servers = 0;
        for proxy in &mut *proxies {
            proxy.fixed = proxy.frontend.is_some() || pins.proxies.contains(&proxy.index);
            let Some(backend) = &mut proxy.backend else { continue };
            for place in 0..backend.servers.places() {
                if let Some(server) = backend.servers.get_mut(place) {
                    server.serial = servers;
                    server.fixed = pins.servers.contains(&(proxy.index, server.index));
                    servers += 1;
                }
            }
        }
        backend::fill_in_fullconn(spec, proxies);
        self.link_tracking(spec, proxies);
        for backend in proxies.iter_mut().filter_map(|proxy| proxy.backend.as_mut()) {
            for place in 0..backend.servers.places() {
                if let Some(server) = backend.servers.get_mut(place) {
                    server.fixed |= server.tracking.has_followers();
                }
            }
        }
        servers
    }

    /// Reports an error, unless one was reported at the same location before.
    fn alert(&mut self, span: Span, form: Form, message: String) {
        self.alert_with_hint(span, form, message, None);
    }

    /// Reports errors that concern all sections together.
    fn leftovers(&mut self, spec: &Spec) {
        self.missing_sinks();
        self.missing_addresses();
        self.unused_mailers(spec);
    }

    /// Reports sinks that expressions write to but that do not exist.
    fn missing_sinks(&mut self) {
        let missing = std::mem::take(&mut self.shared.sinks.borrow_mut().missing);
        for (place, name) in missing {
            let span = Span { file: place.file, line: place.line, start: 0, end: 0 };
            let hint = format!("name buf0, stdout or stderr, or add a section 'ring {name}'");
            let message = format!("debug converter: sink '{name}' doesn't exist.");
            self.alert_with_hint(span, Form::Parsing, message, Some(hint));
        }
    }

    /// Reports that servers have no initial address; each of them was reported separately.
    fn missing_addresses(&mut self) {
        if self.lacks_address {
            let sum = Diagnostic::general(Severity::Alert, "Failed to initialize server(s) addr.");
            self.out.push(sum.with_form(Form::Bare));
        }
    }

    fn alert_with_hint(&mut self, span: Span, form: Form, message: String, hint: Option<String>) {
        self.failed = true;
        if !self.out.iter().any(|known| known.is_alert() && known.span == Some(span)) {
            let mut diagnostic = Diagnostic::alert(span, message).with_form(form);
            diagnostic.hint = hint;
            self.out.push(diagnostic);
        }
    }

    /// Returns a location as in HAProxy's messages, which name none for objects added by the runtime API.
    fn place(&self, span: Span) -> Box<str> {
        match self.shared.files.get(span.file as usize).filter(|_| span.line > 0) {
            Some(file) => format!("{file}:{}", span.line).into(),
            None => "(null):0".into(),
        }
    }

    /// Returns the names that are visible in the expressions of a proxy.
    fn names<'s>(&self, spec: &'s Spec, proxy: Option<usize>) -> SpecNames<'s> {
        let mut names = SpecNames::new(spec, proxy, self.resolver.file_reader(), self.shared.clone());
        names.doubts = Rc::clone(&self.doubts);
        names.find_host = Some(self.resolver.host_finder());
        names
    }

    /// Compiles what other sections refer to: the key log, the certificate stores, the rings.
    fn prerequisites(&mut self, spec: &Spec) {
        self.key_log(spec);
        self.crt_stores(spec);
        self.rings(spec);
    }

    /// Compiles the proxies, in the order of the configuration.
    fn proxies(&mut self, spec: &Spec, global: &Global) -> Vec<Proxy> {
        let spelling = http::spelling(&spec.global);
        let written = spec.proxies.iter().enumerate();
        let proxy = |(index, proxy)| self.proxy(spec, index, proxy, global, spelling.as_ref());
        let proxies = written.map(proxy).collect::<Vec<_>>();
        self.datagram_addresses_are_separate(spec, &proxies);
        proxies
    }

    /// Reports `healthcheck` sections without a server that uses them, and addresses and descriptors of several sections.
    fn compare_sections(&mut self, spec: &Spec) {
        self.unused_checks(spec);
        self.tell_of_shared_addresses(spec);
        self.descriptors_have_one_owner(spec);
    }

    fn global(&mut self, spec: &Spec, limits: &SystemLimits) -> Global {
        let written = &spec.global;
        let tune = &written.tune;
        let worked_out = limits.work_out(spec);
        let (bufsize, maxrewrite) = buffers(spec);
        let (http2, http2_servers) = http::http2(&tune.http2, bufsize);
        let share = |percent: u32| worked_out.descriptors * u64::from(percent) / 100;
        Global {
            maxconn: worked_out.maxconn,
            maxconn_is_automatic: worked_out.is_automatic,
            rates: written.rates,
            compression: GlobalCompression::of(&written.compression),
            max_tls_connections: worked_out.max_tls,
            excess: worked_out.excess.map(Into::into),
            tokens: expression::key::TokenLimits::new(&written.tokens),
            maxpipes: written.maxpipes.unwrap_or(worked_out.maxconn / 4) as usize,
            descriptors: written.ulimit_n.unwrap_or(worked_out.descriptors),
            strict_limits: written.strict_limits.unwrap_or(true),
            nbthread: limits.threads(written),
            bufsize,
            large_bufsize: tune.large_bufsize.map(|size| size as usize),
            maxrewrite,
            maxhdr: tune.http_maxhdr.unwrap_or(101) as usize,
            http2,
            http2_servers,
            quic: quic::limits(written, bufsize),
            streams: http::streams(written, worked_out.maxconn),
            glitches: tune.glitches,
            logurilen: tune.http_logurilen.unwrap_or(1_024) as usize,
            http: http::global(written),
            max_rules_at_once: tune.max_rules_at_once.map_or(50, |most| if most == 0 { u32::MAX } else { most }),
            evaluation_time: Duration::from_millis(tune.evaluation_time.unwrap_or(500)),
            maxaccept: usize::try_from(tune.maxaccept.unwrap_or(4)).unwrap_or(usize::MAX),
            multi_queue: tune.listener.multi_queue,
            maxpollevents: tune.maxpollevents.unwrap_or(200) as usize,
            idle_pool_shared: tune.idle_pool_shared.unwrap_or(true),
            pool_low_descriptors: share(tune.pool_low_fd_ratio.unwrap_or(20)),
            pool_high_descriptors: share(tune.pool_high_fd_ratio.unwrap_or(25)),
            client_buffers: buffers_of(tune.rcvbuf_client, tune.sndbuf_client, written.machine.unsent_client),
            server_buffers: buffers_of(tune.rcvbuf_server, tune.sndbuf_server, written.machine.unsent_server),
            datagram_receive_buffer: tune.rcvbuf_frontend,
            datagram_send_buffer: tune.sndbuf_backend,
            pipesize: tune.pipesize,
            nosplice: written.nosplice,
            reject_privileged_ports: written.machine.reject_privileged_ports,
            variables: variables::sizes(tune),
            hard_stop_after: written.hard_stop_after.map(Duration::from_millis),
            spread_checks: written.checks.spread.unwrap_or(0),
            max_spread_checks: written.checks.longest_spread.map(Duration::from_millis),
            checks_are_proxied: written.checks.proxied,
            grace: written.grace.map(Duration::from_millis),
            close_spread: written.lifetime.close_spread,
            logs: self.logs(&written.logs, spec),
            log_tag: written.log_tag.as_deref().map(Into::into),
            log_send_hostname: written.log_send_hostname.as_ref().map(|name| name.as_deref().map(Into::into)),
            node: written.node.as_deref().map(Into::into),
            anonymous_key: written.anonymous_key.unwrap_or(0),
            measure_tasks: written.machine.measure_tasks,
            measure_rules: written.machine.measure_rules,
            shared_counters: written.kept.shared_file.as_deref().map(|name| SharedCounters {
                name: name.into(),
                max_objects: written.kept.shared_objects.unwrap_or(2_000),
            }),
        }
    }

    fn proxy(
        &mut self,
        spec: &Spec,
        index: usize,
        written: &ProxySpec,
        global: &Global,
        spelling: Option<&Arc<Spelling>>,
    ) -> Proxy {
        let compiled = self.rules(spec, index, written);
        self.check_lookups(&written.name.value, &compiled.rules);
        let is_front = written.kind != ProxyKind::Backend;
        let is_back = written.kind != ProxyKind::Frontend;
        if !is_back {
            // The check and the application are not used, but are validated.
            let _ = (self.check(spec, index, written), self.fcgi_app(spec, index, written));
        }
        Proxy {
            slow_userlists: Vec::new(),
            features: Features::default(),
            fixed: false,
            index,
            name: written.name.value.as_str().into(),
            id: written.id,
            id_is_written: written.id_is_written,
            guid: written.guid.as_ref().map(|guid| guid.value.as_str().into()),
            description: written.description.as_deref().map(Into::into),
            kind: written.kind,
            mode: written.mode,
            disabled: written.disabled,
            unpublished: written.unpublished,
            frontend: is_front
                .then(|| self.frontend(spec, index, written, global, compiled.switching, compiled.force_switching))
                .map(Box::new),
            backend: is_back.then(|| self.backend(spec, index, written, compiled.choice)),
            rules: compiled.rules,
            filters: self.filters(spec, index, written),
            compression: filter::compression(&written.compression),
            flows: udp::flow_settings(written),
            timeouts: timeouts::timeouts(&written.timeouts),
            options: options(&written.options, &spec.global),
            close_mode: written.close_mode,
            http: http::http(written, spelling, self.forwarded(spec, index, written)),
            monitor_uri: written.monitor_uri.as_ref().map(|uri| text::to_bytes(uri).into()),
            monitor_fail: compiled.monitor_fail.into(),
            stats: compiled.stats,
            errors: self.pages(spec, index, written),
            logs: self.logs(&written.logs, spec),
            log_lines: self.log_lines(spec, index, written),
            mail: self.mail_alert(spec, written),
            log_tag: written.log_tag.as_deref().map(Into::into),
        }
    }
}

fn options(written: &OptionsSpec, global: &GlobalSpec) -> Options {
    Options {
        dontlognull: written.dontlognull,
        splice: if global.nosplice { SpliceSpec::default() } else { written.splice },
        clitcpka: written.clitcpka,
        srvtcpka: written.srvtcpka,
        nolinger: written.nolinger,
        idle_close_on_response: written.idle_close_on_response,
        independent_streams: written.independent_streams,
    }
}
