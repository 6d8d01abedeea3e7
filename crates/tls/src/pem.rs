//! PEM (RFC 7468): certificates, keys and revocation lists in one text, in any order. Must never print a key.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// There is nothing of the kind in it. OpenSSL says "no start line".
    Nothing,
    /// It is broken.
    Broken(String),
}

fn collect<T>(found: impl Iterator<Item = Result<T, rustls::pki_types::pem::Error>>) -> Result<Vec<T>, Wrong> {
    let found: Result<Vec<_>, _> = found.collect();
    match found {
        Ok(found) if found.is_empty() => Err(Wrong::Nothing),
        Ok(found) => Ok(found),
        Err(error) => Err(Wrong::Broken(error.to_string())),
    }
}

/// Every certificate, in its order.
///
/// # Errors
/// There is none, or one is broken.
pub fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Wrong> {
    collect(CertificateDer::pem_slice_iter(text))
}

/// Every revocation list, in its order.
///
/// # Errors
/// As for [`certificates`].
pub fn revocation_lists(text: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, Wrong> {
    collect(CertificateRevocationListDer::pem_slice_iter(text))
}

/// The first private key.
///
/// # Errors
/// As for [`certificates`].
pub fn private_key(text: &[u8]) -> Result<PrivateKeyDer<'static>, Wrong> {
    match PrivateKeyDer::from_pem_slice(text) {
        Ok(key) => Ok(key),
        Err(rustls::pki_types::pem::Error::NoItemsFound) => Err(Wrong::Nothing),
        Err(error) => Err(Wrong::Broken(error.to_string())),
    }
}

/// Whether a private key in the text is encrypted: it needs a passphrase.
pub fn has_encrypted_key(text: &[u8]) -> bool {
    let has = |wanted: &[u8]| text.windows(wanted.len()).any(|part| part == wanted);
    has(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(b"Proc-Type: 4,ENCRYPTED")
}
