//! Mails about servers, compiled (configuration manual, sections 4.2 "email-alert" and 12.3). Must never send one.

use config::spec::LogLevel;
use std::net::SocketAddr;
use std::time::Duration;

/// Which mails a proxy sends, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailAlert {
    /// The mail servers; each gets every mail.
    pub servers: Box<[MailServer]>,
    /// `timeout mail`: how long sending one may take.
    pub timeout: Duration,
    /// `email-alert from`.
    pub from: Box<str>,
    /// `email-alert to`.
    pub to: Box<str>,
    /// `email-alert level`: the least severe that is sent.
    pub level: LogLevel,
    /// `email-alert myhostname`; `None`: the host's.
    pub hostname: Option<Box<str>>,
}

/// A mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailServer {
    /// Its name.
    pub name: Box<str>,
    /// Where it listens.
    pub address: SocketAddr,
}
