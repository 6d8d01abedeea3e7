//! Verifies chains of certificates (RFC 5280, section 6), in the order and with the error codes of OpenSSL's
//! verification (`X509_verify_cert(3)`), so that the errors ignored, reported and sent as alerts are the same. Must
//! never end a chain anywhere but at a trusted self-signed certificate.
//!
//! A chain is built by names and key identifiers, preferring trusted certificates to those that the peer has sent; only
//! one path is examined, so the work is bounded by [`LONGEST`]. Then it is verified: extensions, key sizes, revocation
//! lists, signatures and validity from the root down, name constraints.

mod constraints;
mod link;
mod lists;
mod revocation;
mod signed_data;

use std::collections::HashMap;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::faults::Fault;
use crate::trust::Authorities;
use link::{AuthorityKind, Link};
use lists::List;

pub(crate) use link::{Purpose, text};

pub(crate) use signed_data::verify_message;

/// Maximum number of certificates in a chain. OpenSSL permits 100, for each of which a peer could cause a signature
/// verification.
const LONGEST: usize = 32;

/// OpenSSL's error codes.
pub(crate) mod code {
    pub(crate) const UNSPECIFIED: u8 = 1;
    pub(crate) const NO_ISSUER: u8 = 2;
    pub(crate) const NO_LIST: u8 = 3;
    pub(crate) const SIGNATURE: u8 = 7;
    pub(crate) const LIST_SIGNATURE: u8 = 8;
    pub(crate) const NOT_YET_VALID: u8 = 9;
    pub(crate) const EXPIRED: u8 = 10;
    pub(crate) const LIST_NOT_YET_VALID: u8 = 11;
    pub(crate) const LIST_EXPIRED: u8 = 12;
    pub(crate) const SELF_SIGNED: u8 = 18;
    pub(crate) const SELF_SIGNED_IN_CHAIN: u8 = 19;
    pub(crate) const NO_ISSUER_LOCALLY: u8 = 20;
    pub(crate) const LEAF_SIGNATURE: u8 = 21;
    pub(crate) const TOO_LONG: u8 = 22;
    pub(crate) const REVOKED: u8 = 23;
    pub(crate) const PATH_LENGTH: u8 = 25;
    pub(crate) const PURPOSE: u8 = 26;
    pub(crate) const MAY_NOT_SIGN: u8 = 32;
    pub(crate) const CRITICAL: u8 = 34;
    pub(crate) const MAY_NOT_SIGN_LISTS: u8 = 35;
    pub(crate) const LIST_CRITICAL: u8 = 36;
    pub(crate) const PROXY: u8 = 40;
    pub(crate) const OTHER_SCOPE: u8 = 44;
    pub(crate) const NOT_PERMITTED: u8 = 47;
    pub(crate) const EXCLUDED: u8 = 48;
    pub(crate) const CONSTRAINT_KIND: u8 = 51;
    pub(crate) const NAME_SYNTAX: u8 = 53;
    pub(crate) const SHORT_KEY: u8 = 66;
    pub(crate) const SHORT_KEY_OF_ISSUER: u8 = 67;
    pub(crate) const WEAK_DIGEST: u8 = 68;
    pub(crate) const INVALID_CA: u8 = 79;
    pub(crate) const EXPLICIT_CURVE: u8 = 94;
}

/// Trusted certificates and revocation lists, indexed by name: built once for many chains.
#[derive(Debug)]
pub(crate) struct Store {
    certificates: Vec<CertificateDer<'static>>,
    /// Indices in `certificates` by the subject's name in canonical form.
    by_subject: HashMap<Vec<u8>, Vec<usize>>,
    lists: Vec<List>,
    /// Each certificate of a chain needs a list.
    checks_lists: bool,
}

impl Store {
    /// Collects the certificates and lists of these authorities.
    pub(crate) fn new<'a>(authorities: impl IntoIterator<Item = &'a Authorities>) -> Self {
        let mut store =
            Self { certificates: Vec::new(), by_subject: HashMap::new(), lists: Vec::new(), checks_lists: false };
        for part in authorities {
            for certificate in &part.roots {
                // An invalid certificate cannot end a chain.
                let Some(link) = Link::read(certificate) else { continue };
                store.by_subject.entry(link.subject).or_default().push(store.certificates.len());
                store.certificates.push(certificate.clone());
            }
            store.lists.extend(part.revoked.iter().filter_map(List::read));
            store.checks_lists |= !part.revoked.is_empty() || part.crl_file.is_some();
        }
        store
    }

    /// Whether there is no valid certificate.
    pub(crate) fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }

    /// Returns the best issuer of a certificate: one that is valid now, otherwise the one that expired last.
    fn issuer(&self, of: &Link<'_>, now: i64) -> Option<Link<'_>> {
        let places = self.by_subject.get(&of.issuer)?;
        let mut all: Vec<_> = places.iter().filter_map(|place| Link::read(self.certificates.get(*place)?)).collect();
        let place = best(of, &all, now)?;
        Some(all.swap_remove(place))
    }
}

/// Returns the index of the best issuer of a certificate among several.
fn best(of: &Link<'_>, candidates: &[Link<'_>], now: i64) -> Option<usize> {
    let mut issuers = candidates.iter().enumerate().filter(|(_, candidate)| of.may_be_issued_by(candidate));
    let (mut found, first) = issuers.next()?;
    let mut latest = first;
    if time_fault(first, now).is_none() {
        return Some(found);
    }
    for (place, candidate) in issuers {
        if time_fault(candidate, now).is_none() {
            return Some(place);
        }
        let end = |link: &Link<'_>| link.parsed.validity().not_after.timestamp();
        if end(candidate) > end(latest) {
            (found, latest) = (place, candidate);
        }
    }
    Some(found)
}

fn time_fault(link: &Link<'_>, now: i64) -> Option<u8> {
    let validity = link.parsed.validity();
    if validity.not_before.timestamp() > now {
        Some(code::NOT_YET_VALID)
    } else if validity.not_after.timestamp() <= now {
        Some(code::EXPIRED)
    } else {
        None
    }
}

/// The errors found and ignored so far.
pub(crate) struct Notes<'a> {
    faults: Vec<Fault>,
    is_ignored: &'a dyn Fn(Fault) -> bool,
}

impl Notes<'_> {
    /// Records an error.
    ///
    /// # Errors
    /// The error, if it is not ignored.
    fn note(&mut self, code: u8, depth: usize) -> Result<(), Fault> {
        let fault = Fault { code, depth: u8::try_from(depth).unwrap_or(u8::MAX) };
        if !(self.is_ignored)(fault) {
            return Err(fault);
        }
        self.faults.push(fault);
        Ok(())
    }
}

/// Verifies chains.
pub(crate) struct Judge<'a> {
    pub(crate) store: &'a Store,
    pub(crate) purpose: Purpose,
    pub(crate) algorithms: &'a WebPkiSupportedAlgorithms,
}

/// A chain, the number of its certificates that the peer has sent, and whether it ends at a trusted one.
struct Built<'a> {
    chain: Vec<Link<'a>>,
    sent: usize,
    is_trusted: bool,
}

/// Why a chain is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The first certificate cannot be parsed.
    Unreadable,
    /// The first error that is not ignored.
    Fault(Fault),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Judge<'_> {
    /// Returns the errors of a chain in the order in which they are found, all of them ignored; none: the chain is
    /// valid.
    ///
    /// # Errors
    /// The first error that is not ignored.
    pub(crate) fn judge(
        &self,
        first: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
        is_ignored: &dyn Fn(Fault) -> bool,
    ) -> Result<Vec<Fault>, Refusal> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let walk = Walk { store: self.store, purpose: self.purpose, algorithms: self.algorithms, now };
        let first = Link::read(first).ok_or(Refusal::Unreadable)?;
        let mut notes = Notes { faults: Vec::new(), is_ignored };
        walk.judge(first, sent, &mut notes)?;
        Ok(notes.faults)
    }
}

/// The state of one verification.
struct Walk<'a> {
    store: &'a Store,
    purpose: Purpose,
    algorithms: &'a WebPkiSupportedAlgorithms,
    now: i64,
}

impl Walk<'_> {
    fn judge(&self, first: Link<'_>, sent: &[CertificateDer<'_>], notes: &mut Notes<'_>) -> Result<(), Fault> {
        if !first.has_strong_key() {
            notes.note(code::SHORT_KEY, 0)?;
        }
        let built = self.build(first, sent);
        let last = built.chain.len() - 1;
        if !built.is_trusted {
            if built.chain.len() >= LONGEST {
                notes.note(code::TOO_LONG, last)?;
            }
            let is_self_signed = built.chain.last().is_some_and(|last| last.is_self_signed);
            let code = match (is_self_signed, last) {
                (true, 0) => code::SELF_SIGNED,
                (true, _) => code::SELF_SIGNED_IN_CHAIN,
                (false, _) if built.sent < built.chain.len() => code::NO_ISSUER,
                (false, _) => code::NO_ISSUER_LOCALLY,
            };
            notes.note(code, last)?;
        }
        self.check_extensions(&built.chain, notes)?;
        check_strength(&built.chain, notes)?;
        self.check_lists(&built.chain, notes)?;
        self.check_signatures(&built.chain, notes)?;
        constraints::check(&built.chain, notes)
    }

    fn build<'c>(&'c self, first: Link<'c>, sent: &'c [CertificateDer<'_>]) -> Built<'c> {
        let mut left: Vec<Link<'c>> = sent.iter().filter_map(|one| Link::read(one)).collect();
        let mut built = Built { chain: vec![first], sent: 1, is_trusted: false };
        while let Some(last) = built.chain.last() {
            let is_sent = built.sent == built.chain.len();
            if let Some(issuer) = self.store.issuer(last, self.now).filter(|_| built.chain.len() < LONGEST) {
                if !last.is_self_signed {
                    built.is_trusted = issuer.is_self_signed;
                    built.chain.push(issuer);
                    if built.is_trusted {
                        break;
                    }
                    continue;
                }
                // A self-signed certificate that was sent must be identical to the trusted one.
                built.is_trusted = !is_sent || last.der == issuer.der;
                if built.is_trusted {
                    built.sent = built.sent.min(built.chain.len() - 1);
                    break;
                }
            }
            if !is_sent || last.is_self_signed || built.chain.len() >= LONGEST {
                break;
            }
            let Some(place) = best(last, &left, self.now) else { break };
            let issuer = left.remove(place);
            // The same certificate again would not extend the chain.
            left.retain(|one| one.der != issuer.der);
            built.chain.push(issuer);
            built.sent += 1;
        }
        built
    }

    fn check_extensions(&self, chain: &[Link<'_>], notes: &mut Notes<'_>) -> Result<(), Fault> {
        // Number of certificates between the first one and here that are not self-issued.
        let mut between = 0;
        for (depth, link) in chain.iter().enumerate() {
            if link.has_unknown_critical {
                notes.note(code::CRITICAL, depth)?;
            }
            if link.is_proxy {
                notes.note(code::PROXY, depth)?;
            }
            let is_last = depth + 1 == chain.len();
            let kind = link.authority();
            let is_authority = kind == AuthorityKind::Marked || (is_last && kind != AuthorityKind::None);
            if depth > 0 && !is_authority {
                notes.note(code::INVALID_CA, depth)?;
            }
            if chain.len() > 1 && link.has_explicit_curve() {
                notes.note(code::EXPLICIT_CURVE, depth)?;
            }
            if !link.is_for(self.purpose, depth > 0) {
                notes.note(code::PURPOSE, depth)?;
            }
            if depth > 1 && link.path_length.is_some_and(|most| between > most) {
                notes.note(code::PATH_LENGTH, depth)?;
            }
            if depth > 0 && !link.is_self_issued {
                between += 1;
            }
        }
        Ok(())
    }

    /// Checks from the end of the chain to its first certificate: whether the issuer may sign, its signature, and the
    /// validity.
    fn check_signatures(&self, chain: &[Link<'_>], notes: &mut Notes<'_>) -> Result<(), Fault> {
        let last = chain.len() - 1;
        let has_root = chain.last().is_some_and(|end| end.may_be_issued_by(end));
        if !has_root && last == 0 {
            notes.note(code::LEAF_SIGNATURE, 0)?;
        }
        for (depth, link) in chain.iter().enumerate().rev() {
            if let Some(issuer) = chain.get(depth + 1) {
                if !issuer.may_sign() {
                    notes.note(code::MAY_NOT_SIGN, depth + 1)?;
                }
                let key = issuer.parsed.public_key().raw;
                let is_signed = link.is_consistent()
                    && signed_data::signed(link.der)
                        .is_some_and(|one| signed_data::is_signed(&one, key, self.algorithms));
                if !is_signed {
                    notes.note(code::SIGNATURE, depth)?;
                }
            }
            // The validity of an end that is not a root is only checked if it is the only certificate.
            if (depth < last || has_root || last == 0)
                && let Some(code) = time_fault(link, self.now)
            {
                notes.note(code, depth)?;
            }
        }
        Ok(())
    }
}

/// Records keys that are too short, and signatures with digests that are too weak, except that of the end.
fn check_strength(chain: &[Link<'_>], notes: &mut Notes<'_>) -> Result<(), Fault> {
    for (depth, link) in chain.iter().enumerate() {
        if depth > 0 && !link.has_strong_key() {
            notes.note(code::SHORT_KEY_OF_ISSUER, depth)?;
        }
        if depth + 1 < chain.len() && !link.has_strong_signature() {
            notes.note(code::WEAK_DIGEST, depth)?;
        }
    }
    Ok(())
}
