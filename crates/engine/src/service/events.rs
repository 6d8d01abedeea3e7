//! Events of servers and certificates, for subscribed scripts (`core.event_sub` of HAProxy's Lua manual). Without subscribers an
//! event costs a check of a flag. Must never wait for a subscriber.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use live::health::Report;
use live::{Checker, ServerPlace, Transition};
use policy::program::{Proxy, Server};

use crate::worker::{Process, Worker};

/// An event.
#[derive(Debug, Clone)]
pub enum Event {
    /// An event of a server.
    Server(Box<ServerEvent>),
    /// An event of an ACME certificate.
    Certificate(Box<CertificateEvent>),
}

/// A server event, with the server's names at that time.
#[derive(Debug, Clone)]
pub struct ServerEvent {
    /// Indices of proxy and server.
    pub place: ServerPlace,
    /// Name of the server.
    pub name: Box<str>,
    /// `id` of the server.
    pub id: u32,
    /// Number that distinguishes servers that had the same name.
    pub revision: u32,
    /// Name of its proxy.
    pub proxy: Box<str>,
    /// `id` of its proxy.
    pub proxy_id: u32,
    /// Kind of the event.
    pub what: What,
}

/// Kinds of server events.
#[derive(Debug, Clone)]
pub enum What {
    /// It was added at run time.
    Added,
    /// It was removed.
    Removed,
    /// Its address or port changed, or its address was removed.
    Moved,
    /// A check produced a result that is reported.
    Checked(Checked),
    /// Its state changed, by a check or for a textual reason; the reason is empty if there is none.
    Changed(Transition, Option<Checked>, &'static str),
}

/// Result of a check, and its effect on the server's health.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Whether it was an agent check.
    pub agent: bool,
    /// Result of the check.
    pub report: Report,
    /// Health counter from 0 to `rise + fall - 1`; the server is up from `rise` on.
    pub level: u32,
    pub rise: u32,
    pub fall: u32,
}

/// Event of a certificate.
#[derive(Debug, Clone, Default)]
pub struct CertificateEvent {
    /// Name of the certificate.
    pub name: Box<str>,
    /// A DNS record that has to be set; `None`: a new certificate was installed.
    pub record: Option<WantedRecord>,
}

/// DNS record for a `dns-01` challenge.
#[derive(Debug, Clone, Default)]
pub struct WantedRecord {
    /// Domain to validate.
    pub domain: Box<str>,
    /// Thumbprint of the account key.
    pub thumbprint: Box<str>,
    /// Value of the TXT record.
    pub value: Box<str>,
    pub provider: Option<Box<str>>,
    pub variables: Option<Box<str>>,
}

/// Event callback. Called on the worker on which the event occurs; must return at once.
pub type Listener = Box<dyn Fn(&Event) + Send + Sync>;

/// Event callback of a process, and the revision numbers of servers.
#[derive(Default)]
pub struct Events {
    listener: OnceLock<Listener>,
    revisions: Mutex<Revisions>,
}

#[derive(Default)]
struct Revisions {
    /// Revision of the next added server.
    next: u32,
    /// A server was removed since the last one was added.
    removed: bool,
    /// Revisions by serial number of the server; servers not listed have revision 0.
    known: HashMap<usize, u32>,
}

impl Events {
    /// Sets the callback for all events. Only the first call has an effect.
    pub fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// Whether there is a callback.
    #[inline]
    pub fn are_heard(&self) -> bool {
        self.listener.get().is_some()
    }

    /// Whether a server was added at run time.
    pub fn is_added(&self, server: &Server) -> bool {
        self.revisions().known.contains_key(&server.serial)
    }

    /// Removes the revision of a removed server, whose serial number can be reused.
    pub(crate) fn forget(&self, serial: usize) {
        self.revisions().known.remove(&serial);
    }

    fn revisions(&self) -> MutexGuard<'_, Revisions> {
        self.revisions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an event to the callback.
    pub fn tell(&self, event: &Event) {
        if let Some(listener) = self.listener.get() {
            listener(event);
        }
    }

    /// Returns the number that distinguishes a server from others that had its name.
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

/// Reports a server that was added at run time.
pub fn added(process: &Process, proxy: &Proxy, server: &Server) {
    {
        let revisions = &mut *process.events.revisions();
        revisions.next += u32::from(std::mem::take(&mut revisions.removed));
        revisions.known.insert(server.serial, revisions.next);
    }
    tell_of(process, (proxy, server), What::Added);
}

/// Reports a server that is about to be removed.
pub fn removed(process: &Process, proxy: &Proxy, server: &Server) {
    process.events.revisions().removed = true;
    tell_of(process, (proxy, server), What::Removed);
}

/// Reports a server whose address or port changed, or that no longer has an address.
pub fn moved(process: &Process, proxy: &Proxy, server: &Server) {
    if process.events.are_heard() {
        tell_of(process, (proxy, server), What::Moved);
    }
}

/// Reports the result of a check.
pub(crate) fn checked(worker: &Worker, proxy: &Proxy, server: &Server, checker: Checker) {
    if worker.process.events.are_heard()
        && let Some(checked) = last_check(worker, proxy, server, checker)
    {
        tell_of(&worker.process, (proxy, server), What::Checked(checked));
    }
}

/// Reports a state change of a server; `why`: `None` if a check caused it.
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

/// Reports a DNS record that a certificate needs, or that the certificate was installed.
pub(crate) fn certificate(process: &Process, name: &str, record: impl FnOnce() -> Option<WantedRecord>) {
    if process.events.are_heard() {
        process.events.tell(&Event::Certificate(Box::new(CertificateEvent { name: name.into(), record: record() })));
    }
}
