//! How certificates are obtained from ACME servers (configuration manual, section 12.8). Must never ask one.

use crate::span::{Span, Spanned};

/// An `acme` section.
#[derive(Debug, Clone, PartialEq)]
pub struct AcmeSpec {
    /// Where it starts.
    pub span: Span,
    /// Its name.
    pub name: String,
    /// `account-key`; `None`: the name of the section with `.account.key` behind it.
    pub account_key: Option<Spanned<String>>,
    /// `acme-vars`.
    pub variables: Option<String>,
    /// `bits`.
    pub bits: u32,
    /// `challenge`.
    pub challenge: AcmeChallenge,
    /// `challenge-ready`; `None`: what the challenge needs.
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
}

/// `challenge`: how a domain is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AcmeChallenge {
    /// An answer over HTTP.
    #[default]
    Http01,
    /// A DNS record for each order.
    Dns01,
    /// A DNS record that stays.
    DnsPersist01,
}

/// `challenge-ready`: what is waited for before a server is told that it may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcmeReady {
    /// A command of the runtime API.
    pub cli: bool,
    /// The record.
    pub dns: bool,
    /// A while.
    pub delay: bool,
}

/// `eab-mac-alg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum AcmeMac {
    #[default]
    Hs256,
    Hs384,
    Hs512,
}

/// What the `global` section says about ACME.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GlobalAcmeSpec {
    /// `acme.scheduler off`.
    pub schedules_nothing: bool,
    /// `acme.state-dir`: where certificates of `bind ... acme` are kept; Weir's own.
    pub folder: Option<Spanned<String>>,
}

impl AcmeSpec {
    /// One that nothing is written in.
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
        }
    }
}
