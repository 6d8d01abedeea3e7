//! What webpki does not judge. Certificates of X.509's first version, which have no extensions: many authorities that sites keep for
//! themselves have issued them to clients. And lists of revoked certificates, whichever version they have. Must never judge the
//! chains of other certificates.
//!
//! A chain is found by names and signatures; then everything is told that is wrong with it. Those behind the first certificate
//! have to be authorities by their extensions (RFC 5280, section 6.1), as webpki wants them.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, SignatureVerificationAlgorithm, UnixTime};
use rustls::{DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::x509::X509Version;

use crate::faults::{Fault, no_issuer};

/// Certificates between the first one and the root, at most.
const LONGEST: usize = 6;
/// Signatures that are looked at for one chain, at most.
const MOST_SIGNATURES: usize = 64;

/// Whether a certificate is of the first version.
pub(crate) fn is_elder(certificate: &[u8]) -> bool {
    X509Certificate::from_der(certificate).is_ok_and(|(_, parsed)| parsed.version() == X509Version::V1)
}

/// What a chain is judged with.
pub(crate) struct Judge<'a> {
    pub(crate) roots: &'a [CertificateDer<'static>],
    pub(crate) revoked: &'a [CertificateRevocationListDer<'static>],
    pub(crate) algorithms: &'a WebPkiSupportedAlgorithms,
}

/// Something that was signed, in DER: the bytes, the algorithm, the signature.
struct Signed<'a> {
    bytes: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl Judge<'_> {
    /// Everything that is wrong with a chain; empty where nothing is.
    pub(crate) fn faults(
        &self,
        first: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Vec<Fault> {
        let mut left = MOST_SIGNATURES;
        let (path, mut faults) = match self.path(first, intermediates, &mut left) {
            Some(path) => (path, Vec::new()),
            None => (vec![&**first], no_issuer(first, intermediates)),
        };
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        for (depth, der) in path.iter().enumerate() {
            let depth = u8::try_from(depth).unwrap_or(u8::MAX);
            let Ok((_, parsed)) = X509Certificate::from_der(der) else { return vec![Fault { code: 1, depth }] };
            let issuer = path.get(usize::from(depth) + 1);
            if let Some(code) = issuer.and_then(|issuer| self.revocation(&parsed, issuer, now)) {
                faults.push(Fault { code, depth });
            }
            if depth > 0 && issuer.is_some() && !may_sign(&parsed, usize::from(depth) - 1) {
                faults.push(Fault { code: INVALID_CA, depth });
            }
            match (parsed.validity().not_before.timestamp(), parsed.validity().not_after.timestamp()) {
                (begin, _) if now < begin => faults.push(Fault { code: 9, depth }),
                (_, end) if now > end => faults.push(Fault { code: 10, depth }),
                _ => {}
            }
        }
        faults
    }

    /// What the lists say against a chain that is good otherwise.
    pub(crate) fn revoked(
        &self,
        first: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Vec<Fault> {
        if self.revoked.is_empty() || is_elder(first) {
            return Vec::new();
        }
        let mut left = MOST_SIGNATURES;
        // A way that is not found is not known to be good.
        let Some(path) = self.path(first, intermediates, &mut left) else {
            return vec![Fault { code: NO_LIST, depth: 0 }];
        };
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let pairs = path.iter().zip(path.iter().skip(1)).enumerate();
        let faults = pairs.filter_map(|(depth, (one, issuer))| {
            let (_, parsed) = X509Certificate::from_der(one).ok()?;
            let code = self.revocation(&parsed, issuer, now)?;
            Some(Fault { code, depth: u8::try_from(depth).unwrap_or(u8::MAX) })
        });
        faults.collect()
    }

    /// The certificates from `first` to a root that is believed.
    fn path<'c>(
        &'c self,
        first: &'c [u8],
        intermediates: &'c [CertificateDer<'_>],
        left: &mut usize,
    ) -> Option<Vec<&'c [u8]>> {
        let mut path = vec![first];
        while path.len() <= LONGEST + 1 {
            let last = *path.last()?;
            let (_, parsed) = X509Certificate::from_der(last).ok()?;
            let is_issuer = |candidate: &[u8], left: &mut usize| {
                let Ok((_, issuer)) = X509Certificate::from_der(candidate) else { return false };
                if issuer.subject().as_raw() != parsed.issuer().as_raw() || *left == 0 {
                    return false;
                }
                *left -= 1;
                signed(last).is_some_and(|signed| self.is_signed(&signed, issuer.public_key().raw))
            };
            if let Some(root) = self.roots.iter().find(|root| ***root == *last || is_issuer(root, left)) {
                if **root != *last {
                    path.push(root);
                }
                return Some(path);
            }
            let next = intermediates.iter().find(|one| !path.contains(&&***one) && is_issuer(one, left))?;
            path.push(next);
        }
        None
    }

    /// Whether a key has made a signature.
    fn is_signed(&self, signed: &Signed<'_>, key: &[u8]) -> bool {
        let Some((of_key, bits)) = key_parts(key) else { return false };
        let fits = |one: &&&dyn SignatureVerificationAlgorithm| {
            one.signature_alg_id().as_ref() == signed.algorithm && one.public_key_alg_id().as_ref() == of_key
        };
        let mut all = self.algorithms.all.iter().filter(fits);
        all.any(|one| one.verify_signature(bits, signed.bytes, signed.signature).is_ok())
    }

    /// What the lists say against a certificate of that issuer. `None`: nothing, or there are no lists.
    fn revocation(&self, certificate: &X509Certificate<'_>, issuer: &[u8], now: i64) -> Option<u8> {
        const LIST_HAS_EXPIRED: u8 = 12;
        const REVOKED: u8 = 23;
        if self.revoked.is_empty() {
            return None;
        }
        let (_, issuer) = X509Certificate::from_der(issuer).ok()?;
        let mut verdict = Some(NO_LIST);
        for list in self.revoked {
            let Ok((_, parsed)) = CertificateRevocationList::from_der(list) else { continue };
            // Lists of a part of the certificates, and those that only add to another, say nothing here.
            let is_partial = parsed.extensions().iter().any(|extension| extension.critical);
            if parsed.issuer().as_raw() != certificate.issuer().as_raw()
                || is_partial
                || !signed(list).is_some_and(|signed| {
                    self.is_signed(&signed, issuer.public_key().raw)
                        || is_signed_of_old(&signed, issuer.public_key().raw)
                })
            {
                continue;
            }
            let serial = certificate.raw_serial();
            if parsed.iter_revoked_certificates().any(|one| one.raw_serial() == serial) {
                return Some(REVOKED);
            }
            let has_expired = parsed.next_update().is_some_and(|next| now > next.timestamp());
            verdict = if has_expired { verdict.map(|_| LIST_HAS_EXPIRED) } else { None };
        }
        verdict
    }

    /// Whether the key of a certificate has signed a message of the handshake.
    pub(crate) fn verify_message(
        &self,
        message: &[u8],
        certificate: &[u8],
        signature: &DigitallySignedStruct,
        is_tls13: bool,
    ) -> Result<HandshakeSignatureValid, Error> {
        let refused = || Error::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme);
        let bad = || Error::InvalidCertificate(rustls::CertificateError::BadSignature);
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| bad())?;
        let (of_key, bits) = key_parts(parsed.public_key().raw).ok_or_else(bad)?;
        let mut mapping = self.algorithms.mapping.iter();
        let (_, all) = mapping.find(|(scheme, _)| *scheme == signature.scheme).ok_or_else(refused)?;
        // TLS 1.3 has no PKCS #1 here, and one curve for each scheme (RFC 8446, section 4.2.3).
        let is_pkcs1 = matches!(
            signature.scheme,
            SignatureScheme::RSA_PKCS1_SHA256 | SignatureScheme::RSA_PKCS1_SHA384 | SignatureScheme::RSA_PKCS1_SHA512
        );
        if is_tls13 && is_pkcs1 {
            return Err(refused());
        }
        let all = if is_tls13 { all.get(..1).unwrap_or_default() } else { all };
        let fitting = all.iter().find(|one| one.public_key_alg_id().as_ref() == of_key).ok_or_else(bad)?;
        let verified = fitting.verify_signature(bits, message, signature.signature());
        verified.map(|()| HandshakeSignatureValid::assertion()).map_err(|_| bad())
    }
}

/// OpenSSL's number of a certificate whose issuer has no list.
const NO_LIST: u8 = 3;
/// OpenSSL's number of a certificate that may not sign others.
const INVALID_CA: u8 = 24;

/// Whether an RSA key has made a signature over SHA-1, which authorities still use for their lists: whoever could make another
/// list with the same digest would have to have it signed first. For certificates it is not good enough.
fn is_signed_of_old(signed: &Signed<'_>, key: &[u8]) -> bool {
    const SHA1_WITH_RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05\x05\0";
    const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\0";
    let Some((_, bits)) = key_parts(key).filter(|(algorithm, _)| *algorithm == RSA) else { return false };
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, bits);
    signed.algorithm == SHA1_WITH_RSA && key.verify(signed.bytes, signed.signature).is_ok()
}

/// Whether a certificate may sign one that has `between` others in front of it.
fn may_sign(certificate: &X509Certificate<'_>, between: usize) -> bool {
    let is_authority = certificate.basic_constraints().ok().flatten().is_some_and(|constraints| {
        let most = constraints.value.path_len_constraint.map_or(usize::MAX, |most| most as usize);
        constraints.value.ca && between <= most
    });
    let signs = certificate.key_usage().ok().flatten().is_none_or(|usage| usage.value.key_cert_sign());
    // Constraints on names and policies are not judged here: with them nothing is known.
    let is_plain = certificate.extensions().iter().all(|extension| {
        !extension.critical || matches!(extension.oid.to_id_string().as_str(), "2.5.29.19" | "2.5.29.15")
    });
    is_authority && signs && is_plain
}

/// One element of DER: its tag, its content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The bits of a bit string that has no unused ones.
fn bits(der: &[u8]) -> Option<&[u8]> {
    let (tag, content, _) = element(der)?;
    content.strip_prefix(&[0]).filter(|_| tag == 3)
}

/// The parts of a certificate, or of a list of revoked ones.
fn signed(der: &[u8]) -> Option<Signed<'_>> {
    let (_, outer, _) = element(der)?;
    let (_, _, behind) = element(outer)?;
    let bytes = &outer[..outer.len() - behind.len()];
    let (_, algorithm, behind) = element(behind)?;
    Some(Signed { bytes, algorithm, signature: bits(behind)? })
}

/// The algorithm of a public key, and the key.
fn key_parts(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, outer, _) = element(key)?;
    let (_, algorithm, behind) = element(outer)?;
    Some((algorithm, bits(behind)?))
}
