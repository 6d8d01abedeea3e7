//! Certificates that verify and decrypt tokens while requests are served; the runtime API changes them. Must never read
//! a file.

use super::{PrivateKey, PublicKey};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The keys of a certificate.
#[derive(Debug, Clone)]
pub struct TokenCertificate {
    /// Verifies tokens.
    pub public: Arc<PublicKey>,
    /// Decrypts tokens; `None`: the key cannot decrypt.
    pub private: Option<Arc<PrivateKey>>,
    /// The certificate and those that follow it, in DER.
    pub chain: Arc<[Vec<u8>]>,
    /// The file that it is from, if a section says so.
    pub file: Option<Box<str>>,
}

/// Certificates by name; those allowed for tokens (`jwt on`) have keys.
#[derive(Debug, Default)]
pub struct TokenCertificates(RwLock<CacheEntries>);

type CacheEntries = BTreeMap<Box<[u8]>, Entry>;

/// A certificate that is there.
#[derive(Debug, Default)]
struct Entry {
    /// Its keys; `None`: it is for other purposes, or has no content yet.
    certificate: Option<TokenCertificate>,
    /// Tokens may be verified by it.
    is_allowed: bool,
}

/// Why a certificate may not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    /// No certificate has that name.
    Unknown,
    /// The certificate is not allowed for tokens.
    Unavailable,
}

impl TokenCertificate {
    /// Loads a certificate and its private key, both in DER. `None`: the certificate is malformed.
    pub fn new(certificate: &[u8], private: &[u8]) -> Option<Self> {
        let public = Arc::new(PublicKey::from_certificate_der(certificate).ok()?);
        let private = PrivateKey::from_der(private).map(Arc::new);
        Some(Self { public, private, chain: Arc::new([certificate.to_vec()]), file: None })
    }
}

impl TokenCertificates {
    fn read(&self) -> RwLockReadGuard<'_, CacheEntries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, CacheEntries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows a certificate to verify tokens.
    pub fn allow(&self, name: &[u8], certificate: TokenCertificate) {
        self.write().insert(name.into(), Entry { certificate: Some(certificate), is_allowed: true });
    }

    /// Tokens may be verified by a certificate as soon as it has a content.
    pub fn allow_empty(&self, name: &[u8]) {
        self.write().entry(name.into()).or_default().is_allowed = true;
    }

    /// Records a certificate that is not allowed to verify tokens.
    pub fn refuse(&self, name: &[u8]) {
        self.write().entry(name.into()).or_default().is_allowed = false;
    }

    /// Removes a certificate.
    pub fn forget(&self, name: &[u8]) {
        self.write().remove(name);
    }

    /// Whether a certificate may verify tokens.
    pub fn allows(&self, name: &[u8]) -> bool {
        self.read().get(name).is_some_and(|entry| entry.is_allowed)
    }

    /// Returns the sorted names of the certificates that may verify tokens.
    pub fn allowed(&self) -> Vec<Box<[u8]>> {
        self.read().iter().filter(|(_, entry)| entry.is_allowed).map(|(name, _)| name.clone()).collect()
    }

    /// The names of those whose keys are known, in their order.
    pub fn names(&self) -> Vec<Box<[u8]>> {
        self.read().iter().filter(|(_, entry)| entry.certificate.is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// The keys of a certificate, whether tokens may be verified by it or not.
    pub fn known(&self, name: &[u8]) -> Option<TokenCertificate> {
        self.read().get(name)?.certificate.clone()
    }

    /// Returns the keys of a certificate.
    ///
    /// # Errors
    /// It is unknown or not allowed for tokens.
    pub fn find(&self, name: &[u8]) -> Result<TokenCertificate, Unusable> {
        match self.read().get(name) {
            Some(Entry { is_allowed: false, .. }) => Err(Unusable::Unavailable),
            Some(Entry { certificate: Some(keys), .. }) => Ok(keys.clone()),
            _ => Err(Unusable::Unknown),
        }
    }
}
