//! The weighted map shared by `static-rr` and the hashing algorithms: the number of entries is the sum of the weights,
//! each refers to a server, and they are spread as evenly as possible, in HAProxy's order. It is never written after it
//! was built, so that workers can share its cache lines.

use super::{Candidate, Loads};

#[derive(Debug, Default)]
pub(super) struct Map {
    entries: Vec<u32>,
}

impl Map {
    pub(super) fn new(candidates: &[Candidate]) -> Self {
        Self { entries: spread(candidates) }
    }

    /// Returns the server for a hash, even if it is full. No server is avoided: as in HAProxy, a redispatch selects the
    /// same one again, since the map determines the server of a key.
    pub(super) fn at_hash(&self, hash: u32) -> Option<usize> {
        (hash as usize).checked_rem(self.entries.len()).map(|start| self.server_at(start))
    }

    /// Returns the server of the next entry from `cursor` on with a free slot, other than `avoid` if there is another.
    /// Advances the cursor past it.
    pub(super) fn next_open(&self, cursor: &mut usize, avoid: Option<usize>, loads: &Loads) -> Option<usize> {
        let mut found = None;
        for step in 0..self.entries.len() {
            let server = self.server_at(*cursor + step);
            if loads[server].has_slot() {
                found = Some((server, step));
                if avoid != Some(server) {
                    break;
                }
            }
        }
        let (server, step) = found?;
        *cursor = (*cursor + step + 1) % self.entries.len();
        Some(server)
    }

    fn server_at(&self, position: usize) -> usize {
        self.entries[position % self.entries.len()] as usize
    }
}

/// Builds the map. Every server earns its weight for each entry and pays the sum of all for one that it gets; the first
/// of those that have earned the most whole entries gets it.
fn spread(candidates: &[Candidate]) -> Vec<u32> {
    let divisor = candidates.iter().fold(0, |divisor, candidate| gcd(divisor, candidate.weight)).max(1);
    let weights: Vec<i64> = candidates.iter().map(|candidate| i64::from(candidate.weight / divisor)).collect();
    let total: i64 = weights.iter().sum();
    let mut credits = vec![0_i64; weights.len()];
    let mut entries = Vec::with_capacity(total as usize);
    for _ in 0..total {
        let mut best: Option<(i64, usize)> = None;
        for (index, credit) in credits.iter_mut().enumerate() {
            *credit += weights[index];
            let earned = (*credit + total) / total;
            if best.is_none_or(|(most, _)| earned > most) {
                best = Some((earned, index));
            }
        }
        if let Some((_, index)) = best {
            credits[index] -= total;
            entries.push(candidates[index].server as u32);
        }
    }
    entries
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
