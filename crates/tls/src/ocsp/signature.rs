//! Verifies signatures of OCSP responses, and builds requests (RFC 6960, sections 4.1 and 4.2.2.2; RFC 5019). Must
//! never send one.

use rustls::crypto::aws_lc_rs::default_provider;
use x509_parser::asn1_rs::Class;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{CertId, OcspError, Parts, sequence};

/// Maximum number of certificates in a response that are examined.
const MOST_CERTIFICATES: usize = 8;

/// A signed structure: its content, the algorithm and the signature, all in DER without their wrappers.
struct SignedData<'a> {
    content: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
}

impl<'a> SignedData<'a> {
    /// Takes the three parts that certificates and responses begin with. The rest remains in `parts`.
    fn take(parts: &mut Parts<'a>) -> Result<Self, OcspError> {
        let before = parts.0;
        parts.next(Class::Universal, 16)?;
        let content = &before[..before.len() - parts.0.len()];
        let algorithm = parts.next(Class::Universal, 16)?;
        let signature = bits(parts.next(Class::Universal, 3)?)?;
        Ok(Self { content, algorithm, signature })
    }

    /// Whether it is signed by the key of a certificate.
    fn is_signed_by(&self, certificate: &[u8]) -> bool {
        let Ok((key_algorithm, key)) = public_key(certificate) else { return false };
        default_provider().signature_verification_algorithms.all.iter().any(|algorithm| {
            algorithm.public_key_alg_id().as_ref() == key_algorithm
                && algorithm.signature_alg_id().as_ref() == self.algorithm
                && algorithm.verify_signature(key, self.content, self.signature).is_ok()
        })
    }
}

/// Returns the bytes of a bit string without unused bits.
fn bits(content: &[u8]) -> Result<&[u8], OcspError> {
    match content.split_first() {
        Some((0, bytes)) => Ok(bytes),
        _ => Err(OcspError::Unreadable),
    }
}

/// Returns the algorithm and the bytes of a certificate's key.
fn public_key(certificate: &[u8]) -> Result<(&[u8], &[u8]), OcspError> {
    let (mut parts, _) = sequence(certificate)?;
    let mut own = Parts(parts.next(Class::Universal, 16)?);
    own.skip(Class::ContextSpecific, 0)?;
    // Serial number, algorithm, issuer, validity, subject.
    own.next(Class::Universal, 2)?;
    for _ in 0..4 {
        own.next(Class::Universal, 16)?;
    }
    let mut key = Parts(own.next(Class::Universal, 16)?);
    let algorithm = key.next(Class::Universal, 16)?;
    Ok((algorithm, bits(key.next(Class::Universal, 3)?)?))
}

/// Whether a response is signed by the issuer of its certificate, or by a certificate that this issuer has signed for
/// that purpose and that is valid at `now`, in seconds of Unix time.
pub fn is_signed_by_issuer(answer: &[u8], issuer: &[u8], now: i64) -> bool {
    let judge = || {
        let (mut answer, _) = sequence(answer)?;
        answer.next(Class::Universal, 10)?;
        let (mut bytes, _) = sequence(answer.next(Class::ContextSpecific, 0)?)?;
        bytes.next(Class::Universal, 6)?;
        let (mut basic, _) = sequence(bytes.next(Class::Universal, 4)?)?;
        let signed = SignedData::take(&mut basic)?;
        if signed.is_signed_by(issuer) {
            return Ok(true);
        }
        if basic.0.is_empty() {
            return Ok(false);
        }
        let (mut delegates, _) = sequence(basic.next(Class::ContextSpecific, 0)?)?;
        for _ in 0..MOST_CERTIFICATES {
            if delegates.0.is_empty() {
                break;
            }
            let before = delegates.0;
            delegates.next(Class::Universal, 16)?;
            let delegate = &before[..before.len() - delegates.0.len()];
            if is_delegate(delegate, issuer, now) && signed.is_signed_by(delegate) {
                return Ok(true);
            }
        }
        Ok::<_, OcspError>(false)
    };
    judge().unwrap_or(false)
}

/// Whether a certificate is an authorized responder of an issuer (RFC 6960, section 4.2.2.2).
fn is_delegate(delegate: &[u8], issuer: &[u8], now: i64) -> bool {
    let Ok((mut parts, _)) = sequence(delegate) else { return false };
    let is_signed = SignedData::take(&mut parts).is_ok_and(|signed| signed.is_signed_by(issuer));
    let (Ok((_, delegate)), Ok((_, issuer))) = (X509Certificate::from_der(delegate), X509Certificate::from_der(issuer))
    else {
        return false;
    };
    let validity = delegate.validity();
    let may_sign = delegate.extensions().iter().any(|extension| {
        matches!(extension.parsed_extension(), ParsedExtension::ExtendedKeyUsage(usage) if usage.ocsp_signing)
    });
    is_signed
        && may_sign
        && delegate.issuer().as_raw() == issuer.subject().as_raw()
        && (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now)
}

/// Builds a request for one certificate, in DER.
pub fn request(id: &CertId) -> Vec<u8> {
    let mut bytes = id.to_der();
    // Request, requestList, tbsRequest, OCSPRequest: each contains only the previous one.
    for _ in 0..4 {
        bytes = [&[0x30, bytes.len().min(127) as u8], &bytes[..]].concat();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_openssl_asks() {
        let der = |pem: &str| crate::pem::certificates(pem.as_bytes()).unwrap()[0].to_vec();
        let (leaf, ca) = (include_str!("../../tests/ocsp/leaf.pem"), include_str!("../../tests/ocsp/ca.pem"));
        let own = request(&CertId::of(&der(leaf), &der(ca)).unwrap());
        // Even with the longest permitted serial number it is shorter than 128 bytes.
        assert!(own.len() < 120, "{}", own.len());
        let (parts, rest) = sequence(&own).unwrap();
        assert!(rest.is_empty() && parts.count() == Ok(1));
        let theirs = include_bytes!("../../tests/ocsp/request.der");
        assert!(theirs.windows(own.len() - 6).any(|window| window == &own[6..]), "{own:02x?}");
    }

    #[test]
    fn the_issuer_has_to_have_signed() {
        let der = |pem: &str| crate::pem::certificates(pem.as_bytes()).unwrap()[0].to_vec();
        let (leaf, ca) = (der(include_str!("../../tests/ocsp/leaf.pem")), der(include_str!("../../tests/ocsp/ca.pem")));
        let good = include_bytes!("../../tests/ocsp/good.der");
        let now = super::super::Answer::parse(good).unwrap().this_update;
        assert!(is_signed_by_issuer(good, &ca, now));
        assert!(!is_signed_by_issuer(good, &leaf, now));
        // Every bit of the signed content and of the signature matters.
        for at in 40..good.len() {
            let mut bad = good.to_vec();
            bad[at] ^= 1;
            let same = super::super::Answer::parse(&bad)
                == super::super::Answer::parse(good).map(|answer| super::super::Answer { der: bad.clone(), ..answer });
            assert!(!is_signed_by_issuer(&bad, &ca, now) || same, "{at}");
        }
    }
}
