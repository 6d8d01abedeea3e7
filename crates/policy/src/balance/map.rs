//! The weighted map that `static-rr` and the hashing algorithms share: as many entries as the sum of the weights, each
//! naming a server, spread as evenly as whole entries allow and in HAProxy's order.

use super::{Candidate, Load};

/// The map, with the servers that have no free slot.
#[derive(Debug, Default)]
pub(super) struct Map {
    entries: Vec<u32>,
    /// By server: whether it has a free slot; `None` if it does not take part.
    open: Vec<Option<bool>>,
    open_count: usize,
}

impl Map {
    pub(super) fn new(candidates: &[Candidate], count: usize) -> Self {
        let mut open = super::roomy(count);
        open.resize(count, None);
        for candidate in candidates {
            open[candidate.server] = Some(true);
        }
        Self { entries: spread(candidates), open, open_count: candidates.len() }
    }

    /// Takes note of a server's load.
    pub(super) fn on_load(&mut self, server: usize, load: Load) {
        let open = load.has_slot();
        if self.open[server] == Some(!open) {
            self.open[server] = Some(open);
            self.open_count = if open { self.open_count + 1 } else { self.open_count - 1 };
        }
    }

    /// The entry for a hash, whether its server is full or not; the next other server's if that one is to be avoided.
    pub(super) fn at_hash(&self, hash: u32, avoid: Option<usize>) -> Option<usize> {
        let start = (hash as usize).checked_rem(self.entries.len())?;
        let others = (0..self.entries.len()).map(|step| self.server_at(start + step));
        let other = others.into_iter().find(|server| avoid != Some(*server));
        Some(other.unwrap_or_else(|| self.server_at(start)))
    }

    /// The next entry from `cursor` on whose server has a free slot. Moves the cursor behind it.
    pub(super) fn next_open(&self, cursor: &mut usize, avoid: Option<usize>) -> Option<usize> {
        if self.open_count == 0 {
            return None;
        }
        let is_open = |server: usize| self.open.get(server) == Some(&Some(true));
        let avoid = avoid.filter(|server| !is_open(*server) || self.open_count > 1);
        for step in 0..self.entries.len() {
            let server = self.server_at(*cursor + step);
            if is_open(server) && avoid != Some(server) {
                *cursor = (*cursor + step + 1) % self.entries.len();
                return Some(server);
            }
        }
        None
    }

    fn server_at(&self, position: usize) -> usize {
        self.entries[position % self.entries.len()] as usize
    }
}

/// Builds the map. Every server earns its weight for each entry and pays the sum of all for one that it gets; the
/// first of those that have earned the most whole entries gets it.
fn spread(candidates: &[Candidate]) -> Vec<u32> {
    let divisor = candidates.iter().fold(0, |divisor, candidate| gcd(divisor, candidate.weight)).max(1);
    let weights: Vec<i64> = candidates.iter().map(|candidate| i64::from(candidate.weight / divisor)).collect();
    let total: i64 = weights.iter().sum();
    let mut credits = vec![0_i64; weights.len()];
    let mut entries = super::roomy(total as usize);
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
