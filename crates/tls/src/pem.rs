//! PEM (RFC 7468): certificates, keys and revocation lists in one text, in any order. Must never print a key.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateRevocationListDer, PrivateKeyDer};

/// A certificate in DER.
pub type CertificateDer = rustls::pki_types::CertificateDer<'static>;
/// A private key in DER.
pub type PrivateKey = PrivateKeyDer<'static>;

/// Why a PEM text cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// It contains no item of the type. OpenSSL: "no start line".
    Nothing,
    /// It is malformed.
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

/// Returns all certificates, in order.
///
/// # Errors
/// There is none, or one is malformed.
pub fn certificates(text: &[u8]) -> Result<Vec<CertificateDer>, Wrong> {
    collect(CertificateDer::pem_slice_iter(text))
}

/// Returns all revocation lists, in order.
///
/// # Errors
/// As for [`certificates`].
pub fn revocation_lists(text: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>, Wrong> {
    collect(CertificateRevocationListDer::pem_slice_iter(text))
}

/// Returns the first private key.
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

/// Encodes a private key.
pub fn encode_key(key: &PrivateKeyDer<'_>) -> String {
    let label = match key {
        PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
        PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
        _ => "PRIVATE KEY",
    };
    encode(label, key.secret_der())
}

/// Encodes a certificate.
pub fn encode_certificate(der: &[u8]) -> String {
    encode("CERTIFICATE", der)
}

/// Encodes an item with a label, in lines of 64 characters.
fn encode(label: &str, der: &[u8]) -> String {
    let mut letters = String::new();
    base::base64::encode(der, |letter| {
        letters.push(char::from(letter));
        if letters.len() % 65 == 64 {
            letters.push('\n');
        }
    });
    let end = if letters.ends_with('\n') { "" } else { "\n" };
    format!("-----BEGIN {label}-----\n{letters}{end}-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        for length in [1, 2, 3, 47, 48, 49, 96, 1000] {
            let der: Vec<u8> = (0..length).map(|byte| (byte * 7) as u8).collect();
            let text = encode_certificate(&der);
            assert!(text.lines().all(|line| line.len() <= 64), "{text}");
            assert_eq!(certificates(text.as_bytes()).map(|all| all[0].to_vec()), Ok(der.clone()), "{text}");
            let key = PrivateKeyDer::Pkcs8(der.clone().into());
            assert_eq!(private_key(encode_key(&key).as_bytes()), Ok(key));
        }
    }
}
