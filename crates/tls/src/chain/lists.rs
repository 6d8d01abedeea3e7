//! Certificate revocation lists (RFC 5280, sections 5 and 6.3): selects the one that covers a certificate, and
//! evaluates it. Must never report a certificate as good because no list covers it.

use std::collections::HashMap;
use std::sync::OnceLock;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::CertificateRevocationListDer;
use x509_parser::extensions::{DistributionPointName, GeneralName, IssuingDistributionPoint, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::x509::ReasonCode;

use super::link::{Authority, Link, canonical};
use super::signed::{is_signed, is_signed_over_sha1, signed};
use super::{Notes, Walk, code};
use crate::faults::Fault;

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
    begin: i64,
    end: Option<i64>,
    /// Serial numbers; true: revoked, false: removed from a previous list (removeFromCRL).
    revoked: HashMap<Box<[u8]>, bool>,
    has_unknown_critical: bool,
    scope: Scope,
    /// The authority key identifiers in its extensions.
    keys: Vec<Authority>,
    /// The key that verified its signature, cached since lists may be large.
    verified: OnceLock<Box<[u8]>>,
}

/// How well a list matches a certificate: fields in order of importance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    is_understood: bool,
    is_in_scope: bool,
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
    fn names_key_of(&self, issuer: &Link<'_>) -> bool {
        self.keys.iter().all(|key| key.fits(issuer))
    }

    fn is_signed_by(&self, key: &[u8], algorithms: &WebPkiSupportedAlgorithms) -> bool {
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

    fn fit(&self, certificate: &Link<'_>, now: i64) -> Fit {
        Fit {
            is_understood: !self.has_unknown_critical,
            is_in_scope: self.scope.has(certificate, &self.issuer),
            is_current: now >= self.begin && self.end.is_none_or(|end| now < end),
            begin: self.begin,
        }
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

impl Walk<'_> {
    /// Checks the certificates of a chain against the lists and records the errors: each needs a list, the root as
    /// well.
    pub(super) fn check_lists(&self, chain: &[Link<'_>], notes: &mut Notes<'_>) -> Result<(), Fault> {
        if !self.store.checks_lists {
            return Ok(());
        }
        for (depth, certificate) in chain.iter().enumerate() {
            let following = chain.get(depth + 1..).unwrap_or_default();
            self.check_list(certificate, following, depth, notes)?;
        }
        Ok(())
    }

    fn check_list(
        &self,
        certificate: &Link<'_>,
        following: &[Link<'_>],
        depth: usize,
        notes: &mut Notes<'_>,
    ) -> Result<(), Fault> {
        let lists = self.store.lists.iter().filter(|list| list.issuer == certificate.issuer);
        let found = lists.filter_map(|list| {
            // The list was issued by the next certificate of the chain, or by one after it with the same name.
            let next = following.first().unwrap_or(certificate);
            let mut others = following.iter().skip(1).filter(|one| one.subject == list.issuer);
            let issuer = Some(next).into_iter().chain(&mut others).find(|issuer| list.names_key_of(issuer))?;
            Some((list.fit(certificate, self.now), list, issuer))
        });
        let Some((fit, list, issuer)) = found.max_by_key(|(fit, ..)| *fit) else {
            return notes.note(code::NO_LIST, depth);
        };
        if issuer.usage.is_some_and(|usage| !usage.crl_sign()) {
            notes.note(code::MAY_NOT_SIGN_LISTS, depth)?;
        }
        if !fit.is_in_scope {
            notes.note(code::OTHER_SCOPE, depth)?;
        }
        if self.now < list.begin {
            notes.note(code::LIST_NOT_YET_VALID, depth)?;
        }
        if list.end.is_some_and(|end| self.now >= end) {
            notes.note(code::LIST_EXPIRED, depth)?;
        }
        let key = issuer.parsed.public_key().raw;
        if !list.is_signed_by(key, self.algorithms) {
            notes.note(code::LIST_SIGNATURE, depth)?;
        }
        if list.has_unknown_critical {
            notes.note(code::LIST_CRITICAL, depth)?;
        }
        if list.revoked.get(significant(certificate.parsed.raw_serial())) == Some(&true) {
            notes.note(code::REVOKED, depth)?;
        }
        Ok(())
    }
}
