//! What a program has of TLS beside its lines: lists of certificates, keys of tickets, sessions that are remembered, and
//! which address uses what. Must never shake hands.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::span::Span;
use config::spec::BindTlsSpec;
use tls::certificate::Certificate;
use tls::resumption::SessionStore;
use tls::server::ListLine;
use tls::ticket_keys::TicketKeys;

/// TLS of a whole program.
#[derive(Debug, Clone, Default)]
pub struct TlsParts {
    /// `crt-list` files, and folders of `crt`, by name.
    pub lists: Vec<Arc<CrtList>>,
    /// Files of `tls-ticket-keys`; a key's number is its place.
    pub ticket_keys: Vec<Arc<TicketKeys>>,
    /// Sessions of clients without tickets, of all addresses; `None`: no address speaks TLS.
    pub sessions: Option<Arc<SessionStore>>,
    /// Addresses that speak TLS, in the order of their lines.
    pub listeners: Vec<TlsListener>,
    /// Certificates of `crt-store` sections, whether or not an address shows them.
    pub stored: Vec<Arc<Certificate>>,
}

/// Parts are the same that mean the same: what addresses offer is theirs.
impl PartialEq for TlsParts {
    fn eq(&self, other: &Self) -> bool {
        let names = |parts: &Self| parts.lists.iter().map(|list| Arc::clone(&list.name)).collect::<Vec<_>>();
        names(self) == names(other)
            && self.ticket_keys == other.ticket_keys
            && self.sessions == other.sessions
            && self.stored == other.stored
    }
}

/// An address that speaks TLS.
#[derive(Debug, Clone)]
pub struct TlsListener {
    /// The kind of section and its name.
    pub owner: (Box<str>, Box<str>),
    /// File and line.
    pub place: Box<str>,
    /// The address as written.
    pub text: Box<str>,
    /// What its line says.
    pub written: BindTlsSpec,
    /// Where that stands.
    pub span: Span,
    /// Whether it serves HTTP.
    pub is_http: bool,
    /// What it offers.
    pub server: Arc<tls::Server>,
    /// Names of the lists among that.
    pub lists: Vec<Arc<str>>,
}

/// A `crt-list`, with the lines that it has now.
#[derive(Debug)]
pub struct CrtList {
    /// Its file or folder; `@<frontend>`: the lines `ssl-f-use` of that.
    pub name: Arc<str>,
    lines: Mutex<CrtLines>,
}

/// The lines of a [`CrtList`].
#[derive(Debug, Default)]
pub struct CrtLines {
    /// In their order.
    pub lines: Vec<CrtLine>,
    /// The number of the last line that was read.
    pub last_number: usize,
    /// The serial of the next line.
    pub next_serial: usize,
}

/// A line, for one certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrtLine {
    /// What tells it from the others.
    pub serial: usize,
    /// Its number in the file; 0 in a folder.
    pub number: usize,
    /// The certificate's name.
    pub certificate: Box<str>,
    /// Its options.
    pub options: Box<str>,
    /// Its names and those that it is not for.
    pub names: Box<str>,
}

impl CrtLines {
    /// A line comes at the end; its serial is the next one.
    pub fn push(&mut self, (number, certificate): (usize, &str), options: &str, names: &str) -> usize {
        let serial = self.next_serial;
        self.next_serial += 1;
        let (certificate, options, names) = (certificate.into(), options.into(), names.into());
        self.lines.push(CrtLine { serial, number, certificate, options, names });
        serial
    }
}

impl CrtList {
    /// One with these lines.
    pub fn new(name: Arc<str>, lines: CrtLines) -> Self {
        Self { name, lines: Mutex::new(lines) }
    }

    /// For one look or one step.
    pub fn lock(&self) -> MutexGuard<'_, CrtLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What entries of that line have.
    pub fn line(&self, serial: usize) -> ListLine {
        ListLine { list: Arc::clone(&self.name), serial }
    }
}
