//! Length-limited Huffman codes (RFC 1951, section 3.2.2): lengths from frequencies, and codewords from lengths. Must
//! never know the meaning of a symbol.

/// Maximum number of symbols of an alphabet.
const MOST: usize = 288;
/// Frequencies from this value on are sorted by comparison.
const LARGE: usize = 255;

/// Number of bits of the symbol in an entry.
const SYMBOL_BITS: u32 = 9;
const SYMBOL: u32 = (1 << SYMBOL_BITS) - 1;

/// Returns the lengths of an optimal code of at most `longest` bits; nearly optimal if the limit applies. Unused
/// symbols have length 0. There are always at least two codewords, so that every decoder accepts the code as complete.
pub(crate) fn lengths<const N: usize>(frequencies: &[u32; N], longest: usize) -> [u8; N] {
    const { assert!(N <= MOST) };
    let mut lengths = [0; N];
    let mut entries = [0_u32; MOST];
    let used = sort(frequencies, &mut entries);
    if used < 2 {
        // The used one, if any, and another one.
        let symbol = if used == 1 { (entries[0] & SYMBOL) as usize } else { 0 };
        lengths[symbol] = 1;
        lengths[usize::from(symbol == 0)] = 1;
        return lengths;
    }
    let entries = &mut entries[..used];
    let mut symbols = [0_u16; MOST];
    for (symbol, entry) in symbols.iter_mut().zip(entries.iter()) {
        *symbol = (entry & SYMBOL) as u16;
    }
    let mut counts = count_lengths(entries, longest);
    // The rarest symbols get the longest codewords.
    let mut length = longest;
    for symbol in &symbols[..used] {
        while counts[length] == 0 {
            length -= 1;
        }
        counts[length] -= 1;
        lengths[usize::from(*symbol)] = length as u8;
    }
    lengths
}

/// Sorts the used symbols by frequency: an entry contains the frequency above the symbol. Returns their number.
fn sort(frequencies: &[u32], entries: &mut [u32; MOST]) -> usize {
    let mut starts = [0_u16; LARGE + 1];
    for frequency in frequencies {
        starts[(*frequency as usize).min(LARGE)] += 1;
    }
    starts[0] = 0;
    let mut sum = 0;
    for start in &mut starts {
        sum += std::mem::replace(start, sum);
    }
    let large = usize::from(starts[LARGE]);
    for (symbol, frequency) in frequencies.iter().enumerate().filter(|(_, frequency)| **frequency > 0) {
        let start = &mut starts[(*frequency as usize).min(LARGE)];
        entries[usize::from(*start)] = frequency << SYMBOL_BITS | symbol as u32;
        *start += 1;
    }
    entries[large..usize::from(sum)].sort_unstable();
    usize::from(sum)
}

/// Returns the number of codewords of each length: the tree is built in place of the sorted entries (Moffat and
/// Katajainen).
fn count_lengths(nodes: &mut [u32], longest: usize) -> [u16; 16] {
    let used = nodes.len();
    for node in nodes.iter_mut() {
        *node >>= SYMBOL_BITS;
    }
    // Weights of leaves from `leaf` on, of inner nodes from `inner` to `next`; parents before that.
    let (mut leaf, mut inner) = (0, 0);
    for next in 0..used - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            if leaf < used && (inner >= next || nodes[leaf] <= nodes[inner]) {
                weight += nodes[leaf];
                leaf += 1;
            } else {
                weight += nodes[inner];
                nodes[inner] = next as u32;
                inner += 1;
            }
        }
        nodes[next] = weight;
    }
    // Depths of inner nodes from the root on. Each uses a codeword and provides two that are longer by one.
    let mut counts = [0; 16];
    counts[1] = 2;
    nodes[used - 2] = 0;
    for node in (0..used - 2).rev() {
        let depth = nodes[nodes[node] as usize] + 1;
        nodes[node] = depth;
        let mut depth = depth as usize;
        if depth >= longest {
            depth = longest - 1;
            while counts[depth] == 0 {
                depth -= 1;
            }
        }
        counts[depth] -= 1;
        counts[depth + 1] += 2;
    }
    counts
}

/// Returns the codewords for lengths, first bit lowest, as in the format.
pub(crate) fn codewords<const N: usize>(lengths: &[u8; N]) -> [u16; N] {
    let mut counts = [0_u16; 16];
    for length in lengths {
        counts[usize::from(*length & 15)] += 1;
    }
    counts[0] = 0;
    let mut next = [0_u16; 16];
    for length in 1..16 {
        next[length] = (next[length - 1] + counts[length - 1]) << 1;
    }
    lengths.map(|length| {
        let next = &mut next[usize::from(length & 15)];
        let codeword = *next;
        *next = next.wrapping_add(1);
        if length == 0 { 0 } else { codeword.reverse_bits() >> (16 - length) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The Kraft sum: 2 to the power of minus the lengths, in units of 2^-15.
    fn kraft(lengths: &[u8]) -> u32 {
        lengths.iter().filter(|length| **length > 0).map(|length| 1 << (15 - length)).sum()
    }

    /// Returns the number of bits of an optimal code without a limit.
    fn optimum(frequencies: &[u32]) -> u64 {
        let mut weights: Vec<u64> = frequencies.iter().filter(|one| **one > 0).map(|one| u64::from(*one)).collect();
        let mut bits = 0;
        while weights.len() > 1 {
            weights.sort_unstable_by(|one, other| other.cmp(one));
            let sum = weights.pop().unwrap() + weights.pop().unwrap();
            bits += sum;
            weights.push(sum);
        }
        bits
    }

    fn bits(frequencies: &[u32], lengths: &[u8]) -> u64 {
        frequencies.iter().zip(lengths).map(|(one, length)| u64::from(*one) * u64::from(*length)).sum()
    }

    #[test]
    fn codes_of_few_symbols_are_complete() {
        for used in 0..4 {
            let mut frequencies = [0; 19];
            frequencies[19 - used..].fill(7);
            let lengths = lengths(&frequencies, 7);
            assert_eq!(kraft(&lengths), 1 << 15, "{used}");
        }
    }

    #[test]
    fn fibonacci_frequencies_stay_below_the_bound() {
        let mut frequencies = [0; 30];
        let (mut one, mut two) = (1, 1);
        for frequency in &mut frequencies {
            *frequency = one;
            (one, two) = (two, one + two);
        }
        for longest in 5..=15 {
            let lengths = lengths(&frequencies, longest);
            assert_eq!(kraft(&lengths), 1 << 15, "{longest}");
            assert!(lengths.iter().all(|length| (1..=longest).contains(&usize::from(*length))), "{longest}");
        }
    }

    proptest! {
        #[test]
        fn codes_are_complete_and_optimal(list in proptest::collection::vec(prop_oneof![0..4_u32, 0..400_u32, 0..20_000_u32], 286)) {
            let frequencies: [u32; 286] = list.try_into().unwrap();
            let free = lengths(&frequencies, 15);
            prop_assert_eq!(kraft(&free), 1 << 15);
            if frequencies.iter().filter(|one| **one > 0).count() > 1 && free.iter().all(|length| *length < 15) {
                prop_assert_eq!(bits(&frequencies, &free), optimum(&frequencies));
            }
            let bound = lengths(&frequencies, 10);
            prop_assert_eq!(kraft(&bound), 1 << 15);
            prop_assert!(frequencies.iter().zip(&bound).all(|(one, length)| *one == 0 || (1..=10).contains(length)));
            let mut seen = std::collections::HashSet::new();
            for (length, codeword) in bound.iter().zip(codewords(&bound)).filter(|(length, _)| **length > 0) {
                prop_assert!(u32::from(codeword) < 1 << length);
                prop_assert!(seen.insert((*length, codeword)));
            }
        }
    }
}
