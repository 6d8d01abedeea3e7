//! OCSP responses (RFC 6960) for stapling: parsing, and checking that they are for a certificate and current. Must
//! never request one.

mod signature;
mod text;

pub use signature::{is_signed_by_issuer, request};
pub use text::describe;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use x509_parser::asn1_rs::{Any, Class, FromDer, Oid, Tag};
use x509_parser::prelude::X509Certificate;
use x509_parser::time::ASN1Time;

/// Permitted clock skew in seconds.
const SKEW: i64 = 300;

/// id-pkix-ocsp-basic, without its tag and length.
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
/// The AlgorithmIdentifier of SHA-1.
const SHA1: &[u8] = &[0x30, 9, 6, 5, 0x2b, 0x0e, 3, 2, 0x1a, 5, 0];

/// The certificate of a response: `CertID`, with SHA-1, in DER.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CertId {
    /// SHA-1 of the issuer's name.
    pub issuer_name: [u8; 20],
    /// SHA-1 of the issuer's public key.
    pub issuer_key: [u8; 20],
    /// The serial number, as a DER integer.
    pub serial: Box<[u8]>,
}

impl std::fmt::Debug for CertId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&base::hex::encode_lower(&self.to_der()))
    }
}

impl CertId {
    /// Computes it from a certificate and its issuer's, both in DER. `None`: one is invalid.
    pub fn of(certificate: &[u8], issuer: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let (_, issuer) = X509Certificate::from_der(issuer).ok()?;
        let hash = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().try_into().ok();
        Some(Self {
            issuer_name: hash(certificate.issuer().as_raw())?,
            issuer_key: hash(&issuer.public_key().subject_public_key.data)?,
            serial: certificate.raw_serial().into(),
        })
    }

    /// Encodes it in DER, as in requests and as the runtime API identifies responses.
    pub fn to_der(&self) -> Vec<u8> {
        let octets = |bytes: &[u8]| [&[4, bytes.len() as u8], bytes].concat();
        let serial = [&[2, self.serial.len().min(127) as u8], &*self.serial].concat();
        let body = [SHA1, &octets(&self.issuer_name), &octets(&self.issuer_key), &serial].concat();
        [&[0x30, body.len().min(127) as u8], &body[..]].concat()
    }
}

/// The status of a certificate in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Good,
    /// Revoked: clients receive this status.
    Revoked,
}

/// A response for one certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The full response in DER.
    pub der: Vec<u8>,
    /// The certificate that it is for.
    pub id: CertId,
    /// The status of the certificate.
    pub status: Status,
    /// thisUpdate, in seconds of Unix time.
    pub this_update: i64,
    /// nextUpdate, likewise.
    pub next_update: i64,
}

/// Why a response cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OcspError {
    /// It cannot be parsed.
    Unreadable,
    /// Its response status is an error.
    NotSuccessful,
    /// Its type is not the basic one.
    NotBasic,
    /// It contains this number of single responses instead of one.
    Count(usize),
    /// It is for another certificate.
    OtherCertificate,
    /// The certificate status is `unknown`.
    Unknown,
    /// It has no nextUpdate.
    NoNextUpdate,
    /// It has expired, or is not valid yet.
    Outdated,
}

impl OcspError {
    /// Returns HAProxy's message, without a full stop.
    pub fn sentence(&self) -> String {
        match self {
            Self::Unreadable => "Unable to parse OCSP response".to_owned(),
            Self::NotSuccessful => "OCSP response status not successful".to_owned(),
            Self::NotBasic => "Failed to get basic response from OCSP Response".to_owned(),
            Self::Count(count) => {
                format!("OCSP response ignored because contains multiple single responses ({count})")
            }
            Self::OtherCertificate => {
                "OCSP single response: Certificate ID does not match certificate and issuer".to_owned()
            }
            Self::Unknown => "OCSP single response: certificate status is unknown".to_owned(),
            Self::NoNextUpdate => "OCSP single response: missing nextupdate".to_owned(),
            Self::Outdated => "OCSP single response: no longer valid.".to_owned(),
        }
    }
}

impl Answer {
    /// Parses a response, which must be for the certificate `id` and valid at `now`, in seconds of Unix time.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn read(der: &[u8], id: &CertId, now: i64) -> Result<Self, OcspError> {
        let answer = Self::parse(der)?;
        if answer.id != *id {
            return Err(OcspError::OtherCertificate);
        }
        if answer.this_update > now + SKEW || answer.next_update < now - SKEW || answer.next_update < answer.this_update
        {
            return Err(OcspError::Outdated);
        }
        Ok(answer)
    }

    /// Parses a response, for any certificate and of any validity.
    ///
    /// # Errors
    /// As for [`Answer::read`].
    pub fn parse(der: &[u8]) -> Result<Self, OcspError> {
        let (mut answer, _) = sequence(der)?;
        let status = answer.next(Class::Universal, 10)?;
        if status != [0] {
            return Err(OcspError::NotSuccessful);
        }
        let (mut bytes, _) = sequence(answer.next(Class::ContextSpecific, 0)?)?;
        if bytes.next(Class::Universal, 6)? != BASIC {
            return Err(OcspError::NotBasic);
        }
        let (mut basic, _) = sequence(bytes.next(Class::Universal, 4)?)?;
        let mut data = Parts(basic.next(Class::Universal, 16)?);
        data.skip(Class::ContextSpecific, 0)?;
        // The responder's ID, by name or by key.
        let by_name = data.skip(Class::ContextSpecific, 1)?;
        if !by_name {
            data.next(Class::ContextSpecific, 2)?;
        }
        data.next(Class::Universal, 24)?;
        let all = Parts(data.next(Class::Universal, 16)?);
        let count = all.count()?;
        if count != 1 {
            return Err(OcspError::Count(count));
        }
        let (mut single, _) = sequence(all.0)?;
        let id = Self::id(Parts(single.next(Class::Universal, 16)?))?;
        let status = single.any()?;
        let status = match (status.class(), status.tag().0) {
            (Class::ContextSpecific, 0) => Status::Good,
            (Class::ContextSpecific, 1) => Status::Revoked,
            _ => return Err(OcspError::Unknown),
        };
        let this_update = time(single.0)?;
        single.next(Class::Universal, 24)?;
        let next = single.next(Class::ContextSpecific, 0).map_err(|_| OcspError::NoNextUpdate)?;
        Ok(Self { der: der.to_vec(), id, status, this_update, next_update: time(next)? })
    }

    fn id(mut id: Parts<'_>) -> Result<CertId, OcspError> {
        let (mut algorithm, _) = sequence(id.0)?;
        let is_sha1 = algorithm.next(Class::Universal, 6)? == &SHA1[4..9];
        id.next(Class::Universal, 16)?;
        let name = id.next(Class::Universal, 4)?.try_into();
        let key = id.next(Class::Universal, 4)?.try_into();
        let serial = id.next(Class::Universal, 2)?;
        match (is_sha1, name, key) {
            (true, Ok(issuer_name), Ok(issuer_key)) if serial.len() <= 40 => {
                Ok(CertId { issuer_name, issuer_key, serial: serial.into() })
            }
            _ => Err(OcspError::OtherCertificate),
        }
    }
}

/// The remaining parts of a value.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn any(&mut self) -> Result<Any<'a>, OcspError> {
        let (rest, any) = Any::from_der(self.0).map_err(|_| OcspError::Unreadable)?;
        self.0 = rest;
        Ok(any)
    }

    /// Returns the content of the next part, which must have that tag.
    fn next(&mut self, class: Class, tag: u32) -> Result<&'a [u8], OcspError> {
        let before = self.0;
        let any = self.any()?;
        if (any.class(), any.tag()) == (class, Tag(tag)) {
            return Ok(any.data);
        }
        self.0 = before;
        Err(OcspError::Unreadable)
    }

    /// Skips a part if it has that tag. Returns whether it did.
    fn skip(&mut self, class: Class, tag: u32) -> Result<bool, OcspError> {
        let (_, any) = Any::from_der(self.0).map_err(|_| OcspError::Unreadable)?;
        let is = (any.class(), any.tag()) == (class, Tag(tag));
        if is {
            self.any()?;
        }
        Ok(is)
    }

    fn count(&self) -> Result<usize, OcspError> {
        let (mut rest, mut count) = (Parts(self.0), 0);
        while !rest.0.is_empty() {
            rest.any()?;
            count += 1;
        }
        Ok(count)
    }
}

/// Returns the parts of a sequence, and the bytes after it.
fn sequence(der: &[u8]) -> Result<(Parts<'_>, &[u8]), OcspError> {
    let mut parts = Parts(der);
    let content = parts.next(Class::Universal, 16)?;
    Ok((Parts(content), parts.0))
}

fn time(der: &[u8]) -> Result<i64, OcspError> {
    ASN1Time::from_der(der).map(|(_, time)| time.timestamp()).map_err(|_| OcspError::Unreadable)
}

/// Returns the error status of a response (RFC 6960, section 4.2.1), with OpenSSL's code and name. `None`: it is
/// successful, or cannot be parsed.
pub fn failure(der: &[u8]) -> Option<(u8, &'static str)> {
    let (mut response, _) = sequence(der).ok()?;
    let [status] = *response.next(Class::Universal, 10).ok()? else { return None };
    let name = match status {
        0 => return None,
        1 => "malformedrequest",
        2 => "internalerror",
        3 => "trylater",
        5 => "sigrequired",
        6 => "unauthorized",
        _ => "(UNKNOWN)",
    };
    Some((status, name))
}

/// Returns the URI of the OCSP responder of a certificate (RFC 5280, section 4.2.2.1). `None`: it has none.
pub fn responder(certificate: &[u8]) -> Option<String> {
    use x509_parser::extensions::{GeneralName, ParsedExtension};
    let ocsp = Oid::from(&[1, 3, 6, 1, 5, 5, 7, 48, 1]).ok()?;
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityInfoAccess(access) => {
            access.accessdescs.iter().find_map(|one| match &one.access_location {
                GeneralName::URI(uri) if one.access_method == ocsp => Some((*uri).to_owned()),
                _ => None,
            })
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[u8] = include_bytes!("../tests/ocsp/good.der");
    const REVOKED: &[u8] = include_bytes!("../tests/ocsp/revoked.der");
    const UNKNOWN: &[u8] = include_bytes!("../tests/ocsp/unknown.der");
    const ENDLESS: &[u8] = include_bytes!("../tests/ocsp/endless.der");
    const TWO: &[u8] = include_bytes!("../tests/ocsp/two.der");

    fn der(pem: &str) -> Vec<u8> {
        crate::pem::certificates(pem.as_bytes()).unwrap()[0].to_vec()
    }

    fn own_id() -> CertId {
        let leaf = der(include_str!("../tests/ocsp/leaf.pem"));
        CertId::of(&leaf, &der(include_str!("../tests/ocsp/ca.pem"))).unwrap()
    }

    #[test]
    fn answers_are_read() {
        let id = own_id();
        let good = Answer::parse(GOOD).unwrap();
        assert_eq!((&good.id, good.status), (&id, Status::Good));
        assert_eq!(good.next_update - good.this_update, 10 * 86_400);
        let now = good.this_update + 1;
        assert_eq!(Answer::read(GOOD, &id, now), Ok(good.clone()));
        assert_eq!(Answer::read(REVOKED, &id, now).map(|answer| answer.status), Ok(Status::Revoked));
        let rows = [
            (UNKNOWN, OcspError::Unknown),
            (ENDLESS, OcspError::NoNextUpdate),
            (TWO, OcspError::Count(2)),
            (b"\x30\x03\x0a\x01\x06", OcspError::NotSuccessful),
            (b"", OcspError::Unreadable),
        ];
        for (der, why) in rows {
            assert_eq!(Answer::read(der, &id, now), Err(why));
        }
        assert_eq!(Answer::read(GOOD, &id, good.next_update + 301), Err(OcspError::Outdated));
        assert_eq!(Answer::read(GOOD, &id, good.this_update - 301), Err(OcspError::Outdated));
        let other = CertId { serial: [1].into(), ..id };
        assert_eq!(Answer::read(GOOD, &other, now), Err(OcspError::OtherCertificate));
    }

    #[test]
    fn failures_are_named() {
        assert_eq!(failure(b"\x30\x03\x0a\x01\x06"), Some((6, "unauthorized")));
        assert_eq!((failure(GOOD), failure(b"")), (None, None));
    }

    #[test]
    fn cut_answers_are_refused() {
        for length in 0..GOOD.len() {
            assert!(Answer::parse(&GOOD[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn an_id_is_what_openssl_makes_of_it() {
        // From `openssl ocsp -issuer ca.pem -cert leaf.pem -reqout`: its request contains the same bytes.
        let request = include_bytes!("../tests/ocsp/request.der");
        let id = own_id().to_der();
        assert!(request.windows(id.len()).any(|window| window == id), "{:?}", own_id());
        assert_eq!(responder(&der(include_str!("../tests/ocsp/leaf.pem"))).as_deref(), Some("http://127.0.0.1:9/"));
        assert_eq!(responder(&der(include_str!("../tests/ocsp/ca.pem"))), None);
    }
}
