//! The prefix of a field section (RFC 9204, section 4.5.1). Must never read a field.

use super::dynamic::Dynamic;
use crate::fields::integer;

/// The references that a field section may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    /// The number of insertions that the section needs (Required Insert Count).
    pub(super) required: u64,
    /// The absolute index that relative ones begin below, and post-base ones at (Base).
    pub(super) base: u64,
}

impl Prefix {
    /// Reads a prefix, and advances `section`. `None`: it is truncated, or no encoder produces it.
    pub(super) fn read(section: &mut &[u8], dynamic: &Dynamic) -> Option<Self> {
        let encoded = integer::read_wide(section, 8).ok()?;
        let is_below = section.first()? & 0x80 != 0;
        let delta = integer::read_wide(section, 7).ok()?;
        let required = Self::required(encoded, dynamic.most_entries(), dynamic.inserted())?;
        let base = if is_below { required.checked_sub(delta)?.checked_sub(1)? } else { required.checked_add(delta)? };
        Some(Self { required, base })
    }

    /// Decodes the Required Insert Count (RFC 9204, section 4.5.1.1).
    fn required(encoded: u64, most_entries: u64, inserted: u64) -> Option<u64> {
        if encoded == 0 {
            return Some(0);
        }
        let range = 2 * most_entries;
        if encoded > range {
            return None;
        }
        let most = inserted + most_entries;
        let mut required = most / range * range + encoded - 1;
        if required > most {
            required = required.checked_sub(range).filter(|required| *required > 0)?;
        }
        Some(required).filter(|required| *required > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_wrap() {
        let rows = [
            // The example of the RFC: a table of 100 bytes, ten insertions.
            ([4, 3, 10], Some(9)),
            ([0, 3, 10], Some(0)),
            ([0, 0, 0], Some(0)),
            ([1, 0, 0], None),
            ([2, 6, 0], Some(1)),
            // The counts from 8 to 13 are possible; 14 would be 8 of the range before.
            ([3, 3, 10], Some(8)),
            ([1, 3, 10], Some(12)),
            ([2, 3, 10], Some(13)),
            ([6, 3, 10], Some(11)),
            // Above twice the number of entries.
            ([7, 3, 10], None),
            // It would be zero, or below zero.
            ([1, 3, 0], None),
            ([5, 3, 0], None),
            ([6, 3, 0], None),
            ([4, 3, 0], Some(3)),
        ];
        for ([encoded, most, inserted], expected) in rows {
            assert_eq!(Prefix::required(encoded, most, inserted), expected, "{encoded} {most} {inserted}");
        }
    }

    proptest! {
        /// Any count that an encoder may use comes back, whatever part of the insertions was received.
        #[test]
        fn counts_come_back(most in 1_u64..1000, inserted in 0_u64..1 << 40, ahead in 0_u64..1000, back in 0_u64..1000) {
            let required = (inserted + ahead.min(most)).saturating_sub(back.min(most - 1));
            let encoded = if required == 0 { 0 } else { required % (2 * most) + 1 };
            prop_assert_eq!(Prefix::required(encoded, most, inserted), Some(required));
        }
    }
}
