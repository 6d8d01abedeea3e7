//! The symbols of lengths and distances (RFC 1951, section 3.2.5), as tables computed at compile time. Must never hold
//! state.

/// The minimum and the maximum match length of the format.
pub(crate) const SHORTEST: usize = 3;
pub(crate) const LONGEST: usize = 258;

/// The end-of-block symbol.
pub(crate) const END: usize = 256;

/// Number of symbols of literals and lengths, and of distances.
pub(crate) const LITERALS: usize = 286;
pub(crate) const DISTANCES: usize = 30;

/// Number of extra bits of the length symbols, from 257 on.
const LENGTH_EXTRA: [u8; 29] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// Base lengths of the symbols, minus 3.
const LENGTH_BASE: [u8; 29] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 255];

/// Length symbol minus 257, by length minus 3.
pub(crate) const LENGTH_SLOT: [u8; 256] = length_slots();

/// Distance symbol, by distance minus 1: values below 256 at their own index, others at 256 plus a 128th of them.
const DISTANCE_SLOT: [u8; 512] = distance_slots();

const fn length_slots() -> [u8; 256] {
    let mut slots = [0; 256];
    let (mut slot, mut length) = (0, 0);
    while length < 256 {
        if slot + 1 < LENGTH_BASE.len() && length >= LENGTH_BASE[slot + 1] as usize {
            slot += 1;
        }
        slots[length] = slot as u8;
        length += 1;
    }
    slots
}

const fn distance_slots() -> [u8; 512] {
    let mut slots = [0; 512];
    let mut place = 0;
    while place < 512 {
        let distance = if place < 256 { place } else { (place - 256) << 7 };
        slots[place] = slot_of(distance as u32) as u8;
        place += 1;
    }
    slots
}

/// Returns the symbol of a distance minus 1.
const fn slot_of(distance: u32) -> u32 {
    if distance < 2 {
        return distance;
    }
    let log = 31 - distance.leading_zeros();
    2 * log + (distance >> (log - 1) & 1)
}

/// Returns the symbol of a distance minus 1, which is below 32768.
#[inline(always)]
pub(crate) fn distance_slot(distance: usize) -> usize {
    let place = if distance < 256 { distance } else { 256 + (distance >> 7) };
    usize::from(DISTANCE_SLOT[place & 511])
}

/// Returns the number of extra bits of a length symbol minus 257.
pub(crate) const fn length_extra(slot: usize) -> u32 {
    LENGTH_EXTRA[slot] as u32
}

/// Returns the base length, minus 3, of a symbol minus 257.
pub(crate) const fn length_base(slot: usize) -> u32 {
    LENGTH_BASE[slot] as u32
}

/// Returns the number of extra bits of a distance symbol.
pub(crate) const fn distance_extra(slot: usize) -> u32 {
    if slot < 4 { 0 } else { slot as u32 / 2 - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_distance_has_the_symbol_of_its_range() {
        for length in 0..256_u32 {
            let slot = usize::from(LENGTH_SLOT[length as usize]);
            assert!(length_base(slot) <= length && (length - length_base(slot)) >> length_extra(slot) == 0, "{length}");
        }
        let (mut base, mut slot) = (0_usize, 0);
        for distance in 0..32_768 {
            if distance == base + (1 << distance_extra(slot)) {
                (base, slot) = (distance, slot + 1);
            }
            assert_eq!(distance_slot(distance), slot, "{distance}");
        }
        assert_eq!(slot, DISTANCES - 1);
    }
}
