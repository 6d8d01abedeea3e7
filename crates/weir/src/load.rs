//! From files to a program: reads, parses, resolves names, compiles and reports all errors. Must never open a socket.

use crate::arguments::Settings;
use crate::detected;
use crate::files;
use crate::host;
use crate::kept_counts;
use crate::material;
use crate::messages::{Messages, ReportedError};
use crate::preloaded;
use crate::processors;
use crate::resolve::{ResolveContext, SystemResolver, disable_unresolved};
use crate::rights::{self, Rights};
use crate::saved_state::SavedStates;
use crate::scripts;
use config::diagnostic::{Diagnostic, Severity};
use config::document::Sources;
use config::environment::Environment;
use config::keyword::SpecOptions;
use config::load::in_order;
use config::spec::{Confinement, ProcessorsSpec, Spec};
use config::{InputFile, LanguageOptions, LoadOptions, LoadedConfiguration};
use control::saved_state::SavedServer;
use engine::service::registry::Services;
use live::counters::CounterLine;
use live::{Live, ServerPlace};
use lua::Scripts;
use policy::SystemLimits;
use policy::compile::in_place_reload::{Successor, succeed};
use policy::processors::Plan;
use policy::program::Program;
use rt::SocketCalls;
use std::collections::{BTreeMap, BTreeSet};

/// A configuration that can be served.
pub struct PreparedConfiguration {
    /// The compiled program.
    pub program: Program,
    /// The parsed configuration, for messages that refer to a line.
    pub spec: Spec,
    /// Its text.
    pub sources: Sources,
    /// The environment after evaluation of the text.
    pub environment: Environment,
    /// Number and processors of the threads.
    pub threads: Plan,
    /// Privileges to drop before serving.
    pub rights: Rights,
    /// Live state restored from another process, if any.
    pub live: Option<Live>,
    /// Saved states of servers that are still to be applied.
    pub saved: Vec<SavedServer>,
    /// Saved counters.
    pub counts: Vec<CounterLine>,
    /// Built-in services and those of scripts.
    pub services: Services,
    pub scripts: Scripts,
    /// Settings that later configurations must share.
    pub start: Start,
}

/// Settings that are fixed at the start of a process.
#[derive(Debug, Clone)]
pub struct Start {
    /// Number and processors of the threads, as configured.
    threads: (Option<u32>, ProcessorsSpec),
    /// Number and processors of the threads, as determined.
    settled: (Option<u32>, ProcessorsSpec),
    /// Limits of the machine.
    limits: SystemLimits,
    /// Dropped privileges.
    rights: Rights,
    /// The environment after evaluation of the text; lookups at run time use it.
    environment: Environment,
    /// Assumes `reload in-place` in both configurations, for a comparison only.
    pub supposes_in_place: bool,
}

/// A configuration that may replace the current one.
pub struct Renewed {
    /// The compiled program.
    pub program: Program,
    /// The parsed configuration.
    pub spec: Spec,
    /// Descriptions of the changes.
    pub changes: Vec<String>,
    /// Warnings and notices about it.
    pub found: Vec<Diagnostic>,
    /// Its text.
    pub sources: Sources,
}

/// Reason against a reload in place: the keyword is missing in the current configuration.
pub const NOT_SERVED_IN_PLACE: &str = "'reload in-place' is not in the configuration that is served";
/// Reason against a reload in place: the keyword is missing in the new configuration.
pub const NOT_NEW_IN_PLACE: &str = "'reload in-place' is not in the new configuration";

/// Reason against a reload in place if either configuration has scripts.
const SCRIPTS: &str = "scripts are loaded at the start of a process";

/// Reasons why a configuration cannot replace the current one.
pub enum NotRenewed {
    /// It is invalid; the errors were reported.
    Refused,
    /// It needs a new process; contains the reason.
    Classic(String),
}

impl From<ReportedError> for NotRenewed {
    fn from(_: ReportedError) -> Self {
        Self::Refused
    }
}

/// Changes to the folder of `-C`.
///
/// # Errors
/// The folder cannot be entered; reported through `messages`.
pub fn enter_directory(settings: &Settings, messages: &mut Messages) -> Result<(), ReportedError> {
    let Some(folder) = &settings.directory else { return Ok(()) };
    std::env::set_current_dir(folder).map_err(|error| {
        let reason = files::reason(&error);
        messages.alert(&format!("Could not change to directory {} : {reason}", folder.display()));
        ReportedError
    })
}

/// Reads and parses the text. Errors that make it unusable are reported; [`compile`] returns an error for them, and
/// reports the other diagnostics.
pub fn read(files: &[InputFile], settings: &Settings, messages: &mut Messages) -> LoadedConfiguration {
    let options = LoadOptions {
        language: language(settings),
        local_peer: settings.local_peer.clone().unwrap_or_else(host::name),
        spec: SpecOptions {
            check_only: settings.check,
            read_file: material::start_of_file,
            has_namespace: material::has_namespace,
            ..SpecOptions::default()
        },
    };
    let mut loaded = config::load(files, Environment::of_process(), &options);
    let mut found = std::mem::take(&mut loaded.diagnostics);
    if found.iter().any(Diagnostic::is_alert) {
        // The configuration is invalid, but rules, host names and accounts are checked too, so that all errors are
        // reported at once.
        let mut resolver = resolver(&loaded.sources, &loaded.environment, settings);
        // Rules may name what scripts register; the scripts do not run further.
        let _ = scripts::load(&loaded.spec, &loaded.environment, &mut resolver.services, &mut found);
        let mut spec = loaded.spec.clone();
        if settings.ignore_unresolved {
            disable_unresolved(&mut spec, &mut resolver);
        }
        let _ = rights::look_up(&spec.global.rights, &mut found);
        policy::diagnose(&spec, &mut resolver, &mut found);
    }
    let is_quiet = loaded.spec.global.quiet && !settings.verbose;
    if is_quiet || found.iter().any(Diagnostic::is_alert) {
        messages.report(&in_order(found, &loaded.sources), &loaded.sources);
    } else {
        // Compiling finds more errors; all are reported in the order of the files.
        loaded.diagnostics = found;
    }
    if is_quiet {
        messages.hush();
    }
    loaded
}

fn resolver(sources: &Sources, environment: &Environment, settings: &Settings) -> SystemResolver {
    let files = sources.0.iter().map(|file| file.name.clone()).collect();
    let surroundings = ResolveContext { environment: host::variables(environment), hostname: host::name() };
    let services = control::services::built_in();
    SystemResolver { ipv4_only: settings.ipv4_only, files, last_addresses: BTreeMap::new(), surroundings, services }
}

/// Returns the language options of this run.
pub fn language(settings: &Settings) -> LanguageOptions {
    let mut options = LanguageOptions { local_peer_is_fixed: settings.local_peer.is_some(), ..detected::options() };
    options.set_run_time_option("SPLICE", !settings.no_splice);
    options.set_run_time_option("REUSEPORT", !settings.no_reuse_port);
    options
}

/// Compiles a parsed configuration.
///
/// # Errors
/// It cannot be served.
pub fn compile(
    loaded: LoadedConfiguration,
    settings: &Settings,
    messages: &mut Messages,
) -> Result<PreparedConfiguration, ReportedError> {
    conclude(messages)?;
    let LoadedConfiguration { mut spec, sources, environment, diagnostics: mut found, .. } = loaded;
    let mut resolver = resolver(&sources, &environment, settings);
    apply(&mut spec, settings);
    let written_threads = threads_of(&spec);
    let threads = processors::assign_processors(&mut spec.global, &mut found, messages);
    let scripts = scripts::load(&spec, &environment, &mut resolver.services, &mut found);
    let rights = rights::look_up(&spec.global.rights, &mut found);
    if settings.ignore_unresolved {
        for server in disable_unresolved(&mut spec, &mut resolver) {
            let sentence = format!(
                "'server {}/{}' : could not resolve address '{}', disabling server.",
                server.backend, server.server, server.host
            );
            found.push(Diagnostic::new(Severity::Notice, server.span, sentence));
        }
    }
    let saved = SavedStates::read(&spec);
    resolver.last_addresses = saved.addresses();
    let limits = limits(&spec, settings);
    let program = policy::compile(&spec, &mut resolver, &limits, &mut found);
    messages.report(&in_order(found, &sources), &sources);
    conclude(messages)?;
    let threads = threads?;
    let Some(program) = program else {
        messages.alert("config : Fatal errors found in configuration.");
        return Err(ReportedError);
    };
    let live = saved.is_asked_for().then(|| program.live(rt::clock::seed()));
    let saved = saved.take_over(&program, live.as_ref(), rt::clock::moment(), messages);
    let counts = kept_counts::read(&spec, &program, messages);
    if messages.warnings() > 0 && (settings.zero_warning || spec.global.zero_warning) {
        messages.alert("Some warnings were found and 'zero-warning' is set. Aborting.");
        return Err(ReportedError);
    }
    let services = resolver.services;
    let (settled, rights_of_start) = (threads_of(&spec), rights.clone());
    let known = environment.clone();
    let start = Start {
        threads: written_threads,
        settled,
        limits,
        rights: rights_of_start,
        environment: known,
        supposes_in_place: false,
    };
    Ok(PreparedConfiguration {
        program,
        spec,
        sources,
        environment,
        threads,
        rights,
        live,
        saved,
        counts,
        services,
        scripts,
        start,
    })
}

fn threads_of(spec: &Spec) -> (Option<u32>, ProcessorsSpec) {
    (spec.global.nbthread, spec.global.processors.clone())
}

/// The configuration that a process serves, which another one is to replace.
pub struct ServedConfiguration<'a> {
    pub start: &'a Start,
    pub written: &'a Spec,
    pub program: &'a Program,
    /// Places of removed servers that new ones may take.
    pub vacant: &'a BTreeSet<ServerPlace>,
}

/// Reads and compiles a configuration that is to replace the current one. Errors are reported; other diagnostics are
/// returned with it.
///
/// # Errors
/// See [`NotRenewed`].
pub fn renew(
    settings: &Settings,
    served: &ServedConfiguration<'_>,
    messages: &mut Messages,
) -> Result<Renewed, NotRenewed> {
    let ServedConfiguration { start, written, program: former, vacant } = *served;
    let LoadedConfiguration { mut spec, sources, environment, diagnostics: mut found, .. } =
        read_again(settings, messages)?;
    if let Some(what) = start.differs(written, &spec) {
        return Err(NotRenewed::Classic(what));
    }
    if !start.has_environment(&environment) {
        return Err(NotRenewed::Classic("the environment is different ('setenv', 'presetenv' ...)".to_owned()));
    }
    let mut resolver = resolver(&sources, &environment, settings);
    apply(&mut spec, settings);
    (spec.global.nbthread, spec.global.processors) = start.settled.clone();
    let rights = rights::look_up(&spec.global.rights, &mut found);
    if settings.ignore_unresolved {
        disable_unresolved(&mut spec, &mut resolver);
    }
    let mut limits = start.limits;
    if former.global.maxconn_is_automatic && spec.global.maxconn.is_none() {
        limits.maxconn = Some(former.global.maxconn);
    }
    let program = policy::compile(&spec, &mut resolver, &limits, &mut found);
    if found.iter().any(Diagnostic::is_alert) {
        messages.report(&in_order(std::mem::take(&mut found), &sources), &sources);
    }
    conclude(messages)?;
    let program = program.ok_or(NotRenewed::Refused)?;
    if rights != start.rights {
        return Err(NotRenewed::Classic("what the process gives up is different".to_owned()));
    }
    if program.acme.folder.is_some() || !program.acme.sections.is_empty() {
        return Err(NotRenewed::Classic("certificates are obtained with ACME".to_owned()));
    }
    let succeeded = succeed(former, vacant, spec, program, &mut resolver, &limits);
    let Successor { program, spec, changes } = succeeded.map_err(NotRenewed::Classic)?;
    Ok(Renewed { program, spec, changes, found: in_order(found, &sources), sources })
}

/// Reads the files of the command line while the process serves.
fn read_again(settings: &Settings, messages: &mut Messages) -> Result<LoadedConfiguration, ReportedError> {
    let files = material::inputs(&settings.files).map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(&format!("config : {}", error.0)));
        ReportedError
    })?;
    let loaded = read(&files, settings, messages);
    conclude(messages)?;
    Ok(loaded)
}

/// A configuration as another process will read it.
pub struct TestedConfiguration {
    /// The compiled program.
    pub program: Program,
    /// Whether several sockets may share an address.
    pub reuse_port: bool,
}

/// Performs all lookups that [`renew`] performs in a worker; `None`: the configuration cannot be served.
pub fn rehearse(settings: &Settings, messages: &mut Messages) -> Option<TestedConfiguration> {
    let LoadedConfiguration { mut spec, sources, environment, .. } = read_again(settings, messages).ok()?;
    let mut resolver = resolver(&sources, &environment, settings);
    apply(&mut spec, settings);
    let mut found = Vec::new();
    let _ = processors::assign_processors(&mut spec.global, &mut found, messages);
    let _ = rights::look_up(&spec.global.rights, &mut found);
    if settings.ignore_unresolved {
        disable_unresolved(&mut spec, &mut resolver);
    }
    let program = policy::compile(&spec, &mut resolver, &limits(&spec, settings), &mut found)?;
    let reuse_port = !(settings.no_reuse_port || spec.global.machine.no_reuse_port);
    Some(TestedConfiguration { program, reuse_port })
}

impl Start {
    /// Returns the reason why no configuration can replace the current one. Call it before files are read: a process
    /// that has dropped privileges reads other files, or none.
    pub fn obstacle(&self, served: &Spec) -> Option<String> {
        let own = &served.global;
        let rows = [
            (!self.supposes_in_place && !own.lifetime.reload_in_place, NOT_SERVED_IN_PLACE),
            (
                self.rights.confine == Confinement::Strict,
                "'confine strict' keeps the process from reading another configuration",
            ),
            (!own.lua.scripts.is_empty(), SCRIPTS),
        ];
        rows.into_iter().find(|(applies, _)| *applies).map(|(_, why)| why.to_owned())
    }

    /// Whether an environment equals that of the process, apart from the names of the configuration files.
    fn has_environment(&self, next: &Environment) -> bool {
        let told = |environment: &Environment| {
            let variables = environment.iter().filter(|(name, _)| *name != "HAPROXY_CFGFILES");
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>()
        };
        told(&self.environment) == told(next)
    }

    /// Returns the reason why a configuration cannot replace the current one, apart from differences of the programs.
    fn differs(&self, former: &Spec, next: &Spec) -> Option<String> {
        if let Some(why) = self.obstacle(former) {
            return Some(why);
        }
        let (own, new) = (&former.global, &next.global);
        let rows = [
            (!self.supposes_in_place && !new.lifetime.reload_in_place, NOT_NEW_IN_PLACE),
            (!new.lua.scripts.is_empty(), SCRIPTS),
            (own.fd_hard_limit != new.fd_hard_limit, "'fd-hard-limit' is different"),
            (self.threads != threads_of(next), "the threads are different"),
            (own.machine != new.machine, "how the threads use the machine is different"),
            (own.localpeer != new.localpeer, "'localpeer' is different"),
            (own.node != new.node || own.description != new.description, "'node' or 'description' is different"),
        ];
        rows.into_iter().find(|(differs, _)| *differs).map(|(_, why)| why.to_owned())
    }

    /// Whether the process has lost the ability to read and open files as at its start.
    pub fn gives_up(&self) -> bool {
        let rights = &self.rights;
        rights.chroot.is_some() || rights.user.is_some() || rights.group.is_some() || !rights.kept.is_empty()
    }
}

/// Applies the command line to the parsed configuration.
fn apply(spec: &mut Spec, settings: &Settings) {
    // Sockets of a preloaded library are no files of the kernel.
    let are_named = preloaded::socket_calls(spec.global.machine.driver) == SocketCalls::Named;
    spec.global.nosplice |= settings.no_splice || are_named;
    if settings.trusts_servers {
        spec.global.tls.trusts_servers.get_or_insert(true);
    }
    if settings.local_peer.is_some() {
        spec.global.localpeer.clone_from(&settings.local_peer);
    }
    if let Some(maxconn) = settings.default_maxconn {
        for proxy in &mut spec.proxies {
            proxy.maxconn.get_or_insert(maxconn);
        }
    }
}

fn limits(spec: &Spec, settings: &Settings) -> SystemLimits {
    let (soft, hard) = rt::process::descriptor_limit().unwrap_or((1024, 1024));
    // Hard limits may be huge; without `fd-hard-limit` the limit is capped as in HAProxy.
    let most = spec.global.fd_hard_limit.unwrap_or(1 << 20);
    SystemLimits {
        descriptors: soft.max(hard.min(most)),
        processors: u32::try_from(rt::process::available_processors().len()).unwrap_or(1).max(1),
        maxconn: settings.maxconn,
        memory: settings.memory,
    }
}

/// Ends a step that may have reported errors.
fn conclude(messages: &mut Messages) -> Result<(), ReportedError> {
    if messages.alerts() == 0 {
        return Ok(());
    }
    messages.alert("config : Fatal errors found in configuration.");
    Err(ReportedError)
}
