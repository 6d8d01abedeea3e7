//! Selects the revocation list that covers a certificate, and evaluates it (RFC 5280, section 6.3). Must never report a certificate as good
//! because no list covers it.

use super::link::Link;
use super::{Notes, Walk, code};
use crate::faults::Fault;

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
        if list.revokes(certificate.parsed.raw_serial()) {
            notes.note(code::REVOKED, depth)?;
        }
        Ok(())
    }
}
