//! Signal handling of a serving process (management guide, section 4): pauses, reports, stops. Must never decide how a
//! connection ends: the engine does.

use crate::messages::Messages;
use crate::report;
use crate::worker::Master;
use config::spec::ProxyKind;
use engine::shared_counts::Sharing;
use engine::worker::Process;
use policy::program::Proxy;
use rt::process::StarterWaits;
use rt::{Class, NO_TAG, Signal};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Poll;

/// State of signal handling.
pub struct Life {
    shared: Arc<Process>,
    handled: Vec<Signal>,
    quiet: bool,
    ends_gently: bool,
    /// Exit status.
    status: AtomicU8,
    /// A signal ended the process at once.
    was_ended: AtomicBool,
}

/// Returns the signals to handle. SIGTERM and SIGINT keep the system's default action, unless the process must stop
/// gracefully, or is process 1, to which the kernel does not deliver unhandled signals.
fn handled_signals(all: bool) -> Vec<Signal> {
    let mut handled =
        vec![Signal::User1, Signal::User2, Signal::Hangup, Signal::Quit, Signal::TerminalInput, Signal::TerminalOutput];
    if all || std::process::id() == 1 {
        handled.extend([Signal::Terminate, Signal::Interrupt]);
    }
    handled
}

impl Life {
    /// Creates the state for a process that serves `shared`.
    pub fn new(shared: Arc<Process>, quiet: bool, ends_gently: bool) -> Self {
        // Counts that are shared are exchanged at the end, also where a signal ends the process.
        let handled = handled_signals(ends_gently || shared.service::<Sharing>().is_set());
        Self { shared, handled, quiet, ends_gently, status: AtomicU8::new(0), was_ended: AtomicBool::new(false) }
    }

    /// Installs the handlers, so that no signal is lost before [`Life::live`].
    ///
    /// # Errors
    /// The kernel's error.
    pub fn prepare(&self) -> std::io::Result<()> {
        rt::signal::handle_signals(&self.handled)
    }

    /// Whether a signal ended the process at once, in the place of a soft stop.
    pub fn was_ended(&self) -> bool {
        self.was_ended.load(Ordering::Relaxed)
    }

    /// The exit status, once the workers have ended.
    pub fn status(&self) -> ExitCode {
        ExitCode::from(self.status.load(Ordering::Relaxed))
    }

    /// Signals the waiting start command that the process serves, then handles signals until one of them ends the
    /// process. Runs on worker 0.
    pub async fn live(&self, starter: Option<StarterWaits>, master: Option<Master>) {
        let Ok(mut signals) = rt::signals(&self.handled) else { return };
        if let Some(starter) = starter {
            starter.leave(0);
        }
        if let Some(master) = master {
            rt::spawn(Class::Normal, NO_TAG, follow(master, Arc::clone(&self.shared), self.quiet));
        }
        let mut messages = Messages::while_serving(self.quiet);
        loop {
            match Signal::from_number(signals.next().await) {
                Some(Signal::User1) => leave(&self.shared, self.quiet),
                Some(signal @ (Signal::Terminate | Signal::Interrupt)) => {
                    if !self.ends_gently {
                        // The exit status that a shell shows for a process killed by the signal.
                        self.status.store(128 + signal.number().unsigned_abs() as u8, Ordering::Relaxed);
                    }
                    self.was_ended.store(true, Ordering::Relaxed);
                    rt::stop();
                }
                Some(Signal::Hangup) => report::servers(&self.shared, &mut messages),
                Some(Signal::Quit) => report::memory(&self.shared, &mut messages),
                Some(Signal::TerminalOutput) => pause(&self.shared, &mut messages),
                Some(Signal::TerminalInput) => resume(&self.shared, &mut messages),
                _ => {}
            }
        }
    }
}

/// Executes requests of the master. When the master exits, so does the process.
async fn follow(master: Master, shared: Arc<Process>, quiet: bool) {
    if master.obey(&shared).await {
        leave(&shared, quiet);
    }
}

/// Begins the soft stop, unless it has begun.
fn leave(shared: &Arc<Process>, quiet: bool) {
    if !engine::begin_to_leave(shared) {
        // A successor may need the processors.
        rt::stop_spinning();
        rt::spawn(Class::Normal, NO_TAG, leave_softly(Arc::clone(shared), quiet));
    }
}

/// Soft stop: waits for `grace`, closes the listeners, then waits for open sessions, at most `hard-stop-after`.
async fn leave_softly(shared: Arc<Process>, quiet: bool) {
    let mut messages = Messages::while_serving(quiet);
    let generation = shared.generation();
    let global = &generation.program.global;
    if let Some(grace) = global.grace {
        rt::sleep(grace).await;
    }
    engine::stop(&shared);
    report::stopped(&shared);
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

/// HAProxy's name of a proxy with listeners: `frontend web`, `proxy app`.
fn listens(proxy: &Proxy) -> Option<String> {
    let kind = match proxy.kind {
        ProxyKind::Frontend => "frontend",
        ProxyKind::Backend => return None,
        ProxyKind::Listen => "proxy",
    };
    proxy.frontend.as_ref().filter(|_| !proxy.disabled).map(|_| format!("{kind} {}", proxy.name))
}

fn pause(shared: &Arc<Process>, messages: &mut Messages) {
    if shared.is_stopping() || shared.is_paused() {
        return;
    }
    let failed = engine::pause(shared);
    for proxy in &shared.generation().program.proxies {
        if let Some(name) = listens(proxy) {
            match failed.contains(&proxy.index) {
                false => messages.warning(&format!("Paused {name}.")),
                true => messages.warning(&format!("Failed to pause {name}.")),
            }
        }
    }
}

fn resume(shared: &Arc<Process>, messages: &mut Messages) {
    if shared.is_stopping() || !shared.is_paused() {
        return;
    }
    let failed = engine::resume(shared);
    for proxy in &shared.generation().program.proxies {
        if let Some(name) = listens(proxy) {
            match failed.contains(&proxy.index) {
                false => messages.warning(&format!("Resumed {name}.")),
                true => messages.warning(&format!(
                    "Port busy while trying to enable {name}. Is another process listening there now?"
                )),
            }
        }
    }
}
