//! Certificates generated for the names that clients request (configuration manual, section 5.1,
//! "generate-certificates"), and their cache. Must never generate one for a name that is not a host name.

use std::collections::HashMap;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::SignatureScheme;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, ParsedExtension, X509Certificate};

use crate::certificate::{Certificate, Files, Parts, Usage};
use crate::x509;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Maximum length of a common name (RFC 5280, appendix A).
const LONGEST_COMMON_NAME: usize = 64;

/// Algorithms that an authority signs with, and their DER encoding in a certificate.
const ALGORITHMS: [(SignatureScheme, &[u8]); 5] = [
    (SignatureScheme::ECDSA_NISTP256_SHA256, &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]),
    (SignatureScheme::ECDSA_NISTP384_SHA384, &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3]),
    (SignatureScheme::ECDSA_NISTP521_SHA512, &[0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4]),
    (SignatureScheme::ED25519, &[0x30, 5, 6, 3, 0x2b, 0x65, 0x70]),
    (SignatureScheme::RSA_PKCS1_SHA256, &[0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11, 5, 0]),
];

/// Empty basicConstraints: not a CA.
const NO_AUTHORITY: &[u8] = &[0x30, 9, 6, 3, 0x55, 0x1d, 0x13, 4, 2, 0x30, 0];

/// keyUsage: digitalSignature, nonRepudiation, keyEncipherment.
const KEY_USAGE: &[u8] = &[0x30, 11, 6, 3, 0x55, 0x1d, 0x0f, 4, 4, 3, 2, 5, 0xe0];

/// Encodes a value with its tag and its length.
fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = length.to_be_bytes();
    let used = bytes.iter().position(|byte| *byte != 0).map_or(&bytes[..0], |first| &bytes[first..]);
    let mut out = vec![tag];
    if length < 128 {
        out.push(length as u8);
    } else {
        out.push(0x80 | used.len() as u8);
        out.extend_from_slice(used);
    }
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// Whether a name is valid in a certificate: letters, digits, hyphens and underscores between dots.
pub(crate) fn is_host(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// Generates a certificate for a name, signed by `authority`, with the key of `like`. It is valid from a day before
/// `now`, in seconds of Unix time, for a year. `None`: it cannot be generated.
pub(crate) fn certificate(authority: &Certificate, like: &Certificate, name: &str, now: i64) -> Option<Certificate> {
    let name = name.to_ascii_lowercase();
    if !is_host(&name) {
        return None;
    }
    let (_, issuer) = X509Certificate::from_der(authority.der()).ok()?;
    let (_, own) = X509Certificate::from_der(like.der()).ok()?;
    let signer = authority.unstapled().key.choose_scheme(&ALGORITHMS.map(|(scheme, _)| scheme))?;
    let (_, algorithm) = ALGORITHMS.iter().find(|(scheme, _)| *scheme == signer.scheme())?;
    let mut serial = [0; 16];
    aws_lc_rs::rand::fill(&mut serial).ok()?;
    // Positive, and of this length.
    serial[0] = serial[0] & 0x3f | 0x40;
    let common_name = tagged(0x30, &[&[6, 3, 0x55, 4, 3], &tagged(0x0c, &[name.as_bytes()])]);
    let issuer_name = issuer.subject().as_raw();
    let mut subject = content(issuer_name)?.to_vec();
    if name.len() <= LONGEST_COMMON_NAME {
        subject.extend_from_slice(&tagged(0x31, &[&common_name]));
    }
    let alternative = tagged(0x30, &[&tagged(0x82, &[name.as_bytes()])]);
    let mut extensions = NO_AUTHORITY.to_vec();
    extensions.extend_from_slice(&tagged(0x30, &[&[6, 3, 0x55, 0x1d, 0x11], &tagged(4, &[&alternative])]));
    let key = issuer.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    });
    let key = key.map(|key| tagged(0x80, &[key])).unwrap_or_default();
    // With the issuer's name and serial number, a certificate with the same name as its issuer does not count as
    // self-signed.
    let above = tagged(0xa1, &[&tagged(0xa4, &[issuer.issuer().as_raw()])]);
    let identifier = tagged(0x30, &[&key, &above, &tagged(0x82, &[issuer.raw_serial()])]);
    extensions.extend_from_slice(&tagged(0x30, &[&[6, 3, 0x55, 0x1d, 0x23], &tagged(4, &[&identifier])]));
    let own_key = digest(&SHA1_FOR_LEGACY_USE_ONLY, &own.public_key().subject_public_key.data);
    let own_key = tagged(4, &[&tagged(4, &[own_key.as_ref()])]);
    extensions.extend_from_slice(&tagged(0x30, &[&[6, 3, 0x55, 0x1d, 0x0e], &own_key]));
    extensions.extend_from_slice(KEY_USAGE);
    let body = tagged(
        0x30,
        &[
            &[0xa0, 3, 2, 1, 2],
            &tagged(2, &[&serial]),
            algorithm,
            issuer_name,
            &tagged(0x30, &[&x509::time(now - DAY), &x509::time(now + 365 * DAY)]),
            &tagged(0x30, &[&subject]),
            own.public_key().raw,
            &tagged(0xa3, &[&tagged(0x30, &[&extensions])]),
        ],
    );
    let signature = signer.sign(&body).ok()?;
    let der = tagged(0x30, &[&body, algorithm, &tagged(3, &[&[0], &signature])]);
    let behind = std::iter::once(authority.der()).chain(authority.chain());
    let chain = std::iter::once(CertificateDer::from(der));
    Certificate::assemble(Parts {
        chain: chain.chain(behind.map(|der| CertificateDer::from(der.to_vec()))).collect(),
        name,
        key: like.private_key().clone_key(),
        issuer: None,
        skips_self_issued: false,
        files: Files::default(),
        usage: Usage::default(),
    })
    .ok()
}

/// Returns the content of a sequence.
fn content(der: &[u8]) -> Option<&[u8]> {
    x509_parser::asn1_rs::Any::from_der(der).ok().map(|(_, any)| any.data)
}

/// A cache of values by name; the least recently used one is evicted.
pub(crate) struct Cache<T> {
    most: usize,
    /// Counter of lookups.
    wanted: u64,
    /// The last lookup of each value, and its creation in seconds of Unix time.
    entries: HashMap<Box<str>, (u64, i64, T)>,
}

impl<T: Clone> Cache<T> {
    /// Creates a cache of at most `most` values.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, wanted: 0, entries: HashMap::new() }
    }

    /// Returns the value of a name. Values expire after a month, since certificates do.
    pub(crate) fn get(&mut self, name: &str, now: i64) -> Option<T> {
        self.wanted += 1;
        let (wanted, made, value) = self.entries.get_mut(name)?;
        if now - *made > 30 * DAY {
            return None;
        }
        *wanted = self.wanted;
        Some(value.clone())
    }

    /// Adds a value.
    pub(crate) fn put(&mut self, name: &str, now: i64, value: T) {
        if self.most == 0 {
            return;
        }
        if self.entries.len() >= self.most
            && !self.entries.contains_key(name)
            && let Some(oldest) = self.entries.iter().min_by_key(|(_, entry)| entry.0).map(|(name, _)| name.clone())
        {
            self.entries.remove(&oldest);
        }
        self.entries.insert(name.into(), (self.wanted, now, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_told_from_other_texts() {
        let long = "a".repeat(64);
        let rows = [
            ("a.example", true),
            ("A-1_b.example", true),
            ("localhost", true),
            ("", false),
            ("a..b", false),
            (".a", false),
            ("a\0b", false),
            ("*.a", false),
            (long.as_str(), false),
        ];
        for (name, is) in rows {
            assert_eq!(is_host(name), is, "{name:?}");
        }
    }

    #[test]
    fn the_cache_forgets_what_was_wanted_longest_ago() {
        let mut cache = Cache::new(2);
        cache.put("a", 0, 1);
        cache.put("b", 0, 2);
        assert_eq!((cache.get("a", 0), cache.get("x", 0)), (Some(1), None));
        cache.put("c", 0, 3);
        assert_eq!((cache.get("a", 0), cache.get("b", 0), cache.get("c", 0)), (Some(1), None, Some(3)));
        assert_eq!(cache.get("a", 31 * DAY), None);
        let mut none = Cache::new(0);
        none.put("a", 0, 1);
        assert_eq!(none.get("a", 0), None);
    }
}
