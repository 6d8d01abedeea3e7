//! What happens to servers and certificates, for scripts that have asked to be told (`core.event_sub` of HAProxy's Lua
//! manual). Costs a look at a flag where none has. Must never wait for who is told.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use live::health::Report;
use live::{Checker, ServerPlace, Transition};
use policy::program::{Proxy, Server};

use crate::worker::{Process, Worker};

/// What happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// To a server.
    Server(Box<ServerEvent>),
    /// To a certificate that is obtained by ACME.
    Certificate(Box<CertificateEvent>),
}

/// What happened to a server, and what it was called then.
#[derive(Debug, Clone)]
pub struct ServerEvent {
    /// Its place.
    pub place: ServerPlace,
    /// Its name.
    pub name: Box<str>,
    /// Its `id`.
    pub id: u32,
    /// The number that tells servers of one name apart.
    pub revision: u32,
    /// The name of its proxy.
    pub proxy: Box<str>,
    /// The `id` of its proxy.
    pub proxy_id: u32,
    /// What.
    pub what: What,
}

/// What happened to a server.
#[derive(Debug, Clone)]
pub enum What {
    /// It came by an order.
    Added,
    /// It was removed.
    Removed,
    /// It got another address or port, or lost its address.
    Moved,
    /// A check found something that is worth a report.
    Checked(Checked),
    /// It stands in another way: because of what a check found, or for a reason in words; empty where none is told.
    Changed(Transition, Option<Checked>, &'static str),
}

/// What a check found, and what that means for a server.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The check asked its agent.
    pub agent: bool,
    /// What it found.
    pub report: Report,
    /// From 0 to `rise + fall - 1`; up from `rise` on.
    pub level: u32,
    /// `rise`.
    pub rise: u32,
    /// `fall`.
    pub fall: u32,
}

/// What happened to a certificate.
#[derive(Debug, Clone, Default)]
pub struct CertificateEvent {
    /// Its name.
    pub name: Box<str>,
    /// A record of the DNS has to be set; `None`: a new certificate is in its place.
    pub record: Option<WantedRecord>,
}

/// A record of the DNS that proves a domain's possession.
#[derive(Debug, Clone, Default)]
pub struct WantedRecord {
    /// The domain.
    pub domain: Box<str>,
    /// The thumbprint of the account's key.
    pub thumbprint: Box<str>,
    /// The value of the record.
    pub value: Box<str>,
    /// `provider-name`.
    pub provider: Option<Box<str>>,
    /// `acme-vars`.
    pub variables: Option<Box<str>>,
}

/// Who is told. Called on the worker where it happens; returns at once.
pub type Listener = Box<dyn Fn(&Event) + Send + Sync>;

/// The listener of a process, and the numbers that tell servers of one name apart.
#[derive(Default)]
pub struct Events {
    listener: OnceLock<Listener>,
    revisions: Mutex<Revisions>,
}

#[derive(Default)]
struct Revisions {
    /// That of servers that come now.
    next: u32,
    /// A server was removed since one came.
    removed: bool,
    /// By the serials of servers; 0 for others.
    known: HashMap<usize, u32>,
}

impl Events {
    /// Has this be told of all that happens. Only the first call has an effect.
    pub fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// Whether anything is to be told.
    #[inline]
    pub fn are_heard(&self) -> bool {
        self.listener.get().is_some()
    }

    /// Whether a server came by an order.
    pub fn is_added(&self, server: &Server) -> bool {
        self.revisions().known.contains_key(&server.serial)
    }

    /// A server was removed, and another one may get its serial number.
    pub(crate) fn forget(&self, serial: usize) {
        self.revisions().known.remove(&serial);
    }

    fn revisions(&self) -> MutexGuard<'_, Revisions> {
        self.revisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the listener.
    pub fn tell(&self, event: &Event) {
        if let Some(listener) = self.listener.get() {
            listener(event);
        }
    }

    /// The number of a server that tells it apart from others of its name.
    pub fn revision(&self, server: &Server) -> u32 {
        self.revisions().known.get(&server.serial).copied().unwrap_or(0)
    }
}

fn tell_of(process: &Process, (proxy, server): (&Proxy, &Server), what: What) {
    process.events.tell(&Event::Server(Box::new(ServerEvent {
        place: (proxy.index, server.index),
        name: (&*server.name).into(),
        id: server.id,
        revision: process.events.revision(server),
        proxy: (*proxy.name).into(),
        proxy_id: proxy.id,
        what,
    })));
}

/// A server came by an order.
pub fn added(process: &Process, proxy: &Proxy, server: &Server) {
    {
        let revisions = &mut *process.events.revisions();
        revisions.next += u32::from(std::mem::take(&mut revisions.removed));
        revisions.known.insert(server.serial, revisions.next);
    }
    tell_of(process, (proxy, server), What::Added);
}

/// A server is about to be removed.
pub fn removed(process: &Process, proxy: &Proxy, server: &Server) {
    process.events.revisions().removed = true;
    tell_of(process, (proxy, server), What::Removed);
}

/// A server has another address or port, or none any more.
pub fn moved(process: &Process, proxy: &Proxy, server: &Server) {
    if process.events.are_heard() {
        tell_of(process, (proxy, server), What::Moved);
    }
}

/// A check found something.
pub(crate) fn checked(worker: &Worker, proxy: &Proxy, server: &Server, checker: Checker) {
    if worker.process.events.are_heard()
        && let Some(checked) = last_check(worker, proxy, server, checker)
    {
        tell_of(&worker.process, (proxy, server), What::Checked(checked));
    }
}

/// A server stands in another way; `why`: `None`, because of what a check found.
pub(crate) fn changed(
    worker: &Worker,
    (proxy, server): (&Proxy, &Server),
    transition: Transition,
    why: Option<&'static str>,
) {
    if !worker.process.events.are_heard() {
        return;
    }
    let checkers = [Checker::Health, Checker::Agent];
    let check = checkers.into_iter().filter(|_| why.is_none()).find_map(|own| last_check(worker, proxy, server, own));
    tell_of(&worker.process, (proxy, server), What::Changed(transition, check, why.unwrap_or_default()));
}

fn last_check(worker: &Worker, proxy: &Proxy, server: &Server, checker: Checker) -> Option<Checked> {
    let health = worker.process.live.proxies[proxy.index].health(server.index, checker)?;
    let (rise, fall) = health.thresholds();
    let report = health.last().clone();
    Some(Checked { agent: checker == Checker::Agent, report, level: health.level(), rise, fall })
}

/// A certificate that is obtained needs a record, or has come.
pub(crate) fn certificate(process: &Process, name: &str, record: impl FnOnce() -> Option<WantedRecord>) {
    if process.events.are_heard() {
        process.events.tell(&Event::Certificate(Box::new(CertificateEvent { name: name.into(), record: record() })));
    }
}
