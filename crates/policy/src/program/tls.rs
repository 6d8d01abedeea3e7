//! TLS objects of a program that belong to no single line: certificate lists, ticket keys, the session cache, and the
//! listeners. Must never perform a handshake.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::span::Span;
use config::spec::BindTlsSpec;
use tls::Client;
use tls::certificate::Certificate;
use tls::resumption::SessionStore;
use tls::server::ListLine;
use tls::ticket_keys::TicketKeys;

/// TLS objects of a program.
#[derive(Debug, Clone, Default)]
pub struct TlsParts {
    /// `crt-list` files and directories of `crt`, by name.
    pub lists: Vec<Arc<CrtList>>,
    /// Files of `tls-ticket-keys`; the ID of a file is its index.
    pub ticket_keys: Vec<Arc<TicketKeys>>,
    /// Session cache for clients without tickets, of all addresses; `None` if no address uses TLS.
    pub sessions: Option<Arc<SessionStore>>,
    /// TLS addresses, in the order of their lines.
    pub listeners: Vec<TlsListener>,
    /// Certificates of `crt-store` sections, whether an address uses them or not.
    pub stored: Vec<Arc<Certificate>>,
    /// TLS of `default-server for-added`, for which added servers find the files.
    pub defaults: Vec<Arc<Client>>,
}

/// Compares the objects by name or content; the certificates of addresses are compared with the addresses.
impl PartialEq for TlsParts {
    fn eq(&self, other: &Self) -> bool {
        let names = |parts: &Self| parts.lists.iter().map(|list| Arc::clone(&list.name)).collect::<Vec<_>>();
        names(self) == names(other)
            && self.ticket_keys == other.ticket_keys
            && self.sessions == other.sessions
            && self.stored == other.stored
    }
}

/// The traffic of a TLS address, which decides about the protocols that it offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsTraffic {
    /// Bytes over TCP.
    Bytes,
    /// HTTP over TCP.
    Http,
    /// HTTP/3 over QUIC.
    Quic,
    /// HTTP/3 over QMux over TCP.
    Qmux,
}

/// A TLS address.
#[derive(Debug, Clone)]
pub struct TlsListener {
    /// Kind and name of the section.
    pub owner: (Box<str>, Box<str>),
    /// File and line number.
    pub place: Box<str>,
    /// The address as configured.
    pub text: Box<str>,
    /// The TLS keywords of its line.
    pub written: BindTlsSpec,
    /// Location of the keywords.
    pub span: Span,
    pub traffic: TlsTraffic,
    /// The TLS server.
    pub server: Arc<tls::Server>,
    /// Names of its certificate lists.
    pub lists: Vec<Arc<str>>,
}

/// A `crt-list` with its current lines.
#[derive(Debug)]
pub struct CrtList {
    /// File or directory; `@<frontend>` for the `ssl-f-use` lines of a frontend.
    pub name: Arc<str>,
    lines: Mutex<CrtLines>,
}

/// The lines of a [`CrtList`].
#[derive(Debug, Default)]
pub struct CrtLines {
    pub lines: Vec<CrtLine>,
    /// Line number of the last line of the file.
    pub last_number: usize,
    /// Serial number of the next line.
    pub next_serial: usize,
}

/// A line of a list with one certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrtLine {
    /// Unique number of the line.
    pub serial: usize,
    /// Line number in the file; 0 in a directory.
    pub number: usize,
    /// Name of the certificate.
    pub certificate: Box<str>,
    /// Options, as text.
    pub options: Box<str>,
    /// SNI filters, as text: names and excluded names.
    pub names: Box<str>,
}

impl CrtLines {
    /// Appends a line and returns its serial number.
    pub fn push(&mut self, number: usize, certificate: &str, options: &str, names: &str) -> usize {
        let serial = self.next_serial;
        self.next_serial += 1;
        let (certificate, options, names) = (certificate.into(), options.into(), names.into());
        self.lines.push(CrtLine { serial, number, certificate, options, names });
        serial
    }
}

impl CrtList {
    /// Creates a list with these lines.
    pub fn new(name: Arc<str>, lines: CrtLines) -> Self {
        Self { name, lines: Mutex::new(lines) }
    }

    /// Locks the lines, for one read or change.
    pub fn lock(&self) -> MutexGuard<'_, CrtLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reference that entries of a line contain.
    pub fn line(&self, serial: usize) -> ListLine {
        ListLine { list: Arc::clone(&self.name), serial }
    }
}
