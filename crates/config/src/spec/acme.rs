//! ACME servers that issue certificates (configuration manual, section 12.8). Must never contact one.

use crate::span::{Span, Spanned};

/// An `acme` section.
#[derive(Debug, Clone, PartialEq)]
pub struct AcmeSpec {
    /// Its first line.
    pub span: Span,
    pub name: String,
    /// `account-key`; `None`: the name of the section followed by `.account.key`.
    pub account_key: Option<Spanned<String>>,
    /// `acme-vars`.
    pub variables: Option<String>,
    /// `bits`.
    pub bits: u32,
    /// `challenge`.
    pub challenge: AcmeChallenge,
    /// `challenge-ready`; `None`: the default of the challenge.
    pub ready: Option<AcmeReady>,
    /// `contact`.
    pub contact: Option<String>,
    /// `curves`.
    pub curve: String,
    /// `directory`.
    pub directory: Option<Spanned<String>>,
    /// `dns-delay`, milliseconds.
    pub dns_delay: u64,
    /// `dns-timeout`, milliseconds.
    pub dns_timeout: u64,
    /// `eab-key-id`.
    pub eab_key_id: Option<Spanned<String>>,
    /// `eab-mac-key`.
    pub eab_mac_key: Option<Spanned<String>>,
    /// `eab-mac-alg`.
    pub eab_mac_algorithm: AcmeMac,
    /// `keytype RSA`.
    pub is_rsa: bool,
    /// `map`.
    pub map: Option<String>,
    /// `profile`.
    pub profile: Option<String>,
    /// `provider-name`.
    pub provider: Option<String>,
    /// `reuse-key on`.
    pub reuses_key: bool,
    /// `shared-store`: name of the store over which nodes share orders and certificates; Weir only.
    pub store: Option<Spanned<String>>,
}

/// `challenge`: proof of control over a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcmeChallenge {
    /// A response over HTTP.
    #[default]
    Http01,
    /// A DNS record for each order.
    Dns01,
    /// A persistent DNS record.
    DnsPersist01,
}

/// `challenge-ready`: conditions that must hold before the server is asked to validate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcmeReady {
    /// A command of the runtime API has been received.
    pub cli: bool,
    /// The DNS record exists.
    pub dns: bool,
    /// The delay has passed.
    pub delay: bool,
}

/// `eab-mac-alg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcmeMac {
    #[default]
    Hs256,
    Hs384,
    Hs512,
}

/// ACME settings of the `global` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GlobalAcmeSpec {
    /// `acme.scheduler off`.
    pub schedules_nothing: bool,
    /// `acme.state-dir`: where certificates of `bind ... acme` are stored; Weir only.
    pub folder: Option<Spanned<String>>,
}

impl AcmeSpec {
    /// Returns a section with default values.
    pub fn new(span: Span, name: &str) -> Self {
        Self {
            span,
            name: name.to_owned(),
            account_key: None,
            variables: None,
            bits: 2_048,
            challenge: AcmeChallenge::default(),
            ready: None,
            contact: None,
            curve: "P-384".to_owned(),
            directory: None,
            dns_delay: 30_000,
            dns_timeout: 600_000,
            eab_key_id: None,
            eab_mac_key: None,
            eab_mac_algorithm: AcmeMac::default(),
            is_rsa: false,
            map: None,
            profile: None,
            provider: None,
            reuses_key: false,
            store: None,
        }
    }
}
