//! The symbols of lengths and distances (RFC 1951, section 3.2.5), as tables that are computed at compile time. Must never hold
//! state.

/// The shortest and the longest match of the format.
pub(crate) const SHORTEST: usize = 3;
pub(crate) const LONGEST: usize = 258;

/// The symbol that ends a block.
pub(crate) const END: usize = 256;

/// Symbols of literals and lengths, and of distances.
pub(crate) const LITERALS: usize = 286;
pub(crate) const DISTANCES: usize = 30;

/// Extra bits of the length symbols, from 257 on.
const LENGTH_EXTRA: [u8; 29] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

/// The lengths that the symbols begin with, less 3.
const LENGTH_BASE: [u8; 29] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 255];

/// The symbol of a length less 3, less 257.
pub(crate) const LENGTH_SLOT: [u8; 256] = length_slots();

/// The symbol of a distance less 1: of those below 256 at their own place, of the others at 256 plus a 128th of them.
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

/// The symbol of a distance less 1.
const fn slot_of(distance: u32) -> u32 {
    if distance < 2 {
        return distance;
    }
    let log = 31 - distance.leading_zeros();
    2 * log + (distance >> (log - 1) & 1)
}

/// The symbol of a distance less 1, which is below 32768.
#[inline(always)]
pub(crate) fn distance_slot(distance: usize) -> usize {
    let place = if distance < 256 { distance } else { 256 + (distance >> 7) };
    usize::from(DISTANCE_SLOT[place & 511])
}

/// Extra bits of a length symbol less 257.
pub(crate) const fn length_extra(slot: usize) -> u32 {
    LENGTH_EXTRA[slot] as u32
}

/// The first length of a symbol less 257, less 3.
pub(crate) const fn length_base(slot: usize) -> u32 {
    LENGTH_BASE[slot] as u32
}

/// Extra bits of a distance symbol.
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
