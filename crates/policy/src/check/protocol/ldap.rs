//! LDAP: an anonymous bind and its result (RFC 4511, sections 4.1.9 and 4.2). Must never send another request.

use super::Judgement;

/// The bind request: message 1, version 3, no name, no password.
pub(super) const BIND: [u8; 14] = [0x30, 0x0c, 0x02, 0x01, 0x01, 0x60, 0x07, 0x02, 0x01, 0x03, 0x04, 0x00, 0x80, 0x00];

/// A response that is incomplete or invalid.
enum LdapError {
    Short,
    Wrong,
}

/// A parser of BER elements.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, LdapError> {
        let (first, rest) = self.0.split_first().ok_or(LdapError::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    fn expect(&mut self, wanted: &[u8]) -> Result<(), LdapError> {
        wanted.iter().try_for_each(|wanted| match self.byte()? {
            found if found == *wanted => Ok(()),
            _ => Err(LdapError::Wrong),
        })
    }

    /// Skips a BER length: one byte, or the number of bytes that it states.
    fn skip_length(&mut self) -> Result<(), LdapError> {
        match self.byte()? {
            0..=0x7f => Ok(()),
            long @ 0x81..=0x84 => (0..long & 0x7f).try_for_each(|_| self.byte().map(|_| ())),
            _ => Err(LdapError::Wrong),
        }
    }

    fn result(&mut self) -> Result<u8, LdapError> {
        self.expect(&[0x30])?;
        self.skip_length()?;
        self.expect(&[0x02, 0x01, 0x01, 0x61])?;
        self.skip_length()?;
        self.expect(&[0x0a, 0x01])?;
        self.byte()
    }
}

/// Evaluates the result of the bind.
pub(super) fn judge(received: &[u8], complete: bool) -> Judgement {
    match Reader(received).result() {
        Ok(0) => Judgement::passed("Success"),
        Ok(code) => Judgement::wrong(code.into(), "See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9"),
        Err(LdapError::Short) if !complete => Judgement::Wait,
        Err(_) => Judgement::invalid("Not LDAPv3 protocol"),
    }
}
