//! UPDATE messages that a router sends: checked for their form and counted (RFC 4271, section 6.3; RFC 7606). Must never keep a
//! route.

use super::announcement::{MP_REACH, MP_UNREACH};
use super::prefix::{self, Family};
use super::{ErrorCode, Notification};

/// The content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateContent {
    /// Number of routes that are announced.
    pub announced: usize,
    /// Number of routes that are withdrawn.
    pub withdrawn: usize,
    /// Its attributes are malformed in a way for which RFC 7606 does not end the session.
    pub is_faulty: bool,
}

impl UpdateContent {
    /// Parses the body of a message. Routes of unknown families count as none.
    ///
    /// # Errors
    /// The message with which the session has to end.
    pub fn parse(body: &[u8]) -> Result<Self, Notification> {
        let malformed = || Notification::from(ErrorCode::MALFORMED_ATTRIBUTES);
        let (withdrawn, rest) = sized(body).ok_or_else(malformed)?;
        let (attributes, announced) = sized(rest).ok_or_else(malformed)?;
        let count = |field| prefix::count(field, Family::Ipv4).ok_or(ErrorCode::INVALID_NETWORK);
        let mut content = Self { announced: count(announced)?, withdrawn: count(withdrawn)?, is_faulty: false };
        content.read_attributes(attributes)?;
        Ok(content)
    }

    fn read_attributes(&mut self, mut rest: &[u8]) -> Result<(), Notification> {
        let (mut reaches, mut unreaches) = (0, 0);
        while let Some((kind, value, after)) = attribute(rest) {
            let routes = match kind {
                MP_REACH => {
                    reaches += 1;
                    &mut self.announced
                }
                MP_UNREACH => {
                    unreaches += 1;
                    &mut self.withdrawn
                }
                _ => {
                    rest = after;
                    continue;
                }
            };
            let field = if kind == MP_REACH { reached(value) } else { unreached(value) };
            *routes += field.ok_or(ErrorCode::OPTIONAL_ATTRIBUTE)?;
            rest = after;
        }
        if reaches > 1 || unreaches > 1 {
            return Err(ErrorCode::MALFORMED_ATTRIBUTES.into());
        }
        // RFC 7606, section 4: routes with malformed attributes count as withdrawn.
        self.is_faulty = !rest.is_empty();
        Ok(())
    }
}

/// Splits a field from the rest, after its length in two octets.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}

/// Returns the type and the value of the first attribute, and what follows; `None` if it is malformed or missing.
fn attribute(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    const EXTENDED_LENGTH: u8 = 0x10;
    let (&[flags, kind], rest) = bytes.split_first_chunk::<2>()?;
    let (value, after) = if flags & EXTENDED_LENGTH == 0 {
        let (length, rest) = rest.split_first()?;
        rest.split_at_checked(usize::from(*length))?
    } else {
        sized(rest)?
    };
    Some((kind, value, after))
}

/// Returns the number of routes in `MP_REACH_NLRI`; `None` if it is malformed.
fn reached(value: &[u8]) -> Option<usize> {
    let (&[high, low, safi, length], rest) = value.split_first_chunk::<4>()?;
    // One reserved octet follows the next hop.
    let routes = rest.get(usize::from(length) + 1..)?;
    counted(u16::from_be_bytes([high, low]), safi, routes)
}

/// Returns the number of routes in `MP_UNREACH_NLRI`; `None` if it is malformed.
fn unreached(value: &[u8]) -> Option<usize> {
    let (&[high, low, safi], routes) = value.split_first_chunk::<3>()?;
    counted(u16::from_be_bytes([high, low]), safi, routes)
}

fn counted(afi: u16, safi: u8, routes: &[u8]) -> Option<usize> {
    match Family::of(afi, safi) {
        Some(family) => prefix::count(routes, family),
        None => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_or_refused() {
        let good = |announced, withdrawn, is_faulty| Ok(UpdateContent { announced, withdrawn, is_faulty });
        let bad = |subcode| Err(Notification::from(ErrorCode { code: 3, subcode }));
        let reach = [0x80, 14, 8, 0, 2, 1, 0, 0, 8, 0x20, 0];
        let twice = [&[0, 0, 0, 22][..], &reach, &reach].concat();
        let rows: [(&[u8], Result<UpdateContent, Notification>); 18] = [
            (&[0, 0, 0, 0], good(0, 0, false)),
            (&[0, 2, 8, 10, 0, 0], good(0, 1, false)),
            (&[0, 0, 0, 4, 0x40, 1, 1, 0, 8, 10, 0], good(2, 0, false)),
            (&[0, 0, 0, 11, 0x80, 14, 8, 0, 2, 1, 0, 0, 8, 0x20, 0], good(2, 0, false)),
            (&[0, 0, 0, 7, 0x90, 15, 0, 3, 0, 2, 1], good(0, 0, false)),
            (&[0, 0, 0, 8, 0x80, 15, 5, 0, 25, 70, 99, 99], good(0, 0, false)),
            (&[0, 0, 0, 3, 0x40, 1, 9], good(0, 0, true)),
            (&[0, 0, 0, 1, 0x40, 8, 10], good(1, 0, true)),
            (&[0, 0, 0, 3, 0x50, 1, 0], good(0, 0, true)),
            (&[0, 9, 0, 0], bad(1)),
            (&[0, 0, 0, 9], bad(1)),
            (&[0, 0, 0], bad(1)),
            (&[0, 0, 0, 0, 33, 1, 2, 3, 4, 5], bad(10)),
            (&[0, 2, 24, 10, 0, 0], bad(10)),
            (&[0, 0, 0, 5, 0x80, 14, 2, 0, 2], bad(9)),
            (&[0, 0, 0, 8, 0x80, 14, 5, 0, 2, 1, 9, 0], bad(9)),
            (&[0, 0, 0, 7, 0x80, 15, 4, 0, 2, 1, 129], bad(9)),
            (&twice, bad(1)),
        ];
        for (body, expected) in rows {
            assert_eq!(UpdateContent::parse(body), expected, "{body:?}");
        }
    }
}
