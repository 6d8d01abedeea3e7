//! Signatures of certificates, of revocation lists and of handshake messages. Must never accept an algorithm that the
//! provider does not support.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, UnparsedPublicKey};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::SignatureVerificationAlgorithm;
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

/// A signed structure in DER: its content, the algorithm, the signature.
pub(super) struct SignedData<'a> {
    bytes: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
}

/// Splits off one DER element: its tag, its content, and the bytes after it.
pub(super) fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
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

/// Returns the bytes of a bit string without unused bits.
fn bits(der: &[u8]) -> Option<&[u8]> {
    let (tag, content, _) = element(der)?;
    content.strip_prefix(&[0]).filter(|_| tag == 3)
}

/// Splits a certificate or a revocation list.
pub(super) fn signed(der: &[u8]) -> Option<SignedData<'_>> {
    let (_, outer, _) = element(der)?;
    let (_, _, following) = element(outer)?;
    let bytes = &outer[..outer.len() - following.len()];
    let (_, algorithm, following) = element(following)?;
    Some(SignedData { bytes, algorithm, signature: bits(following)? })
}

/// Returns the algorithm of a public key, and the key.
fn key_parts(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, outer, _) = element(key)?;
    let (_, algorithm, following) = element(outer)?;
    Some((algorithm, bits(following)?))
}

/// Verifies a signature with a key in the form of certificates (SubjectPublicKeyInfo).
pub(super) fn is_signed(signed: &SignedData<'_>, key: &[u8], algorithms: &WebPkiSupportedAlgorithms) -> bool {
    let Some((of_key, bits)) = key_parts(key) else { return false };
    let fits = |one: &&&dyn SignatureVerificationAlgorithm| {
        one.signature_alg_id().as_ref() == signed.algorithm && one.public_key_alg_id().as_ref() == of_key
    };
    let mut all = algorithms.all.iter().filter(fits);
    all.any(|one| one.verify_signature(bits, signed.bytes, signed.signature).is_ok())
}

/// Verifies an RSA signature with SHA-1, which CAs still use for their lists: an attacker's list with the same digest
/// would first have to be signed by the CA. Not accepted for certificates.
pub(super) fn is_signed_over_sha1(signed: &SignedData<'_>, key: &[u8]) -> bool {
    const SHA1_WITH_RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05\x05\0";
    const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\0";
    let Some((_, bits)) = key_parts(key).filter(|(algorithm, _)| *algorithm == RSA) else { return false };
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, bits);
    signed.algorithm == SHA1_WITH_RSA && key.verify(signed.bytes, signed.signature).is_ok()
}

/// Verifies the signature of a handshake message with the key of a certificate, of any version and with any extensions.
///
/// # Errors
/// The signature is invalid, or its algorithm is not permitted in this version of TLS.
pub(crate) fn verify_message(
    message: &[u8],
    certificate: &[u8],
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
    is_tls13: bool,
) -> Result<HandshakeSignatureValid, Error> {
    let refused = || Error::PeerMisbehaved(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme);
    let bad = || Error::InvalidCertificate(CertificateError::BadSignature);
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| bad())?;
    let (of_key, bits) = key_parts(parsed.public_key().raw).ok_or_else(bad)?;
    let mut mapping = algorithms.mapping.iter();
    let (_, all) = mapping.find(|(scheme, _)| *scheme == signature.scheme).ok_or_else(refused)?;
    // TLS 1.3 excludes PKCS #1 here, and has one curve per scheme (RFC 8446, section 4.2.3).
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
