//! Certificates that are obtained from ACME servers (configuration manual, section 12.8; RFC 8555), and the servers.
//! Must never connect to one.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use config::spec::AcmeReady;
use tls::account::{AccountKey, Binding};
use tls::issue::KeyKind;
use tls::sealed::SealingKey;

/// The ACME parameters of a configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Acme {
    /// Certificates are renewed automatically (`acme.scheduler`).
    pub schedules: bool,
    pub sections: Vec<AcmeSection>,
    pub certificates: Vec<AcmeCertificate>,
    /// Directory of the certificates of `bind ... acme`; `None` if there are none.
    pub folder: Option<Box<str>>,
    /// The store over which nodes share the account, orders and certificates.
    pub shared: Option<SharedAcme>,
}

/// Parameters of the certificates that several nodes share (`shared-store` of an `acme` section).
#[derive(Debug, Clone, PartialEq)]
pub struct SharedAcme {
    /// Index of the store.
    pub store: usize,
    /// Encrypts what is in the store.
    pub sealing: SealingKey,
    /// The account key in PEM, from the file of `account-key`; `None` if the file does not exist. The key in the store has
    /// priority.
    pub account: Option<Arc<[u8]>>,
    /// Type of the account key if it is generated.
    pub key_kind: KeyKind,
}

/// An `acme` section.
#[derive(Debug, Clone, PartialEq)]
pub struct AcmeSection {
    pub name: Box<str>,
    pub directory: Box<str>,
    /// Contact address of the account.
    pub contact: Option<Box<str>>,
    /// File of the account key.
    pub key_file: Box<str>,
    /// Nodes share the account, orders and certificates over [`Acme::shared`].
    pub is_shared: bool,
    /// The account key; `None` if the file does not exist and the key is generated at startup, or is in a store.
    pub key: Option<Arc<AccountKey>>,
    /// Type of the certificates' keys and of the account key.
    pub key_kind: KeyKind,
    pub challenge: Challenge,
    /// The condition for announcing a challenge as ready.
    pub ready: AcmeReady,
    /// `dns-delay`.
    pub dns_delay: Duration,
    /// `dns-timeout`.
    pub dns_timeout: Duration,
    /// The map that receives tokens.
    pub map: Option<Box<str>>,
    /// The requested certificate profile.
    pub profile: Option<Box<str>>,
    /// Renewals reuse the certificate's key.
    pub reuses_key: bool,
    /// External account binding.
    pub binding: Option<Binding>,
    /// `provider-name`, for programs that set DNS records.
    pub provider: Option<Box<str>>,
    /// `acme-vars`, for programs that set DNS records.
    pub variables: Option<Box<str>>,
}

/// The type of challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// `http-01` (RFC 8555, section 8.3), answered by rules with the section's map.
    Http01,
    /// `http-01`, answered by Weir itself.
    OwnHttp01,
    /// `dns-01` (RFC 8555, section 8.4).
    Dns01,
    /// A persistent DNS record (draft-ietf-acme-dns-persist).
    DnsPersist01,
    /// `tls-alpn-01` (RFC 8737).
    TlsAlpn01,
}

impl Challenge {
    /// The name of the challenge type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http01 | Self::OwnHttp01 => "http-01",
            Self::Dns01 => "dns-01",
            Self::DnsPersist01 => "dns-persist-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

/// A certificate to be obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeCertificate {
    /// Name in the configuration and the runtime API.
    pub name: Box<str>,
    /// Index of its section.
    pub section: usize,
    /// Domains; the first one is the common name.
    pub domains: Vec<Box<str>>,
    /// IP addresses.
    pub ips: Vec<IpAddr>,
    /// Set for certificates that Weir stores itself; `None` for those of a `crt-store`.
    pub kept: Option<CertificateStorage>,
}

impl AcmeCertificate {
    /// Returns the type of challenge.
    pub fn challenge(&self, section: &AcmeSection) -> Challenge {
        self.kept.as_ref().map_or(section.challenge, |kept| kept.challenge)
    }
}

/// Storage of a certificate of `bind ... acme`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateStorage {
    /// File name in [`Acme::folder`].
    pub file: Box<str>,
    pub challenge: Challenge,
}
