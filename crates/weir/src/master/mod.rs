//! The master (`-W`, `-Ws`): starts workers, replaces them on request, ends with them (management guide, sections 3, 4
//! and 9.4). It keeps its process id, evaluates only its own part of the configuration, and never serves traffic.

mod cli;
mod counter;
mod debug;
mod forward;
mod life;
pub mod link;
mod notify;
mod roster;
mod start;

use crate::arguments::Settings;
use crate::files::{self, reason};
use crate::listeners::{self, Older};
use crate::load;
use crate::messages::{Messages, ReportedError};
use crate::{background, host};
pub(crate) use cli::commands;
use config::document::Sources;
use config::spec::{GlobalSpec, LifetimeSpec};
use config::{InputFile, LoadOptions, LoadedConfiguration};
use life::Master;
use notify::Manager;
use rt::process::StarterWaits;
use start::LaunchCommand;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs the master until it ends.
///
/// # Errors
/// It cannot be started; reported through `messages`.
pub fn run(settings: &Settings, messages: &mut Messages) -> Result<ExitCode, ReportedError> {
    let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
    load::enter_directory(settings, messages)?;
    let LoadedConfiguration { spec, mut environment, .. } = own_part(settings);
    let global = spec.global;
    if global.quiet && !settings.verbose {
        messages.silence();
    }
    let sockets = open_sockets(settings, messages)?;
    let _ = environment.set("HAPROXY_MWORKER", "1");
    let _ = environment.set("HAPROXY_MASTER_CLI", &sockets.addresses);
    let environment = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let recipe = recipe(settings, directory).map_err(|error| {
        messages.alert(&format!("Cannot find the program itself : {}", reason(&error)));
        ReportedError
    })?;
    let daemon = (settings.daemon || global.daemon) && !settings.foreground;
    let starter = settle(settings, &global, daemon, messages)?;
    let post = MasterParameters {
        recipe,
        sockets,
        starter,
        environment,
        lifetime: global.lifetime,
        notifies: settings.notify,
    };
    serve(post, messages)
}

/// The parameters of a master.
struct MasterParameters {
    recipe: LaunchCommand,
    sockets: cli::Sockets,
    starter: Option<StarterWaits>,
    /// `NAME=value`, for `show env`.
    environment: Vec<String>,
    lifetime: LifetimeSpec,
    notifies: bool,
}

/// Reads the settings of the master itself. Errors are reported by its workers.
fn own_part(settings: &Settings) -> LoadedConfiguration {
    let files = files::read(&settings.files).unwrap_or_default();
    let local_peer = settings.local_peer.clone().unwrap_or_else(host::name);
    let options = LoadOptions { language: load::language(settings), local_peer, ..LoadOptions::default() };
    config::load(&files, config::environment::Environment::of_process(), &options)
}

fn recipe(settings: &Settings, directory: std::path::PathBuf) -> std::io::Result<LaunchCommand> {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    Ok(LaunchCommand {
        program: std::env::current_exe()?,
        name,
        arguments: words.collect(),
        directory,
        started: std::cell::Cell::new(None),
        hands_over: settings.takeover.as_deref() != Some("/dev/null"),
    })
}

/// Moves to the background and writes the pid file.
fn settle(
    settings: &Settings,
    global: &GlobalSpec,
    daemon: bool,
    messages: &mut Messages,
) -> Result<Option<StarterWaits>, ReportedError> {
    let written = global.pidfile.as_ref().map(Path::new).filter(|_| daemon);
    let pid_file = settings.pid_file.as_deref().or(written);
    background::settle(daemon, pid_file, messages)
}

/// Opens the sockets of `-S`. Words after commas are those of `stats socket`.
fn open_sockets(settings: &Settings, messages: &mut Messages) -> Result<cli::Sockets, ReportedError> {
    let mut text = String::from("global\n");
    for socket in &settings.master_sockets {
        let words = socket.replace(',', " ");
        let level = if words.split(' ').any(|word| word == "level") { "" } else { " level admin" };
        text.push_str(&format!("stats socket {words}{level}\n"));
    }
    let file = InputFile { name: "-S".into(), bytes: text.into_bytes() };
    let loaded = config::load(&[file], config::environment::Environment::new(), &LoadOptions::default());
    let alerts: Vec<_> = loaded.diagnostics.iter().filter(|found| found.is_alert()).cloned().collect();
    messages.report(&alerts, &loaded.sources);
    if !alerts.is_empty() {
        return Err(ReportedError);
    }
    let mut found = Vec::new();
    let mut resolver = crate::resolve::SystemResolver {
        last_addresses: std::collections::BTreeMap::new(),
        ipv4_only: settings.ipv4_only,
        files: Vec::new(),
        surroundings: crate::resolve::ResolveContext::default(),
        services: control::services::built_in(),
    };
    let program = policy::compile(&loaded.spec, &mut resolver, &policy::SystemLimits::default(), &mut found);
    let Some(program) = program else {
        messages.report(&found, &Sources::default());
        return Err(ReportedError);
    };
    let opened = listeners::open(&program, &loaded.spec, &loaded.sources, false, &mut Older::default());
    let opened = opened.map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(error));
        ReportedError
    })?;
    let rights = program.runtime.sockets.iter().map(|socket| (socket.level, socket.bind.clone())).collect();
    Ok(cli::Sockets { opened: opened.runtime, rights, addresses: host::runtime_addresses(&program) })
}

/// Runs the master on this thread, its only one.
fn serve(post: MasterParameters, messages: &mut Messages) -> Result<ExitCode, ReportedError> {
    let quiet = messages.quiet();
    let status = Arc::new(Mutex::new(0));
    let told = Arc::clone(&status);
    let post = Mutex::new(Some(post));
    let main: rt::Main = Arc::new(move |_| {
        let post = post.lock().unwrap_or_else(PoisonError::into_inner).take();
        let told = Arc::clone(&told);
        Box::pin(async move {
            if let Some(MasterParameters { recipe, sockets, starter, environment, lifetime, notifies }) = post {
                let name = std::env::var_os("NOTIFY_SOCKET").filter(|_| notifies);
                let office = Master::new(recipe, Manager::at(name.as_deref()), &lifetime, starter, quiet);
                let office = Rc::new(office);
                cli::open(&office, sockets, environment);
                let ended = office.live().await;
                *told.lock().unwrap_or_else(PoisonError::into_inner) = ended;
            }
            rt::stop();
        })
    });
    let served = rt::signal::handle_signals(life::SIGNALS).and_then(|()| rt::run(&rt::Config::default(), main));
    served.map_err(|error| {
        messages.alert(&format!("Cannot start the master : {}", reason(&error)));
        ReportedError
    })?;
    let status = *status.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(ExitCode::from(status))
}
