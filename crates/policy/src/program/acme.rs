//! Certificates that are obtained from ACME servers (configuration manual, section 12.8; RFC 8555), and from whom. Must never
//! ask one.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use config::spec::AcmeReady;
use tls::account::{AccountKey, Binding};
use tls::issue::KeyKind;

/// All that a configuration says about ACME.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Acme {
    /// Certificates are renewed without an order (`acme.scheduler`).
    pub schedules: bool,
    /// The servers.
    pub sections: Vec<AcmeSection>,
    /// The certificates.
    pub certificates: Vec<AcmeCertificate>,
    /// Where those of `bind ... acme` are kept; `None`: there are none.
    pub folder: Option<Box<str>>,
}

/// An `acme` section.
#[derive(Debug, Clone, PartialEq)]
pub struct AcmeSection {
    /// Its name.
    pub name: Box<str>,
    /// The URL of the server's directory.
    pub directory: Box<str>,
    /// The mail address of the account.
    pub contact: Option<Box<str>>,
    /// The file with the account's key.
    pub key_file: Box<str>,
    /// The key; `None`: the file is not there, and the key is made at the start.
    pub key: Option<Arc<AccountKey>>,
    /// What keys of certificates, and of the account, are made of.
    pub key_kind: KeyKind,
    /// How names are proved.
    pub challenge: Challenge,
    /// What is waited for before a server is told that it may look.
    pub ready: AcmeReady,
    /// `dns-delay`.
    pub dns_delay: Duration,
    /// `dns-timeout`.
    pub dns_timeout: Duration,
    /// The map that is given tokens.
    pub map: Option<Box<str>>,
    /// The profile that is asked for.
    pub profile: Option<Box<str>>,
    /// A certificate is renewed with the key that it has.
    pub reuses_key: bool,
    /// What binds the account to one that the CA has already.
    pub binding: Option<Binding>,
    /// `provider-name`, for programs that set DNS records.
    pub provider: Option<Box<str>>,
    /// `acme-vars`, likewise.
    pub variables: Option<Box<str>>,
}

/// How a name is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// By an answer over HTTP (RFC 8555, section 8.3), that rules give with the section's map.
    Http01,
    /// The same, given by Weir itself.
    OwnHttp01,
    /// By a DNS record (RFC 8555, section 8.4).
    Dns01,
    /// By a DNS record that stays (draft-ietf-acme-dns-persist).
    DnsPersist01,
    /// By a handshake (RFC 8737).
    TlsAlpn01,
}

impl Challenge {
    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http01 | Self::OwnHttp01 => "http-01",
            Self::Dns01 => "dns-01",
            Self::DnsPersist01 => "dns-persist-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// A certificate that is obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeCertificate {
    /// What it is called in the configuration and the runtime API.
    pub name: Box<str>,
    /// The index of its section.
    pub section: usize,
    /// Its domains; the first one is its common name.
    pub domains: Vec<Box<str>>,
    /// Its addresses.
    pub ips: Vec<IpAddr>,
    /// It is kept by Weir itself; `None`: rules and a `crt-store` ask for it.
    pub kept: Option<Kept>,
}

/// A certificate of `bind ... acme`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The file in [`Acme::folder`].
    pub file: Box<str>,
    /// How its names are proved.
    pub challenge: Challenge,
}
