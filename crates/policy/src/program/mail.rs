//! Compiled mail alerts about servers (configuration manual, sections 4.2 "email-alert" and 12.3). Must never send one.

use config::spec::LogLevel;
use std::net::SocketAddr;
use std::time::Duration;

/// The mail alerts of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailAlert {
    /// The mail servers; each one receives every mail.
    pub servers: Box<[MailServer]>,
    /// `timeout mail`: timeout of sending a mail.
    pub timeout: Duration,
    /// `email-alert from`.
    pub from: Box<str>,
    /// `email-alert to`.
    pub to: Box<str>,
    /// `email-alert level`: least severe level that is sent.
    pub level: LogLevel,
    /// `email-alert myhostname`; `None` for the host's name.
    pub hostname: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailServer {
    pub name: Box<str>,
    pub address: SocketAddr,
}
