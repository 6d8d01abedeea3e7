//! Certificate revocation lists (RFC 5280, section 5): which certificates one covers, and which of them it revokes. Must never judge a
//! certificate.

use std::collections::HashMap;
use std::sync::OnceLock;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::CertificateRevocationListDer;
use x509_parser::extensions::{DistributionPointName, GeneralName, IssuingDistributionPoint, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::x509::ReasonCode;

use super::link::{Authority, Link, canonical};
use super::signed_data::{is_signed, is_signed_over_sha1, signed};

const DELTA: &str = "2.5.29.27";
/// OIDs of supported extensions of lists, critical or not: authority key identifier, CRL number, issuing distribution
/// point, freshest CRL.
const UNDERSTOOD: [&str; 4] = ["2.5.29.35", "2.5.29.20", "2.5.29.28", "2.5.29.46"];

/// The certificates that a list covers.
#[derive(Debug, Clone, Default)]
struct Scope {
    users: bool,
    authorities: bool,
    attributes: bool,
    /// Names of its distribution point; `None`: any.
    points: Option<Vec<Vec<u8>>>,
}

/// A parsed revocation list.
#[derive(Debug)]
pub(super) struct List {
    der: CertificateRevocationListDer<'static>,
    pub issuer: Vec<u8>,
    pub(super) begin: i64,
    pub(super) end: Option<i64>,
    /// Serial numbers; true: revoked, false: removed from a previous list (removeFromCRL).
    revoked: HashMap<Box<[u8]>, bool>,
    pub(super) has_unknown_critical: bool,
    scope: Scope,
    /// The authority key identifiers in its extensions.
    keys: Vec<Authority>,
    /// The key that verified its signature, cached since lists may be large.
    verified: OnceLock<Box<[u8]>>,
}

/// How well a list matches a certificate: fields in order of importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListMatch {
    is_understood: bool,
    pub(super) is_in_scope: bool,
    is_current: bool,
    begin: i64,
}

impl List {
    /// Parses a list. `None`: it cannot be used alone, or at all.
    pub(super) fn read(der: &CertificateRevocationListDer<'static>) -> Option<Self> {
        let (_, parsed) = CertificateRevocationList::from_der(der).ok()?;
        let mut has_unknown_critical = false;
        let mut scope = Scope::default();
        for extension in parsed.extensions() {
            let number = extension.oid.to_id_string();
            has_unknown_critical |= extension.critical && !UNDERSTOOD.contains(&&*number);
            match extension.parsed_extension() {
                // A delta CRL is not usable alone.
                _ if number == DELTA => return None,
                ParsedExtension::IssuingDistributionPoint(point) => scope = Scope::of(point)?,
                ParsedExtension::ParseError { .. } => return None,
                _ => {}
            }
        }
        let mut revoked = HashMap::new();
        for one in parsed.iter_revoked_certificates() {
            has_unknown_critical |= one
                .extensions()
                .iter()
                .any(|extension| extension.critical && extension.oid.to_id_string() != "2.5.29.21");
            let is_revoked = !one.reason_code().is_some_and(|(_, reason)| reason == ReasonCode::RemoveFromCRL);
            revoked.insert(significant(one.raw_serial()).into(), is_revoked);
        }
        Some(Self {
            issuer: canonical(parsed.issuer().as_raw())?,
            begin: parsed.last_update().timestamp(),
            end: parsed.next_update().map(|end| end.timestamp()),
            revoked,
            has_unknown_critical,
            scope,
            keys: parsed.extensions().iter().filter_map(|one| Authority::of(one.parsed_extension())).collect(),
            verified: OnceLock::new(),
            der: der.clone(),
        })
    }

    /// Whether the authority key identifiers in the list's extensions, if any, match the issuer.
    pub(super) fn names_key_of(&self, issuer: &Link<'_>) -> bool {
        self.keys.iter().all(|key| key.fits(issuer))
    }

    pub(super) fn is_signed_by(&self, key: &[u8], algorithms: &WebPkiSupportedAlgorithms) -> bool {
        if self.verified.get().is_some_and(|known| **known == *key) {
            return true;
        }
        let is_signed = signed(&self.der)
            .is_some_and(|signed| is_signed(&signed, key, algorithms) || is_signed_over_sha1(&signed, key));
        if is_signed {
            // If another key made the same signature, it is verified each time.
            let _ = self.verified.set(key.into());
        }
        is_signed
    }

    /// Returns how well it matches a certificate.
    pub(super) fn fit(&self, certificate: &Link<'_>, now: i64) -> ListMatch {
        ListMatch {
            is_understood: !self.has_unknown_critical,
            is_in_scope: self.scope.has(certificate, &self.issuer),
            is_current: now >= self.begin && self.end.is_none_or(|end| now < end),
            begin: self.begin,
        }
    }

    /// Whether it revokes a serial number.
    pub(super) fn revokes(&self, serial: &[u8]) -> bool {
        self.revoked.get(significant(serial)) == Some(&true)
    }
}

/// Removes leading zeros of a serial number.
fn significant(serial: &[u8]) -> &[u8] {
    let zeros = serial.iter().take_while(|byte| **byte == 0).count();
    &serial[zeros..]
}

/// Returns the comparable names of a distribution point.
fn names(point: &DistributionPointName<'_>) -> Vec<Vec<u8>> {
    let DistributionPointName::FullName(names) = point else { return Vec::new() };
    let comparable = names.iter().filter_map(|name| match name {
        GeneralName::URI(uri) => Some([b"U", uri.as_bytes()].concat()),
        GeneralName::DirectoryName(name) => Some([b"D", &canonical(name.as_raw())?[..]].concat()),
        _ => None,
    });
    comparable.collect()
}

impl Scope {
    /// `None`: lists for some reasons only, and indirect lists, are not supported.
    fn of(point: &IssuingDistributionPoint<'_>) -> Option<Self> {
        let kinds = [point.only_contains_user_certs, point.only_contains_ca_certs, point.only_contains_attribute_certs];
        let is_one = kinds.iter().filter(|kind| **kind).count() <= 1;
        let [users, authorities, attributes] = kinds;
        let is_plain = point.only_some_reasons.is_none() && !point.indirect_crl && is_one;
        let points = point.distribution_point.as_ref().map(names);
        is_plain.then_some(Self { users, authorities, attributes, points })
    }

    fn has(&self, certificate: &Link<'_>, issuer: &[u8]) -> bool {
        let is_authority = certificate.is_marked_authority();
        if self.attributes || (self.users && is_authority) || (self.authorities && !is_authority) {
            return false;
        }
        let Some(own) = &self.points else { return true };
        let points = certificate.parsed.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::CRLDistributionPoints(points) => Some(&points.points),
            _ => None,
        });
        points.into_iter().flatten().any(|point| {
            let is_of_issuer = point.crl_issuer.as_ref().is_none_or(|names| {
                names.iter().any(|name| {
                    matches!(name, GeneralName::DirectoryName(name) if canonical(name.as_raw()).is_some_and(|name| name == issuer))
                })
            });
            let is_point = point.distribution_point.as_ref().is_none_or(|point| {
                names(point).iter().any(|name| own.contains(name))
            });
            is_of_issuer && is_point && point.reasons.is_none()
        })
    }
}
