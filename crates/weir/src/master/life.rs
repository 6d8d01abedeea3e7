//! The life of a master: signals, reloads, the ends of workers. Must never speak with a client.

use super::MAX_RELOADS;
use super::link::{FromWorker, LONGEST, RELOAD};
use super::notify::{Manager, News};
use super::roster::{Ended, Roster, Standing};
use super::start::{Recipe, connection};
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

/// What the master listens to.
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

/// Bytes of the messages of a start that are kept.
const MOST_LOGS: usize = 64 * 1024;

/// What becomes of the workers that a new one follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Farewell {
    /// They finish what is open.
    Soft,
    /// They end at once.
    Hard,
}

/// What a reload is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// The worker goes over to the new configuration where it is told to by `reload in-place` and can; else as `NewWorker`.
    InPlace,
    /// A new worker.
    NewWorker(Farewell),
}

/// The messages of the last start, shared by all who write them.
#[derive(Clone, Default)]
pub struct Logs(Rc<RefCell<String>>);

impl Logs {
    fn add(&self, text: &str) {
        let mut logs = self.0.borrow_mut();
        if logs.len() + text.len() <= MOST_LOGS {
            logs.push_str(text);
        }
    }

    /// What has been said.
    pub fn text(&self) -> String {
        self.0.borrow().clone()
    }
}

/// Standard error and the messages of the start.
struct Voice(Logs);

impl Write for Voice {
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

/// A master at work.
pub struct Office {
    recipe: Recipe,
    manager: Manager,
    max_reloads: u32,
    ends_on_failure: bool,
    roster: RefCell<Roster>,
    channels: RefCell<Vec<(u32, SharedChannel)>>,
    messages: RefCell<Messages>,
    logs: Logs,
    starter: RefCell<Option<StarterWaits>>,
    /// How the workers before the one that is being loaded are to leave.
    farewell: Cell<Farewell>,
    /// A reload that was asked for while another one ran.
    next: Cell<Option<Wish>>,
    /// Workers that go over to another configuration when they are told to.
    /// Whether each needs a process that reads files for it.
    renewers: RefCell<Vec<(u32, bool)>>,
    /// The worker that is told to now.
    renewing: Cell<Option<u32>>,
    /// Whether the last load succeeded.
    succeeded: Cell<bool>,
    /// Loads that have been concluded, well or not.
    concluded: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
    /// The exit status, once the end has begun.
    leaving: Cell<Option<u8>>,
    ended: Cell<Option<u8>>,
    started: Moment,
}

impl Office {
    /// A master that has no worker yet.
    pub fn new(
        recipe: Recipe,
        manager: Manager,
        lifetime: &LifetimeSpec,
        starter: Option<StarterWaits>,
        quiet: bool,
    ) -> Self {
        let logs = Logs::default();
        let mut messages = Messages::new(quiet, false);
        messages.speak_through(Box::new(Voice(logs.clone())));
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
            farewell: Cell::new(Farewell::Soft),
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

    /// Lives until the last worker has ended; returns the exit status.
    pub async fn live(self: &Rc<Self>) -> u8 {
        let Ok(mut signals) = rt::signals(SIGNALS) else { return 1 };
        self.start_worker(false);
        loop {
            if let Some(status) = self.ended.get() {
                return status;
            }
            match Signal::from_number(signals.next().await) {
                Some(Signal::Child) => self.reap(),
                Some(Signal::User2) => self.reload(Wish::InPlace),
                Some(Signal::Hangup) => self.reload(Wish::NewWorker(Farewell::Soft)),
                Some(Signal::User1) => self.leave(Signal::User1, 0),
                Some(Signal::Terminate) => self.leave(Signal::Terminate, 0),
                Some(Signal::Interrupt) => self.leave(Signal::Interrupt, 130),
                Some(signal @ (Signal::TerminalOutput | Signal::TerminalInput)) => self.pass_on(signal),
                _ => {}
            }
        }
    }

    /// The messages of the last start.
    pub fn logs(&self) -> String {
        self.logs.text()
    }

    /// Whether the last reload failed.
    pub fn has_failed(&self) -> bool {
        self.roster.borrow().failed > 0
    }

    /// When the master was started.
    pub fn started(&self) -> Moment {
        self.started
    }

    /// The answer to `show proc`.
    pub fn show(&self) -> String {
        let master = (std::process::id(), self.started, &*version::of_runtime());
        self.roster.borrow().show(master, rt::now())
    }

    /// The worker with this relative number, from 1; there is one.
    pub fn worker(&self, number: u32) -> Option<u32> {
        self.roster.borrow().serving().filter(|_| number == 1)
    }

    /// Whether there is a worker with this process number.
    pub fn knows(&self, pid: u32) -> bool {
        self.roster.borrow().entries().iter().any(|entry| entry.pid == pid)
    }

    /// When the worker with this process number was started.
    pub fn worker_started(&self, pid: u32) -> Option<Moment> {
        self.roster.borrow().entries().iter().find(|entry| entry.pid == pid).map(|entry| entry.started)
    }

    /// A connection to the runtime API of a worker.
    ///
    /// # Errors
    /// When it has gone.
    pub fn connect(&self, pid: u32) -> io::Result<OwnedFd> {
        let channel = self.channel(pid).ok_or(io::ErrorKind::NotFound)?;
        let channel = channel.try_borrow().map_err(|_| io::ErrorKind::WouldBlock)?;
        connection(&channel)
    }

    fn channel(&self, pid: u32) -> Option<SharedChannel> {
        self.channels.borrow().iter().find(|(of, _)| *of == pid).map(|(_, channel)| Rc::clone(channel))
    }

    /// Begins a reload, or has it follow the one that runs.
    pub fn reload(self: &Rc<Self>, wish: Wish) {
        if self.leaving.get().is_some() {
            return;
        }
        if self.is_loading() {
            self.next.set(Some(wish));
            return;
        }
        self.manager.tell(News::Reloading(rt::now()));
        self.messages.borrow_mut().notice("Reloading Weir");
        self.logs.0.borrow_mut().clear();
        self.roster.borrow_mut().reloads += 1;
        match wish {
            Wish::InPlace => self.renew(),
            Wish::NewWorker(farewell) => self.replace(farewell),
        }
    }

    fn is_loading(&self) -> bool {
        self.renewing.get().is_some() || self.roster.borrow().is_loading()
    }

    /// Starts a worker that the others are followed by.
    fn replace(self: &Rc<Self>, farewell: Farewell) {
        self.farewell.set(farewell);
        self.roster.borrow_mut().retire();
        self.start_worker(true);
    }

    /// Has the worker go over to the new configuration, or starts a new one.
    fn renew(self: &Rc<Self>) {
        let renewers = self.renewers.borrow().clone();
        let serving = self.roster.borrow().serving();
        // Without `reload in-place` there is nothing to say about it.
        let Some((pid, needs_reader)) = renewers.into_iter().find(|(pid, _)| Some(*pid) == serving) else {
            return self.replace(Farewell::Soft);
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
        self.replace(Farewell::Soft);
    }

    /// The worker has said how its reload went.
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
                self.manager.tell(News::Ready);
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

    /// The same for one who wants to know how it went: waits for it; true if a new worker serves.
    pub async fn reloaded(self: &Rc<Self>, wish: Wish) -> bool {
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
                    Farewell::Soft => Signal::User1,
                    Farewell::Hard => Signal::Terminate,
                };
                leaving.into_iter().for_each(|pid| send(pid, signal));
                overdue.into_iter().for_each(|pid| send(pid, Signal::Terminate));
                self.manager.tell(News::Ready);
                if let Some(starter) = self.starter.take() {
                    let _ = starter.detach_standard_streams();
                    starter.leave(0);
                }
                self.succeeded.set(true);
                self.conclude();
            }
        }
    }

    /// A load has been concluded: tells who waits for it, and begins the next if it was asked for.
    fn conclude(self: &Rc<Self>) {
        self.concluded.set(self.concluded.get() + 1);
        self.waiting.take().into_iter().for_each(Waker::wake);
        if let Some(wish) = self.next.take() {
            self.reload(wish);
        }
    }

    /// A worker could not be loaded: those before it serve on, if there are any.
    fn not_loaded(self: &Rc<Self>) {
        self.succeeded.set(false);
        if self.roster.borrow().entries().is_empty() {
            self.end(self.leaving.get().unwrap_or(1));
        } else {
            self.manager.tell(News::ReloadFailed);
        }
        self.conclude();
    }

    /// Begins the end: workers get the signal, and the master waits for them.
    fn leave(self: &Rc<Self>, signal: Signal, status: u8) {
        if self.leaving.get().is_none() {
            self.leaving.set(Some(status));
            self.manager.tell(News::Stopping);
            self.messages.borrow_mut().warning("Exiting Master process...");
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
        self.pass_on(signal);
        self.end_with_the_last();
    }

    /// Sends a signal to every worker. A pause would stop a worker for good that does not handle it yet.
    fn pass_on(&self, signal: Signal) {
        let is_pause = matches!(signal, Signal::TerminalOutput | Signal::TerminalInput);
        let roster = self.roster.borrow();
        let meant = roster.entries().iter().filter(|entry| !is_pause || entry.standing != Standing::Loading);
        meant.for_each(|entry| send(entry.pid, signal));
    }

    /// Looks which workers have ended.
    fn reap(self: &Rc<Self>) {
        // Every worker, and one more for each that the master does not know.
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
            Ended::Stranger => {}
            // Without a successor it was the one that served.
            Ended::Former if self.roster.borrow().entries().is_empty() => self.lost(&how, code),
            Ended::Former => {
                self.messages.borrow_mut().warning(&format!("Former worker {how}"));
            }
            Ended::NotLoaded => {
                self.messages.borrow_mut().warning(&format!("Failed to load worker {how}"));
                if self.leaving.get().is_none() {
                    self.not_loaded();
                }
            }
            Ended::Serving => self.lost(&how, code),
        }
        if was_renewing && self.leaving.get().is_none() {
            self.succeeded.set(false);
            self.conclude();
        }
        self.end_with_the_last();
    }

    /// The worker that served has ended.
    fn lost(self: &Rc<Self>, how: &str, code: u8) {
        let sentence = format!("Current worker {how}");
        match code {
            0 => self.messages.borrow_mut().warning(&sentence),
            _ => self.messages.borrow_mut().alert(&sentence),
        }
        if self.leaving.get().is_some() {
            return;
        }
        // It was ended from outside in a way that is no failure.
        let gentle = matches!(code, 0 | 130 | 143);
        if !gentle && self.ends_on_failure {
            self.messages.borrow_mut().alert("exit-on-failure: killing every processes with SIGTERM");
        }
        if gentle || self.ends_on_failure || self.roster.borrow().entries().is_empty() {
            self.leaving.set(Some(if code == 143 { 0 } else { code }));
            self.manager.tell(News::Stopping);
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

    /// What a worker has said before it ended.
    fn hear_last_words(self: &Rc<Self>, pid: u32) {
        let Some(channel) = self.channel(pid) else { return };
        let mut context = Context::from_waker(Waker::noop());
        let (mut place, mut descriptors) = (vec![0; LONGEST], Vec::new());
        // As many as a socket's buffer holds.
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

/// Listens to a worker until it ends.
async fn listen(office: Rc<Office>, pid: u32, channel: SharedChannel) {
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

/// Signals one of our children. One that has ended stays ours until it is reaped, so the number is not reused.
fn send(pid: u32, signal: Signal) {
    let _ = rt::process::kill(pid, signal);
}

/// How a process ended, in the words of the C library.
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
