//! Events of servers and certificates as their listener gets them. Must never wait for the listener.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use live::health::Report;
use live::{ServerPlace, Transition};
use policy::program::Server;

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
    pub what: ServerEventKind,
}

/// Kinds of server events.
#[derive(Debug, Clone)]
pub enum ServerEventKind {
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
pub(super) struct Revisions {
    /// Revision of the next added server.
    pub(super) next: u32,
    /// A server was removed since the last one was added.
    pub(super) removed: bool,
    /// Revisions by serial number of the server; servers not listed have revision 0.
    pub(super) known: HashMap<usize, u32>,
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

    pub(super) fn revisions(&self) -> MutexGuard<'_, Revisions> {
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
