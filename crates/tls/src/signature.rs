//! Signature algorithms by OpenSSL's names (SSL_CTX_set1_sigalgs(3)), and keys restricted to some of them. Must never
//! sign with an algorithm that a list does not contain.

use std::sync::Arc;

use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

use crate::provider::ParsedNames;

/// The names of TLS 1.3, the names as key and digest, and the scheme.
const NAMES: [(&str, &str, SignatureScheme); 10] = [
    ("ecdsa_secp256r1_sha256", "ECDSA+SHA256", SignatureScheme::ECDSA_NISTP256_SHA256),
    ("ecdsa_secp384r1_sha384", "ECDSA+SHA384", SignatureScheme::ECDSA_NISTP384_SHA384),
    ("ecdsa_secp521r1_sha512", "ECDSA+SHA512", SignatureScheme::ECDSA_NISTP521_SHA512),
    ("ed25519", "", SignatureScheme::ED25519),
    ("rsa_pss_rsae_sha256", "RSA-PSS+SHA256", SignatureScheme::RSA_PSS_SHA256),
    ("rsa_pss_rsae_sha384", "RSA-PSS+SHA384", SignatureScheme::RSA_PSS_SHA384),
    ("rsa_pss_rsae_sha512", "RSA-PSS+SHA512", SignatureScheme::RSA_PSS_SHA512),
    ("rsa_pkcs1_sha256", "RSA+SHA256", SignatureScheme::RSA_PKCS1_SHA256),
    ("rsa_pkcs1_sha384", "RSA+SHA384", SignatureScheme::RSA_PKCS1_SHA384),
    ("rsa_pkcs1_sha512", "RSA+SHA512", SignatureScheme::RSA_PKCS1_SHA512),
];

/// Further names that OpenSSL knows.
const FOREIGN: [&str; 9] = [
    "ed448",
    "rsa_pss_pss_sha256",
    "rsa_pss_pss_sha384",
    "rsa_pss_pss_sha512",
    "rsa_pkcs1_sha1",
    "rsa_pkcs1_sha224",
    "ecdsa_sha1",
    "ecdsa_sha224",
    "dsa_sha1",
];

/// A list that OpenSSL rejects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAList;

/// Parses a list of signature algorithms. Those of OpenSSL that are not supported here are in `unknown`.
///
/// # Errors
/// Unknown or repeated algorithm name.
pub fn read(text: &str) -> Result<ParsedNames<SignatureScheme>, NotAList> {
    let mut named = ParsedNames::default();
    for name in text.split(':') {
        let (name, is_optional) = match name.strip_prefix('?') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let alias = name.replacen("PSS+", "RSA-PSS+", usize::from(name.starts_with("PSS+")));
        let row = NAMES.iter().find(|(own, pair, _)| *own == name || (!pair.is_empty() && *pair == alias));
        match row {
            Some((.., scheme)) if named.found.contains(scheme) => return Err(NotAList),
            Some((.., scheme)) => named.found.push(*scheme),
            None if is_optional => {}
            None if is_foreign(name) => named.unknown.push(name.to_owned()),
            None => return Err(NotAList),
        }
    }
    Ok(named)
}

/// Whether OpenSSL knows an algorithm by that name.
fn is_foreign(name: &str) -> bool {
    let pair = name.split_once('+').is_some_and(|(key, digest)| {
        matches!(key, "RSA" | "RSA-PSS" | "PSS" | "DSA" | "ECDSA")
            && matches!(digest, "SHA1" | "SHA224" | "SHA256" | "SHA384" | "SHA512")
    });
    pair || FOREIGN.contains(&name)
}

/// A key restricted to some signature algorithms.
#[derive(Debug)]
struct Restricted {
    key: Arc<dyn SigningKey>,
    schemes: Box<[SignatureScheme]>,
}

impl SigningKey for Restricted {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        // In the order of the list.
        let mut shared = self.schemes.iter().filter(|scheme| offered.contains(scheme));
        shared.find_map(|scheme| self.key.choose_scheme(&[*scheme]))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

/// Returns a copy of the certificate whose key is restricted to these algorithms.
pub(crate) fn restricted(key: &CertifiedKey, schemes: &[SignatureScheme]) -> Arc<CertifiedKey> {
    let CertifiedKey { cert, key, ocsp } = key;
    let key = Restricted { key: Arc::clone(key), schemes: schemes.into() };
    Arc::new(CertifiedKey { cert: cert.clone(), key: Arc::new(key), ocsp: ocsp.clone() })
}

/// Returns the algorithms that a peer may sign with, out of the supported ones.
pub(crate) fn accepted(possible: Vec<SignatureScheme>, allowed: Option<&Vec<SignatureScheme>>) -> Vec<SignatureScheme> {
    match allowed {
        None => possible,
        Some(allowed) => allowed.iter().filter(|scheme| possible.contains(scheme)).copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SignatureScheme as Scheme;

    #[test]
    fn lists_are_read_as_openssl_does() {
        type Row = (&'static str, Result<(&'static [Scheme], &'static [&'static str]), NotAList>);
        let rows: &[Row] = &[
            ("RSA+SHA256", Ok((&[Scheme::RSA_PKCS1_SHA256], &[]))),
            ("PSS+SHA256:ECDSA+SHA384", Ok((&[Scheme::RSA_PSS_SHA256, Scheme::ECDSA_NISTP384_SHA384], &[]))),
            ("ed25519:?nothing:ed448", Ok((&[Scheme::ED25519], &["ed448"]))),
            ("RSA+SHA1", Ok((&[], &["RSA+SHA1"]))),
            ("rsa_pss_rsae_sha256:RSA-PSS+SHA256", Err(NotAList)),
            ("RSA+SHA256:foo", Err(NotAList)),
            ("RSA+MD5", Err(NotAList)),
            ("", Err(NotAList)),
        ];
        for (text, expected) in rows {
            let found = read(text).map(|named| (named.found, named.unknown));
            let expected = expected.map(|(found, unknown)| {
                (found.to_vec(), unknown.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
            });
            assert_eq!(found, expected, "{text}");
        }
    }
}
