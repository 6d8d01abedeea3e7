//! One run in order: arguments, files, configuration, limits, sockets, background, pid file, serving, end. See
//! docs/signals.md, which documents this order. Must never depend on the contents of a configuration.

use crate::arguments::{Settings, StopMode, WorkerSeat};
use crate::in_place::Renewal;
use crate::listeners::{self, Older};
use crate::load::{self, PreparedConfiguration};
use crate::machine::{self, Machine};
use crate::master;
use crate::messages::{Messages, ReportedError};
use crate::predecessors::Predecessors;
use crate::preloaded;
use crate::reader;
use crate::rights::{self, Rights};
use crate::serve::{self, KeptFiles, LastStep, Service};
use crate::takeover::{InheritedSockets, Refusal};
use crate::worker::Master;
use crate::{acme, background, cache_files, dump, files, host, libraries, qlog, shared_counts};
use policy::program::Program;
use rt::Folder;
use rt::SocketCalls;
use rt::process::NullDevice;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the configuration that the command line names, or checks it.
#[must_use]
pub fn run(settings: &Settings) -> ExitCode {
    let mut messages = Messages::new(settings.quiet, settings.diagnostics);
    match start(settings, &mut messages) {
        Ok(code) => code,
        Err(ReportedError) => ExitCode::FAILURE,
    }
}

fn start(settings: &Settings, messages: &mut Messages) -> Result<ExitCode, ReportedError> {
    if let (Some(flag), false) = (settings.not_supported.first(), settings.check) {
        messages.alert(&format!("{flag} is not supported yet. {}", crate::help::HINT));
        return Err(ReportedError);
    }
    if let Some(channel) = settings.reader {
        return Ok(reader::run(settings, channel));
    }
    if settings.master && settings.seat.is_none() && !settings.check {
        return master::run(settings, messages);
    }
    let master = settings.seat.map(|seat| join(seat, messages)).transpose()?;
    let prepared = prepare(settings, messages)?;
    // Checked before any socket listens: a process that fails later would drop connections.
    cache_files::check(&prepared.program, messages)?;
    let traces = prepared.spec.global.tune.qlog.as_ref().map(|written| &written.directory);
    qlog::check(traces, &prepared.rights, &prepared.sources, messages)?;
    if settings.check {
        conclude_check(settings, messages);
        return Ok(ExitCode::SUCCESS);
    }
    launch(settings, prepared, master, messages)
}

/// The steps that `-c` also performs.
fn prepare(settings: &Settings, messages: &mut Messages) -> Result<PreparedConfiguration, ReportedError> {
    load::enter_directory(settings, messages)?;
    let found = files::read(&settings.files).map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(&format!("config : {}", error.0)));
        ReportedError
    })?;
    if found.is_empty() {
        messages.alert(&format!("no configuration file was found in the folders. {}", crate::help::HINT));
        return Err(ReportedError);
    }
    let loaded = load::read(&found, settings, messages);
    if let Some(key) = settings.dump_configuration {
        crate::print(dump::configuration(&loaded.document, key));
    }
    if let Some(classes) = &settings.dump_keywords {
        crate::print(dump::keywords(classes));
    }
    if settings.dump_libraries {
        crate::print(libraries::list());
    }
    load::compile(loaded, settings, messages)
}

fn conclude_check(settings: &Settings, messages: &Messages) {
    if messages.warnings() > 0 && !messages.quiet() {
        crate::print("Warnings were found.\n");
    }
    if settings.verbose {
        crate::print("Configuration file is valid\n");
    }
}

/// Runs a checked configuration until the process ends.
fn launch(
    settings: &Settings,
    prepared: PreparedConfiguration,
    mut master: Option<Master>,
    messages: &mut Messages,
) -> Result<ExitCode, ReportedError> {
    raise_descriptors(&prepared.program.global, messages)?;
    limit_memory(settings.memory, &prepared.program.global, messages)?;
    let (succeeds, predecessors) = predecessors(settings);
    let (opened, predecessors) = open(settings, &prepared, predecessors, messages)?;
    let PreparedConfiguration {
        mut program,
        spec,
        sources,
        mut environment,
        threads,
        rights,
        live,
        saved,
        counts,
        services,
        scripts,
        start,
    } = prepared;
    let kept = kept_files(&mut program, &rights, messages)?;
    say_limits(settings, &program.global, messages);
    let is_daemon = (settings.daemon || spec.global.daemon) && !settings.foreground;
    if is_daemon {
        // Standard output and error are detached; a duplicate would keep those of the starting command open.
        program.event_descriptors = Box::default();
    }
    if let Some(master) = master.as_mut().filter(|_| spec.global.lifetime.reload_in_place) {
        master.renew_with(Renewal { settings: settings.clone(), start, is_daemon });
    }
    // The master of a worker is already in the background, and its process id is in the pid file.
    let background = is_daemon && master.is_none();
    let null = if is_daemon && !background { NullDevice::open().ok() } else { None };
    let pid_file = pid_file(settings, &spec, background).filter(|_| master.is_none());
    let starter = background::settle(background, pid_file, messages)?;
    rt::memory::keep_to_limits(usize::try_from(program.global.nbthread).unwrap_or(1) + SERVICE_THREADS);
    let _ = environment.set("HAPROXY_CLI", &host::runtime_addresses(&program));
    let host = host::describe(&spec.global, &environment, settings.memory, messages);
    // All sockets are bound. After privileges are dropped, a failure could not be reported.
    predecessors.dismiss();
    machine::prepare(&spec.global.machine, messages);
    let machine = Machine { processors: threads.bindings, written: spec.global.machine.clone() };
    let service = Service {
        last_step: Some(last_step(rights, kept.folders(), spec.global.checks.programs, null)),
        program,
        live,
        saved,
        counts,
        services,
        scripts,
        written: spec,
        sources,
        sockets: opened.proxies,
        datagrams: opened.datagrams,
        channels: opened.channels,
        runtime: opened.runtime,
        relays: opened.relays,
        peers: opened.peers,
        succeeds,
        host,
        machine,
        starter,
        master,
        companion: None,
        ends_gently: false,
        kept,
    };
    serve::serve(service, messages)
}

/// Returns the path of the pid file. The one of the configuration is used in the background only.
fn pid_file<'a>(settings: &'a Settings, spec: &'a config::spec::Spec, background: bool) -> Option<&'a Path> {
    match (&settings.pid_file, &spec.global.pidfile) {
        (Some(path), _) => Some(path),
        (None, Some(path)) if background => Some(Path::new(path)),
        (None, _) => None,
    }
}

/// Opens the files that are written after privileges were dropped.
fn kept_files(program: &mut Program, rights: &Rights, messages: &mut Messages) -> Result<KeptFiles, ReportedError> {
    Ok(KeptFiles {
        acme_folder: acme::prepare(program, rights, messages)?,
        caches: cache_files::open(program, messages)?,
        qlog: qlog::open(program, messages)?,
        counts: shared_counts::open(program, messages)?,
    })
}

/// Returns whether this process replaces others, and these processes.
fn predecessors(settings: &Settings) -> (bool, Predecessors) {
    let is_first = !settings.seat.is_some_and(|seat| seat.again);
    let succeeds = !is_first || settings.predecessors.iter().any(|(_, wish)| *wish == StopMode::Finish);
    (succeeds, Predecessors::new(if is_first { &settings.predecessors } else { &[] }))
}

/// Opens every socket, or uses those of an older process.
fn open(
    settings: &Settings,
    PreparedConfiguration { program, spec, sources, .. }: &PreparedConfiguration,
    predecessors: Predecessors,
    messages: &mut Messages,
) -> Result<(listeners::Sockets, Predecessors), ReportedError> {
    let driver = spec.global.machine.driver;
    let calls = preloaded::socket_calls(driver);
    calls.set();
    preloaded::report_calls(driver, messages);
    let mut older = Older { predecessors, inherited: take_over(settings, messages)? };
    let reuse_port = !(settings.no_reuse_port || spec.global.machine.no_reuse_port);
    let opened = listeners::open(program, spec, sources, reuse_port, &mut older);
    // Unused sockets are closed before this process reports that it serves.
    let Older { predecessors, mut inherited } = older;
    let channels = inherited.take_channels();
    if settings.verbose && inherited.len() > 0 {
        messages.notice(&format!("{} listening sockets of the older process are not used any more.", inherited.len()));
    }
    drop(inherited);
    let mut sockets = opened.map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(error));
        messages.alert("Some protocols failed to start their listeners! Exiting.");
        ReportedError
    })?;
    // A socket of the runtime API alone is sufficient.
    if sockets.is_empty() {
        messages.alert("No enabled listener found (check for 'bind' directives) ! Exiting.");
        return Err(ReportedError);
    }
    if let Some(reason) = &sockets.unsteered {
        messages.warning(&format!(
            "Packets of QUIC clients whose addresses change are passed from thread to thread, since the kernel cannot \
             distribute them by their connection IDs : {reason}."
        ));
    }
    if calls == SocketCalls::Named && reuse_port {
        preloaded::report_addresses(&sockets, messages);
    }
    sockets.channels = channels;
    Ok((sockets, predecessors))
}

fn say_limits(settings: &Settings, global: &policy::program::Global, messages: &mut Messages) {
    if settings.verbose {
        messages.notice(&format!(
            "{} threads, {} connections at most, {} descriptors wanted.",
            global.nbthread, global.maxconn, global.descriptors
        ));
    }
    if global.maxconn_is_automatic && settings.memory.is_none() {
        messages.notice(&format!("Automatically setting global.maxconn to {}.", global.maxconn));
    }
}

/// Returns the last step before the workers start, when everything is open.
fn last_step(
    rights: Rights,
    folders: Vec<Arc<Folder>>,
    checks_by_programs: bool,
    null: Option<NullDevice>,
) -> LastStep {
    Box::new(move |starter, messages| {
        rights::give_up(&rights, &folders, messages)?;
        if checks_by_programs
            && rights.fork_wanted
            && let Err(error) = rt::program::guard()
        {
            let reason = files::reason(&error);
            messages.warning(&format!("Programs that check servers go on if this process is killed : {reason}"));
        }
        if let Some(starter) = starter {
            background::leave_terminal(starter, messages)?;
        }
        if let Some(null) = null {
            // A reader of the master's output must not have to wait for this process to end.
            let _ = null.replace_standard_streams();
            messages.silence();
        }
        Ok(())
    })
}

/// Opens a worker's channel to its master.
fn join(seat: WorkerSeat, messages: &mut Messages) -> Result<Master, ReportedError> {
    let joined = Master::inherit(seat.channel).and_then(|master| Ok((master.voice()?, master)));
    match joined {
        Ok((voice, master)) => {
            messages.speak_through(voice);
            Ok(master)
        }
        Err(error) => {
            messages.alert(&format!("Cannot reach the master : {}", files::reason(&error)));
            Err(ReportedError)
        }
    }
}

/// Receives the listening sockets of the worker that this one replaces. On failure this one binds its own.
fn follow(sockets: i32, messages: &mut Messages) -> InheritedSockets {
    let connection = rt::process::take_inherited(sockets).map_err(|_| Refusal::NotConnected);
    connection.and_then(|fd| InheritedSockets::from_stream(fd.into())).unwrap_or_else(|refusal| {
        messages.warning(&format!("{refusal} of the former worker."));
        InheritedSockets::default()
    })
}

/// `-x`: receives the listening sockets of the process that listens on that socket.
fn take_over(settings: &Settings, messages: &mut Messages) -> Result<InheritedSockets, ReportedError> {
    if let Some(seat) = settings.seat.filter(|seat| seat.again) {
        return Ok(seat.sockets.map_or_else(InheritedSockets::default, |sockets| follow(sockets, messages)));
    }
    let Some(path) = settings.takeover.as_deref().filter(|path| *path != "/dev/null") else {
        return Ok(InheritedSockets::default());
    };
    InheritedSockets::from_path(Path::new(path)).map_err(|refusal| {
        match &refusal {
            Refusal::NotConnected => messages.warning(&format!("{refusal} '{path}'")),
            Refusal::NoNumber | Refusal::Broken(_) => messages.warning(&refusal.to_string()),
        }
        messages.alert("Failed to get the sockets from the old process!");
        ReportedError
    })
}

/// Number of threads besides the workers: the watchdog, and helpers that are started on demand.
const SERVICE_THREADS: usize = 4;

/// `-m`: limits the memory of the process in megabytes; close to the limit, clients are throttled.
fn limit_memory(
    megabytes: Option<u64>,
    global: &policy::program::Global,
    messages: &mut Messages,
) -> Result<(), ReportedError> {
    let Some(megabytes) = megabytes else { return Ok(()) };
    if let Some(excess) = &global.excess {
        messages.alert(excess);
        return Err(ReportedError);
    }
    let Err(error) = rt::rights::limit_memory(megabytes.saturating_mul(1 << 20)) else { return Ok(()) };
    let sentence = format!("Cannot limit the memory to {megabytes} MB : {}", files::reason(&error));
    if global.strict_limits {
        messages.alert(&sentence);
        return Err(ReportedError);
    }
    messages.warning(&sentence);
    Ok(())
}

/// Returns HAProxy's estimate of the connections for a number of descriptors.
fn roughly(descriptors: u64) -> u64 {
    let connections = (descriptors * 49 / 100).saturating_sub(9);
    let unit = 10_u64.pow(connections.checked_ilog10().unwrap_or(0).saturating_sub(1));
    connections / unit * unit
}

/// Raises the soft limit of descriptors to the number that the program needs.
fn raise_descriptors(global: &policy::program::Global, messages: &mut Messages) -> Result<(), ReportedError> {
    let wanted = global.descriptors;
    let limits = rt::process::raise_descriptor_limit(wanted).or_else(|_| rt::process::descriptor_limit());
    let Ok((soft, hard)) = limits else { return Ok(()) };
    if soft >= wanted {
        return Ok(());
    }
    let sentence = format!(
        "Cannot raise FD limit to {wanted}, current limit is {soft} and hard limit is {hard}. You may prefer to let Weir \
         adjust the limit by itself; for this, please just drop any 'maxconn' and 'ulimit-n' from the global section, and \
         possibly add 'fd-hard-limit' lower than this hard limit. You may also force a new 'maxconn' value that is a bit \
         lower than half of the hard limit minus listeners and checks. This results in roughly {} here.",
        roughly(hard)
    );
    if global.strict_limits {
        messages.alert(&sentence);
        return Err(ReportedError);
    }
    messages.warning(&sentence);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::roughly;

    #[test]
    fn the_estimate_is_haproxys() {
        // HAProxy 3.5's values for these hard limits.
        let rows = [
            (256, 110),
            (500, 230),
            (1_000, 480),
            (1_024, 490),
            (2_000, 970),
            (4_096, 1_900),
            (7_000, 3_400),
            (15_000, 7_300),
            (20_000, 9_700),
        ];
        for (descriptors, connections) in rows {
            assert_eq!(roughly(descriptors), connections, "{descriptors}");
        }
    }
}
