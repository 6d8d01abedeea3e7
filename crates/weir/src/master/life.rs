//! The life of a master: signals, reloads, exits of workers. Must never communicate with a client.

use super::link::{FromWorker, LONGEST, RELOAD};
use super::notify::{Manager, StateChange};
use super::roster::{EndedState, Roster, WorkerState};
use super::start::{LaunchCommand, connection};
use crate::files::reason;
use crate::messages::Messages;
use crate::version;
use base::Moment;
use config::spec::LifetimeSpec;
use rt::net::Channel;
use rt::process::StarterWaits;
use rt::{Class, NO_TAG, Signal};
use std::cell::{Cell, RefCell};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The signals that the master handles.
pub const SIGNALS: &[Signal] = &[
    Signal::Child,
    Signal::User1,
    Signal::User2,
    Signal::Hangup,
    Signal::Terminate,
    Signal::Interrupt,
    Signal::TerminalOutput,
    Signal::TerminalInput,
];

/// Default of `mworker-max-reloads`: number of reloads that a leaving worker survives.
const MAX_RELOADS: u32 = 50;

/// Maximum bytes of start messages that are kept.
const MOST_LOGS: usize = 64 * 1024;

/// How replaced workers end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// They finish open sessions.
    Soft,
    /// They end immediately.
    Hard,
}

/// The type of a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadKind {
    /// In place if the worker is configured with `reload in-place` and able to; otherwise like `NewWorker`.
    InPlace,
    /// With a new worker.
    NewWorker(StopSignal),
}

/// The messages of the last start, shared by their writers.
#[derive(Clone, Default)]
pub struct Logs(Rc<RefCell<String>>);

impl Logs {
    fn add(&self, text: &str) {
        let mut logs = self.0.borrow_mut();
        if logs.len() + text.len() <= MOST_LOGS {
            logs.push_str(text);
        }
    }

    /// Returns the messages.
    pub fn text(&self) -> String {
        self.0.borrow().clone()
    }
}

/// Writes to standard error and to the messages of the start.
struct StartupOutput(Logs);

impl Write for StartupOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.add(&String::from_utf8_lossy(bytes));
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

type SharedChannel = Rc<RefCell<Channel>>;

/// The state of a running master.
pub struct Master {
    recipe: LaunchCommand,
    manager: Manager,
    max_reloads: u32,
    ends_on_failure: bool,
    roster: RefCell<Roster>,
    channels: RefCell<Vec<(u32, SharedChannel)>>,
    messages: RefCell<Messages>,
    logs: Logs,
    starter: RefCell<Option<StarterWaits>>,
    /// How the previous workers end once the starting one serves.
    farewell: Cell<StopSignal>,
    /// A reload that was requested during another one.
    next: Cell<Option<ReloadKind>>,
    /// Workers that support a reload in place, and whether each needs a process that reads files for it.
    renewers: RefCell<Vec<(u32, bool)>>,
    /// The worker that is reloading in place.
    renewing: Cell<Option<u32>>,
    /// Whether the last reload succeeded.
    succeeded: Cell<bool>,
    /// Number of completed reloads, successful or not.
    concluded: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
    /// The exit status, once the master is stopping.
    leaving: Cell<Option<u8>>,
    ended: Cell<Option<u8>>,
    started: Moment,
}

impl Master {
    /// Creates a master without workers.
    pub fn new(
        recipe: LaunchCommand,
        manager: Manager,
        lifetime: &LifetimeSpec,
        starter: Option<StarterWaits>,
        quiet: bool,
    ) -> Self {
        let logs = Logs::default();
        let mut messages = Messages::new(quiet, false);
        messages.speak_through(Box::new(StartupOutput(logs.clone())));
        Self {
            recipe,
            manager,
            max_reloads: lifetime.max_reloads.unwrap_or(MAX_RELOADS),
            ends_on_failure: !lifetime.no_exit_on_failure,
            roster: RefCell::default(),
            channels: RefCell::default(),
            messages: RefCell::new(messages),
            logs,
            starter: RefCell::new(starter),
            farewell: Cell::new(StopSignal::Soft),
            next: Cell::new(None),
            renewers: RefCell::default(),
            renewing: Cell::new(None),
            succeeded: Cell::new(false),
            concluded: Cell::new(0),
            waiting: RefCell::default(),
            leaving: Cell::new(None),
            ended: Cell::new(None),
            started: rt::now(),
        }
    }

    /// Runs until the last worker has ended; returns the exit status.
    pub async fn live(self: &Rc<Self>) -> u8 {
        let Ok(mut signals) = rt::signals(SIGNALS) else { return 1 };
        self.start_worker(false);
        loop {
            if let Some(status) = self.ended.get() {
                return status;
            }
            match Signal::from_number(signals.next().await) {
                Some(Signal::Child) => self.reap(),
                Some(Signal::User2) => self.reload(ReloadKind::InPlace),
                Some(Signal::Hangup) => self.reload(ReloadKind::NewWorker(StopSignal::Soft)),
                Some(Signal::User1) => self.leave(Signal::User1, 0),
                Some(Signal::Terminate) => self.leave(Signal::Terminate, 0),
                Some(Signal::Interrupt) => self.leave(Signal::Interrupt, 130),
                Some(signal @ (Signal::TerminalOutput | Signal::TerminalInput)) => self.pass_on(signal),
                _ => {}
            }
        }
    }

    /// Returns the messages of the last start.
    pub fn logs(&self) -> String {
        self.logs.text()
    }

    /// Whether the last reload failed.
    pub fn has_failed(&self) -> bool {
        self.roster.borrow().failed > 0
    }

    /// Returns the start time of the master.
    pub fn started(&self) -> Moment {
        self.started
    }

    /// Returns the answer to `show proc`.
    pub fn show(&self) -> String {
        self.roster.borrow().show(std::process::id(), self.started, &version::of_runtime(), rt::now())
    }

    /// Returns the worker with this relative number; there is only number 1.
    pub fn worker(&self, number: u32) -> Option<u32> {
        self.roster.borrow().serving().filter(|_| number == 1)
    }

    /// Whether there is a worker with this process id.
    pub fn knows(&self, pid: u32) -> bool {
        self.roster.borrow().entries().iter().any(|entry| entry.pid == pid)
    }

    /// Returns the start time of the worker with this process id.
    pub fn worker_started(&self, pid: u32) -> Option<Moment> {
        self.roster.borrow().entries().iter().find(|entry| entry.pid == pid).map(|entry| entry.started)
    }

    /// Opens a connection to the runtime API of a worker.
    ///
    /// # Errors
    /// The worker has ended, or its channel is busy.
    pub fn connect(&self, pid: u32) -> io::Result<OwnedFd> {
        let channel = self.channel(pid).ok_or(io::ErrorKind::NotFound)?;
        let channel = channel.try_borrow().map_err(|_| io::ErrorKind::WouldBlock)?;
        connection(&channel)
    }

    fn channel(&self, pid: u32) -> Option<SharedChannel> {
        self.channels.borrow().iter().find(|(of, _)| *of == pid).map(|(_, channel)| Rc::clone(channel))
    }

    /// Begins a reload, or schedules it after the current one.
    pub fn reload(self: &Rc<Self>, wish: ReloadKind) {
        if self.leaving.get().is_some() {
            return;
        }
        if self.is_loading() {
            self.next.set(Some(wish));
            return;
        }
        self.manager.tell(StateChange::Reloading(rt::now()));
        self.messages.borrow_mut().notice("Reloading Weir");
        self.logs.0.borrow_mut().clear();
        self.roster.borrow_mut().reloads += 1;
        match wish {
            ReloadKind::InPlace => self.renew(),
            ReloadKind::NewWorker(farewell) => self.replace(farewell),
        }
    }

    fn is_loading(&self) -> bool {
        self.renewing.get().is_some() || self.roster.borrow().is_loading()
    }

    /// Starts a worker that replaces the others.
    fn replace(self: &Rc<Self>, farewell: StopSignal) {
        self.farewell.set(farewell);
        self.roster.borrow_mut().retire();
        self.start_worker(true);
    }

    /// Reloads the worker in place, or starts a new one.
    fn renew(self: &Rc<Self>) {
        let renewers = self.renewers.borrow().clone();
        let serving = self.roster.borrow().serving();
        // Without `reload in-place` no reason is reported.
        let Some((pid, needs_reader)) = renewers.into_iter().find(|(pid, _)| Some(*pid) == serving) else {
            return self.replace(StopSignal::Soft);
        };
        if self.recipe.was_upgraded() {
            return self.replace_because("the program is another one");
        }
        let reader = match needs_reader.then(|| self.recipe.start_reader()).transpose() {
            Ok(reader) => reader,
            Err(error) => return self.replace_because(&format!("no process can read the files: {}", reason(&error))),
        };
        let descriptors: Vec<BorrowedFd<'_>> = reader.iter().map(AsFd::as_fd).collect();
        let channel = self.channel(pid);
        let sent = channel.and_then(|channel| channel.try_borrow().ok()?.send(RELOAD, &descriptors).ok());
        match sent {
            Some(()) => self.renewing.set(Some(pid)),
            None => self.replace_because("the worker does not answer"),
        }
    }

    fn replace_because(self: &Rc<Self>, why: &str) {
        self.messages.borrow_mut().notice(&format!("No reload in place: {why}. A new worker is started."));
        self.replace(StopSignal::Soft);
    }

    /// Handles the result of a worker's reload in place.
    fn renewed(self: &Rc<Self>, pid: u32, verdict: FromWorker) {
        if self.renewing.get() != Some(pid) {
            return;
        }
        self.renewing.set(None);
        match verdict {
            FromWorker::Classic(_) if self.leaving.get().is_some() => {}
            FromWorker::Classic(why) => self.replace_because(&why),
            FromWorker::Adopted(changes) => {
                let changes = if changes.is_empty() { "nothing has changed" } else { &changes };
                self.messages.borrow_mut().notice(&format!("Reloaded in place ({pid}): {changes}."));
                self.roster.borrow_mut().failed = 0;
                self.succeeded.set(true);
                self.manager.tell(StateChange::Ready);
                self.conclude();
            }
            _ => {
                let sentence = format!("Failed to reload in place ({pid}): the configuration before is kept.");
                self.messages.borrow_mut().warning(&sentence);
                self.roster.borrow_mut().failed += 1;
                self.not_loaded();
            }
        }
    }

    /// Reloads and waits for the result; true if it succeeded.
    pub async fn reloaded(self: &Rc<Self>, wish: ReloadKind) -> bool {
        let ahead = u64::from(self.is_loading());
        let mine = self.concluded.get() + ahead + 1;
        self.reload(wish);
        std::future::poll_fn(|context: &mut Context<'_>| {
            if self.concluded.get() >= mine || self.leaving.get().is_some() {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
        self.succeeded.get()
    }

    fn start_worker(self: &Rc<Self>, again: bool) {
        let former = self.roster.borrow().newest().and_then(|pid| self.channel(pid));
        let former = former.as_ref().and_then(|channel| channel.try_borrow().ok());
        let started = self.recipe.start(former.as_deref(), again);
        drop(former);
        match started {
            Ok((pid, channel)) => {
                self.messages.borrow_mut().notice(&format!("Initializing new worker ({pid})"));
                self.roster.borrow_mut().add(pid, rt::now(), version::of_runtime());
                let channel = Rc::new(RefCell::new(channel));
                self.channels.borrow_mut().push((pid, Rc::clone(&channel)));
                rt::spawn(Class::Normal, NO_TAG, listen(Rc::clone(self), pid, channel));
            }
            Err(error) => {
                self.messages.borrow_mut().alert(&format!("Cannot start a worker : {}", reason(&error)));
                self.not_loaded();
            }
        }
    }

    fn heard(self: &Rc<Self>, pid: u32, message: FromWorker) {
        match message {
            FromWorker::Said(text) => {
                if self.is_loading() {
                    self.logs.add(&text);
                }
            }
            FromWorker::Reloads { needs_reader } => self.renewers.borrow_mut().push((pid, needs_reader)),
            FromWorker::Adopted(_) | FromWorker::Classic(_) | FromWorker::Refused => self.renewed(pid, message),
            FromWorker::Serves(version) => {
                let told = self.roster.borrow_mut().loaded(pid, &version, self.max_reloads);
                let Some((leaving, overdue)) = told else { return };
                self.messages.borrow_mut().notice("Loading success.");
                let signal = match self.farewell.get() {
                    StopSignal::Soft => Signal::User1,
                    StopSignal::Hard => Signal::Terminate,
                };
                leaving.into_iter().for_each(|pid| send(pid, signal));
                overdue.into_iter().for_each(|pid| send(pid, Signal::Terminate));
                self.manager.tell(StateChange::Ready);
                if let Some(starter) = self.starter.take() {
                    let _ = starter.detach_standard_streams();
                    starter.leave(0);
                }
                self.succeeded.set(true);
                self.conclude();
            }
        }
    }

    /// Completes a reload: wakes waiting tasks, and begins the next one if requested.
    fn conclude(self: &Rc<Self>) {
        self.concluded.set(self.concluded.get() + 1);
        self.waiting.take().into_iter().for_each(Waker::wake);
        if let Some(wish) = self.next.take() {
            self.reload(wish);
        }
    }

    /// Handles a worker that failed to start: the previous workers continue, if there are any.
    fn not_loaded(self: &Rc<Self>) {
        self.succeeded.set(false);
        if self.roster.borrow().entries().is_empty() {
            self.end(self.leaving.get().unwrap_or(1));
        } else {
            self.manager.tell(StateChange::ReloadFailed);
        }
        self.conclude();
    }

    /// Begins to stop: forwards the signal to the workers, and waits for them.
    fn leave(self: &Rc<Self>, signal: Signal, status: u8) {
        if self.leaving.get().is_none() {
            self.leaving.set(Some(status));
            self.manager.tell(StateChange::Stopping);
            self.messages.borrow_mut().warning("Exiting Master process...");
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
        self.pass_on(signal);
        self.end_with_the_last();
    }

    /// Forwards a signal to every worker. Pause signals skip a worker that does not handle them yet: their default
    /// action would stop it.
    fn pass_on(&self, signal: Signal) {
        let is_pause = matches!(signal, Signal::TerminalOutput | Signal::TerminalInput);
        let roster = self.roster.borrow();
        let meant = roster.entries().iter().filter(|entry| !is_pause || entry.standing != WorkerState::Loading);
        meant.for_each(|entry| send(entry.pid, signal));
    }

    /// Reaps exited workers.
    fn reap(self: &Rc<Self>) {
        // Also reaps child processes that are not workers.
        while let Ok(Some((pid, status))) = rt::process::reap(None) {
            self.hear_last_words(pid);
            self.ended(pid, status);
        }
    }

    fn ended(self: &Rc<Self>, pid: u32, status: ExitStatus) {
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(255);
        let code = u8::try_from(code).unwrap_or(255);
        let how = format!("({pid}) exited with code {code} ({})", manner(status));
        let kind = self.roster.borrow_mut().end(pid);
        self.channels.borrow_mut().retain(|(of, _)| *of != pid);
        self.renewers.borrow_mut().retain(|(of, _)| *of != pid);
        let was_renewing = self.renewing.get() == Some(pid);
        if was_renewing {
            self.renewing.set(None);
        }
        match kind {
            EndedState::Stranger => {}
            // Without a successor it was the current worker.
            EndedState::Former if self.roster.borrow().entries().is_empty() => self.lost(&how, code),
            EndedState::Former => {
                self.messages.borrow_mut().warning(&format!("Former worker {how}"));
            }
            EndedState::NotLoaded => {
                self.messages.borrow_mut().warning(&format!("Failed to load worker {how}"));
                if self.leaving.get().is_none() {
                    self.not_loaded();
                }
            }
            EndedState::Serving => self.lost(&how, code),
        }
        if was_renewing && self.leaving.get().is_none() {
            self.succeeded.set(false);
            self.conclude();
        }
        self.end_with_the_last();
    }

    /// Handles the exit of the current worker.
    fn lost(self: &Rc<Self>, how: &str, code: u8) {
        let sentence = format!("Current worker {how}");
        match code {
            0 => self.messages.borrow_mut().warning(&sentence),
            _ => self.messages.borrow_mut().alert(&sentence),
        }
        if self.leaving.get().is_some() {
            return;
        }
        // Exits that are not failures, such as by SIGINT or SIGTERM.
        let gentle = matches!(code, 0 | 130 | 143);
        if !gentle && self.ends_on_failure {
            self.messages.borrow_mut().alert("exit-on-failure: killing every processes with SIGTERM");
        }
        if gentle || self.ends_on_failure || self.roster.borrow().entries().is_empty() {
            self.leaving.set(Some(if code == 143 { 0 } else { code }));
            self.manager.tell(StateChange::Stopping);
            self.pass_on(Signal::Terminate);
        }
    }

    fn end_with_the_last(self: &Rc<Self>) {
        if let Some(status) = self.leaving.get()
            && self.roster.borrow().entries().is_empty()
            && self.ended.get().is_none()
        {
            self.messages.borrow_mut().warning(&format!("All workers exited. Exiting... ({status})"));
            self.end(status);
        }
    }

    fn end(&self, status: u8) {
        self.ended.set(Some(status));
    }

    /// Reads the last messages of a worker that has ended.
    fn hear_last_words(self: &Rc<Self>, pid: u32) {
        let Some(channel) = self.channel(pid) else { return };
        let mut context = Context::from_waker(Waker::noop());
        let (mut place, mut descriptors) = (vec![0; LONGEST], Vec::new());
        // Bounded by the capacity of a socket's buffer.
        for _ in 0..1024 {
            let received = match channel.try_borrow_mut() {
                Ok(mut channel) => channel.poll_receive(&mut context, &mut place, &mut descriptors),
                Err(_) => return,
            };
            match received {
                Poll::Ready(Ok(count)) if count > 0 => {
                    if let Some(message) = FromWorker::decode(&place[..count]) {
                        self.heard(pid, message);
                    }
                }
                _ => return,
            }
        }
    }
}

/// Receives messages of a worker until it ends.
async fn listen(office: Rc<Master>, pid: u32, channel: SharedChannel) {
    let (mut place, mut descriptors) = (vec![0; LONGEST], Vec::new());
    loop {
        let received = std::future::poll_fn(|context| match channel.try_borrow_mut() {
            Ok(mut channel) => channel.poll_receive(context, &mut place, &mut descriptors),
            Err(_) => Poll::Ready(Ok(0)),
        });
        match received.await {
            Ok(count) if count > 0 => {
                descriptors.clear();
                if let Some(message) = FromWorker::decode(&place[..count]) {
                    office.heard(pid, message);
                }
            }
            _ => return,
        }
    }
}

/// Signals a child. The process id of an exited child is not reused until it is reaped.
fn send(pid: u32, signal: Signal) {
    let _ = rt::process::kill(pid, signal);
}

/// Describes how a process ended, in the terms of the C library.
fn manner(status: ExitStatus) -> &'static str {
    match status.signal() {
        None => "Exit",
        Some(1) => "Hangup",
        Some(2) => "Interrupt",
        Some(3) => "Quit",
        Some(4) => "Illegal instruction",
        Some(6) => "Aborted",
        Some(7) => "Bus error",
        Some(8) => "Floating point exception",
        Some(9) => "Killed",
        Some(10) => "User defined signal 1",
        Some(11) => "Segmentation fault",
        Some(12) => "User defined signal 2",
        Some(13) => "Broken pipe",
        Some(15) => "Terminated",
        Some(31) => "Bad system call",
        Some(_) => "Signal",
    }
}
