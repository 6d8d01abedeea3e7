//! Servers by key, smallest first. Keys are stored in the order of the servers, sixteen to a block, and with more than
//! one block the minimum of each is kept: for the few servers that a backend usually has, everything is in one or two
//! cache lines, which matters when several workers contend for them. A heap touches more lines and needs to locate its
//! entries.

/// The keys of servers; a server without a key is absent.
#[derive(Debug, Default)]
pub(super) struct Board {
    blocks: Vec<Block>,
    /// The minimum key of each block; empty with a single block.
    minima: Vec<u128>,
    count: usize,
}

const WIDTH: usize = 16;
const ABSENT: u128 = u128::MAX;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Block([u128; WIDTH]);

impl Block {
    /// Returns the smallest key of the first `count` and its index, excluding one index.
    fn smallest(&self, count: usize, without: Option<usize>) -> (u128, usize) {
        let mut best = (ABSENT, 0);
        for (place, &key) in self.0.iter().enumerate().take(count) {
            if key < best.0 && without != Some(place) {
                best = (key, place);
            }
        }
        best
    }
}

impl Board {
    /// Creates an empty board for servers 0 to `count` - 1.
    pub(super) fn new(count: usize) -> Self {
        let blocks = count.div_ceil(WIDTH);
        let mut minima = Vec::new();
        if blocks > 1 {
            minima = super::roomy(blocks);
            minima.resize(blocks, ABSENT);
        }
        Self { blocks: vec![Block([ABSENT; WIDTH]); blocks], minima, count }
    }

    /// Returns the smallest key and its server.
    pub(super) fn top(&self) -> Option<(u128, usize)> {
        self.smallest(None)
    }

    /// Returns the smallest key and its server, other than `avoid` if there is another.
    pub(super) fn top_without(&self, avoid: Option<usize>) -> Option<(u128, usize)> {
        let top = self.top()?;
        if avoid == Some(top.1) { self.smallest(avoid).or(Some(top)) } else { Some(top) }
    }

    fn smallest(&self, avoid: Option<usize>) -> Option<(u128, usize)> {
        let avoided_in = |block: usize| avoid.filter(|server| server / WIDTH == block).map(|server| server % WIDTH);
        let mut best = 0;
        if self.blocks.len() > 1 {
            let mut least = ABSENT;
            for block in 0..self.blocks.len() {
                let key = match avoided_in(block) {
                    None => self.minima[block],
                    without => self.blocks[block].smallest(WIDTH, without).0,
                };
                if key < least {
                    (least, best) = (key, block);
                }
            }
        }
        let block = self.blocks.get(best)?;
        let (key, place) = block.smallest(self.count - best * WIDTH, avoided_in(best));
        (key != ABSENT).then_some((key, best * WIDTH + place))
    }

    /// Sets the key of a server.
    pub(super) fn set(&mut self, server: usize, key: u128) {
        let (block, place) = (server / WIDTH, server % WIDTH);
        self.blocks[block].0[place] = key;
        if self.blocks.len() > 1 {
            self.minima[block] = self.blocks[block].smallest(WIDTH, None).0;
        }
    }

    /// Removes a server.
    pub(super) fn remove(&mut self, server: usize) {
        self.set(server, ABSENT);
    }

    /// Returns a server's key.
    pub(super) fn key(&self, server: usize) -> Option<u128> {
        let key = self.blocks.get(server / WIDTH)?.0[server % WIDTH];
        (key != ABSENT).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::Board;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_sorted_map_under_random_changes() {
        for count in [1, 3, 16, 17, 50] {
            let mut seed = count as u64;
            let mut draw = |bound: u64| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 33) % bound
            };
            let mut board = Board::new(count);
            let mut model = BTreeMap::new();
            for step in 0..10_000_u128 {
                let server = draw(count as u64) as usize;
                model.retain(|_, held| *held != server);
                if draw(3) == 0 {
                    board.remove(server);
                    assert_eq!(board.key(server), None);
                } else {
                    let key = u128::from(draw(50)) << 64 | step;
                    board.set(server, key);
                    model.insert(key, server);
                    assert_eq!(board.key(server), Some(key));
                }
                assert_eq!(board.top(), model.first_key_value().map(|(key, server)| (*key, *server)));
                let avoid = draw(count as u64) as usize;
                let other = model.iter().find(|entry| *entry.1 != avoid).or_else(|| model.first_key_value());
                assert_eq!(board.top_without(Some(avoid)), other.map(|(key, server)| (*key, *server)));
            }
        }
    }

    #[test]
    fn an_empty_board_has_no_top() {
        assert_eq!(Board::new(0).top(), None);
        assert_eq!(Board::default().top_without(Some(3)), None);
        assert_eq!(Board::default().key(3), None);
    }
}
