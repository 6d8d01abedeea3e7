//! Serving: starts the workers, lives with the signals, ends. Must never touch a connection: the engine does.

use crate::files::reason;
use crate::load::Refused;
use crate::messages::Messages;
use base::ProcessorSet;
use engine::listener::Listening;
use engine::service::log::Targets;
use engine::service::runtime::{Host, Opened};
use engine::worker::Shared;
use policy::live::Live;
use policy::program::Program;
use rt::process::StarterWaits;
use rt::{Class, NO_TAG, Signal, WorkerId};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// The tag of log lines where `log-tag` sets none: what collectors of logs were set up to look for.
const TAG: &str = "haproxy";

/// Runs on every worker beside the engine.
pub type Companion = Box<dyn Fn(WorkerId) + Send + Sync>;

/// Everything that serving needs.
pub struct Service {
    /// What is served.
    pub program: Program,
    /// Where.
    pub sockets: Vec<Listening>,
    /// The sockets of the runtime API.
    pub runtime: Vec<Opened>,
    /// What the runtime API tells of this run.
    pub host: Host,
    /// The processors of each worker; see [`rt::Config::processors`].
    pub processors: Vec<Option<ProcessorSet>>,
    /// A command that waits for the process to serve.
    pub starter: Option<StarterWaits>,
    /// What else runs on the workers.
    pub companion: Option<Companion>,
    /// SIGINT and SIGTERM end the service with status 0 instead of ending the process by the signal.
    pub ends_gently: bool,
}

/// Serves until a signal ends it.
///
/// # Errors
/// When the workers cannot be started; why has been said.
pub fn serve(service: Service, messages: &mut Messages) -> Result<ExitCode, Refused> {
    let Service { program, sockets, runtime, host, processors, starter, companion, ends_gently } = service;
    let workers = usize::try_from(program.global.nbthread).unwrap_or(1).max(1);
    let config = rt::Config {
        workers,
        processors,
        buffer_size: program.global.bufsize,
        max_events: program.global.maxpollevents,
        ..rt::Config::default()
    };
    let program = Arc::new(program);
    let live = Arc::new(Live::new(&program));
    let (targets, problems) = Targets::open(&program, TAG);
    for (descriptor, error) in problems {
        messages.warning(&format!("Cannot write logs to file descriptor {descriptor} : {}", reason(&error)));
    }
    let mut shared = Shared::new(program, live, Arc::new(targets), workers);
    shared.host = host;
    let shared = Arc::new(shared);
    let runtime = Mutex::new(runtime);
    let start = Start(Mutex::new(Some((workers, sockets.into()))));
    let life = Arc::new(Life {
        handled: handled_signals(ends_gently),
        starter: Mutex::new(starter),
        quiet: messages.quiet(),
        ends_gently,
        status: AtomicU8::new(0),
    });
    let of_workers = Arc::clone(&life);
    let main: rt::Main = Arc::new(move |worker| {
        let sockets = start.take();
        // One worker serves the runtime API.
        let runtime = if worker == 0 { std::mem::take(&mut *lock(&runtime)) } else { Vec::new() };
        let (shared, life) = (Arc::clone(&shared), Arc::clone(&of_workers));
        if let Some(companion) = &companion {
            companion(worker);
        }
        Box::pin(async move {
            engine::serve(Arc::clone(&shared), sockets).await;
            engine::service::runtime::process::start(runtime);
            if worker == 0 {
                live_with_signals(shared, life).await;
            }
        })
    });
    let served = rt::signal::handle_signals(&life.handled).and_then(|()| rt::run(&config, main));
    served.map(|()| ExitCode::from(life.status.load(Ordering::Relaxed))).map_err(|error| {
        messages.alert(&format!("Cannot start the workers : {}", reason(&error)));
        Refused
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The listening sockets on their way to the workers. Nothing is left behind here: a socket closes when the last
/// worker lets go of it.
struct Start(Mutex<Option<(usize, Arc<[Listening]>)>>);

impl Start {
    fn take(&self) -> Arc<[Listening]> {
        let mut held = lock(&self.0);
        match held.take() {
            Some((left, sockets)) if left > 1 => {
                *held = Some((left - 1, Arc::clone(&sockets)));
                sockets
            }
            Some((_, sockets)) => sockets,
            None => Arc::new([]),
        }
    }
}

/// What the handling of signals has to know, and what it finds out.
struct Life {
    handled: Vec<Signal>,
    starter: Mutex<Option<StarterWaits>>,
    quiet: bool,
    ends_gently: bool,
    /// The exit status.
    status: AtomicU8,
}

impl Life {
    fn take_starter(&self) -> Option<StarterWaits> {
        lock(&self.starter).take()
    }
}

/// Signals that are handled. SIGTERM and SIGINT keep the system's own effect, which needs nobody's help, unless the
/// process is to end gently, or is process 1, which the kernel shields from signals that it does not handle.
fn handled_signals(ends_gently: bool) -> Vec<Signal> {
    let mut handled =
        vec![Signal::User1, Signal::User2, Signal::Hangup, Signal::Quit, Signal::TerminalInput, Signal::TerminalOutput];
    if ends_gently || std::process::id() == 1 {
        handled.extend([Signal::Terminate, Signal::Interrupt]);
    }
    handled
}

/// Handles signals until one of them ends the process or asks for its end.
async fn live_with_signals(shared: Arc<Shared>, life: Arc<Life>) {
    let Ok(mut signals) = rt::signals(&life.handled) else { return };
    if let Some(starter) = life.take_starter() {
        starter.leave(0);
    }
    let mut messages = Messages::while_serving(life.quiet);
    loop {
        match Signal::from_number(signals.next().await) {
            Some(Signal::User1) if !shared.is_stopping() => {
                rt::spawn(Class::Normal, NO_TAG, leave_softly(Arc::clone(&shared), life.quiet));
            }
            Some(signal @ (Signal::Terminate | Signal::Interrupt)) => {
                if !life.ends_gently {
                    // What a shell shows for a process that the signal itself has ended.
                    life.status.store(128 + signal.number().unsigned_abs() as u8, Ordering::Relaxed);
                }
                rt::stop();
            }
            Some(Signal::Hangup) => report(&shared, &mut messages),
            _ => {}
        }
    }
}

/// The soft stop: `grace`, then no new connections, then the sessions that are open, for `hard-stop-after` at most.
async fn leave_softly(shared: Arc<Shared>, quiet: bool) {
    let mut messages = Messages::while_serving(quiet);
    let global = &shared.program.global;
    if let Some(grace) = global.grace {
        rt::sleep(grace).await;
    }
    engine::stop(&shared);
    for proxy in shared.program.proxies.iter().filter(|proxy| !proxy.disabled) {
        messages.warning(&format!("Proxy {} stopped.", proxy.name));
    }
    let mut drained = pin!(engine::drained());
    let mut patience = pin!(global.hard_stop_after.map(rt::sleep));
    let finished = poll_fn(|cx| {
        if drained.as_mut().poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        match patience.as_mut().as_pin_mut() {
            Some(patience) => patience.poll(cx).map(|()| false),
            None => Poll::Pending,
        }
    });
    if !finished.await {
        messages.warning("soft-stop running for too long, performing a hard-stop.");
    }
    rt::stop();
}

/// What SIGHUP asks for: who is there and how busy.
fn report(shared: &Shared, messages: &mut Messages) {
    messages.warning("SIGHUP received, dumping servers states.");
    for (proxy, state) in shared.program.proxies.iter().zip(&shared.live.proxies) {
        for server in proxy.backend.iter().flat_map(|backend| &backend.servers) {
            let condition = if server.disabled { "MAINT" } else { "UP" };
            let active = state.counts(Some(server.index)).srv_conn;
            messages
                .warning(&format!("SIGHUP: Server {}/{} is {condition}. Conn: {active} act.", proxy.name, server.name));
        }
        messages.warning(&format!("SIGHUP: Proxy {} has {} connections from clients.", proxy.name, state.feconn()));
    }
}
