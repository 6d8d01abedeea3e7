//! From files to a program: read, understood, names resolved, compiled, everything that is wrong reported. Must never
//! open a socket.

use crate::arguments::Settings;
use crate::detected;
use crate::files;
use crate::host;
use crate::kept_counts;
use crate::material;
use crate::messages::{Messages, Refused};
use crate::processors;
use crate::resolve::{Surroundings, SystemResolver, disable_unresolved};
use crate::rights::{self, Rights};
use crate::saved_state::SavedStates;
use crate::scripts;
use config::diagnostic::{Diagnostic, Severity};
use config::document::Sources;
use config::environment::Environment;
use config::keyword::SpecOptions;
use config::load::in_order;
use config::spec::{Confinement, ProcessorsSpec, Spec};
use config::{InputFile, LanguageOptions, LoadOptions, Loaded};
use control::saved_state::SavedServer;
use engine::service::registry::Services;
use live::counters::Kept;
use live::{Live, ServerPlace};
use lua::Scripts;
use policy::SystemLimits;
use policy::compile::succession::{Successor, succeed};
use policy::processors::Plan;
use policy::program::Program;
use std::collections::{BTreeMap, BTreeSet};

/// A configuration that can be served.
pub struct Prepared {
    /// What is served.
    pub program: Program,
    /// What was written, for messages that point at a line.
    pub spec: Spec,
    /// The text of it.
    pub sources: Sources,
    /// The environment as the text left it.
    pub environment: Environment,
    /// How many threads serve it, and where they run.
    pub threads: Plan,
    /// What is given up before it is served.
    pub rights: Rights,
    /// The live state, where servers go on from that of another process.
    pub live: Option<Live>,
    /// What is left to take over of their saved states.
    pub saved: Vec<SavedServer>,
    /// The counts to begin with.
    pub counts: Vec<Kept>,
    /// What answers inside the process.
    pub services: Services,
    /// The scripts.
    pub scripts: Scripts,
    /// What a later configuration has to have in common with this one.
    pub start: Start,
}

/// What a process was started with and keeps to its end.
#[derive(Debug, Clone)]
pub struct Start {
    /// How many threads, and where they run, as it was written.
    threads: (Option<u32>, ProcessorsSpec),
    /// The same, as it was settled.
    settled: (Option<u32>, ProcessorsSpec),
    /// What the machine allows.
    limits: SystemLimits,
    /// What was given up.
    rights: Rights,
    /// The environment as the text left it: what is asked while the process serves was asked there.
    environment: Environment,
    /// `reload in-place` is supposed, whatever is written: for those who compare alone.
    pub supposes_in_place: bool,
}

/// A configuration that may follow the one that is served.
pub struct Renewed {
    /// What is served then.
    pub program: Program,
    /// What was written.
    pub spec: Spec,
    /// What becomes different, in words.
    pub changes: Vec<String>,
    /// What there is to say about it.
    pub found: Vec<Diagnostic>,
    /// The text of it.
    pub sources: Sources,
}

/// Why there is no reload in place: the one keyword is missing.
pub const NOT_SERVED_IN_PLACE: &str = "'reload in-place' is not in the configuration that is served";
/// The same.
pub const NOT_NEW_IN_PLACE: &str = "'reload in-place' is not in the new configuration";

/// Why a process with scripts cannot go over to another configuration, nor one without to one with them.
const SCRIPTS: &str = "scripts are loaded at the start of a process";

/// Why there is no such configuration.
pub enum NotRenewed {
    /// It cannot be served at all; why has been said.
    Refused,
    /// It needs a new process; why.
    Classic(String),
}

impl From<Refused> for NotRenewed {
    fn from(_: Refused) -> Self {
        Self::Refused
    }
}

/// `-C`.
///
/// # Errors
/// When it cannot be entered; why has been said.
pub fn enter_directory(settings: &Settings, messages: &mut Messages) -> Result<(), Refused> {
    let Some(folder) = &settings.directory else { return Ok(()) };
    std::env::set_current_dir(folder).map_err(|error| {
        let reason = files::reason(&error);
        messages.alert(&format!("Could not change to directory {} : {reason}", folder.display()));
        Refused
    })
}

/// Reads and understands the text. What makes it unusable has been reported; [`compile`] draws the consequence, and
/// reports the rest.
pub fn read(files: &[InputFile], settings: &Settings, messages: &mut Messages) -> Loaded {
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
        // It will not be served. Rules, names of hosts and accounts are looked at all the same: everything is told at once.
        let mut resolver = resolver(&loaded.sources, &loaded.environment, settings);
        // What scripts register may be named; they run no further.
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
        // Compiling finds more: all of it is told in the order of the files.
        loaded.diagnostics = found;
    }
    if is_quiet {
        messages.hush();
    }
    loaded
}

fn resolver(sources: &Sources, environment: &Environment, settings: &Settings) -> SystemResolver {
    let files = sources.0.iter().map(|file| file.name.clone()).collect();
    let surroundings = Surroundings { environment: host::variables(environment), hostname: host::name() };
    let services = control::services::built_in();
    SystemResolver { ipv4_only: settings.ipv4_only, files, last_addresses: BTreeMap::new(), surroundings, services }
}

/// What the reader of the language has to know of this run.
pub fn language(settings: &Settings) -> LanguageOptions {
    let mut options = LanguageOptions { local_peer_is_fixed: settings.local_peer.is_some(), ..detected::options() };
    options.set_run_time_option("SPLICE", !settings.no_splice);
    options.set_run_time_option("REUSEPORT", !settings.no_reuse_port);
    options
}

/// Compiles what was read.
///
/// # Errors
/// When it cannot be served.
pub fn compile(loaded: Loaded, settings: &Settings, messages: &mut Messages) -> Result<Prepared, Refused> {
    conclude(messages)?;
    let Loaded { mut spec, sources, environment, diagnostics: mut found, .. } = loaded;
    let mut resolver = resolver(&sources, &environment, settings);
    apply(&mut spec, settings);
    let written_threads = threads_of(&spec);
    let threads = processors::settle(&mut spec.global, &mut found, messages);
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
        return Err(Refused);
    };
    let live = saved.is_asked_for().then(|| program.live(rt::clock::seed()));
    let saved = saved.take_over(&program, live.as_ref(), rt::clock::moment(), messages);
    let counts = kept_counts::read(&spec, &program, messages);
    if messages.warnings() > 0 && (settings.zero_warning || spec.global.zero_warning) {
        messages.alert("Some warnings were found and 'zero-warning' is set. Aborting.");
        return Err(Refused);
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
    Ok(Prepared { program, spec, sources, environment, threads, rights, live, saved, counts, services, scripts, start })
}

fn threads_of(spec: &Spec) -> (Option<u32>, ProcessorsSpec) {
    (spec.global.nbthread, spec.global.processors.clone())
}

/// Reads and compiles a configuration that is to follow the one that this process serves. What is wrong with it is said;
/// what else there is to say comes with it.
///
/// # Errors
/// See [`NotRenewed`].
pub fn renew(
    settings: &Settings,
    (start, written, former, vacant): (&Start, &Spec, &Program, &BTreeSet<ServerPlace>),
    messages: &mut Messages,
) -> Result<Renewed, NotRenewed> {
    let Loaded { mut spec, sources, environment, diagnostics: mut found, .. } = read_again(settings, messages)?;
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
    let succeeded = succeed(former, vacant, (spec, program), &mut resolver, &limits);
    let Successor { program, spec, changes } = succeeded.map_err(NotRenewed::Classic)?;
    Ok(Renewed { program, spec, changes, found: in_order(found, &sources), sources })
}

/// Reads the files of the command line while the process serves.
fn read_again(settings: &Settings, messages: &mut Messages) -> Result<Loaded, Refused> {
    let files = material::inputs(&settings.files).map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(&format!("config : {}", error.0)));
        Refused
    })?;
    let loaded = read(&files, settings, messages);
    conclude(messages)?;
    Ok(loaded)
}

/// A configuration as another process is going to read it.
pub struct Rehearsed {
    /// What it means.
    pub program: Program,
    /// Several sockets may share an address.
    pub reuse_port: bool,
}

/// Asks the machine everything that [`renew`] asks it in a worker; `None`: the configuration cannot be served.
pub fn rehearse(settings: &Settings, messages: &mut Messages) -> Option<Rehearsed> {
    let Loaded { mut spec, sources, environment, .. } = read_again(settings, messages).ok()?;
    let mut resolver = resolver(&sources, &environment, settings);
    apply(&mut spec, settings);
    let mut found = Vec::new();
    let _ = processors::settle(&mut spec.global, &mut found, messages);
    let _ = rights::look_up(&spec.global.rights, &mut found);
    if settings.ignore_unresolved {
        disable_unresolved(&mut spec, &mut resolver);
    }
    let program = policy::compile(&spec, &mut resolver, &limits(&spec, settings), &mut found)?;
    let reuse_port = !(settings.no_reuse_port || spec.global.machine.no_reuse_port);
    Some(Rehearsed { program, reuse_port })
}

impl Start {
    /// What keeps any configuration from following the one of this process. To be asked before files are read: a process
    /// that has given up its rights finds other files, or none.
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

    /// Whether an environment is that of the process. What the files are called is no part of that.
    fn has_environment(&self, next: &Environment) -> bool {
        let told = |environment: &Environment| {
            let variables = environment.iter().filter(|(name, _)| *name != "HAPROXY_CFGFILES");
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>()
        };
        told(&self.environment) == told(next)
    }

    /// What keeps a configuration from following the one of this process, apart from what its program shows.
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

    /// Whether the process cannot read and open what it could when it was started.
    pub fn gives_up(&self) -> bool {
        let rights = &self.rights;
        rights.chroot.is_some() || rights.user.is_some() || rights.group.is_some() || !rights.kept.is_empty()
    }
}

/// What the command line changes in what was written.
fn apply(spec: &mut Spec, settings: &Settings) {
    spec.global.nosplice |= settings.no_splice;
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
    // A hard limit may be astronomical; what `fd-hard-limit` does not cap is capped as HAProxy does.
    let most = spec.global.fd_hard_limit.unwrap_or(1 << 20);
    SystemLimits {
        descriptors: soft.max(hard.min(most)),
        processors: u32::try_from(rt::process::available_processors().len()).unwrap_or(1).max(1),
        maxconn: settings.maxconn,
        memory: settings.memory,
    }
}

/// Sums up after a step that may have reported errors.
fn conclude(messages: &mut Messages) -> Result<(), Refused> {
    if messages.alerts() == 0 {
        return Ok(());
    }
    messages.alert("config : Fatal errors found in configuration.");
    Err(Refused)
}
