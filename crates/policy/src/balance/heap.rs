//! A binary heap of servers by key that also finds a server's entry, so that its key can change or the entry go.

/// Servers, the one with the smallest key on top.
#[derive(Debug)]
pub(super) struct Heap<K> {
    entries: Vec<(K, u32)>,
    /// Where a server's entry is; [`ABSENT`] if it has none.
    places: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: Vec::new() }
    }
}

impl<K: Ord + Copy> Heap<K> {
    /// An empty heap for servers 0 to `count` - 1.
    pub(super) fn new(count: usize) -> Self {
        let mut places = super::roomy(count);
        places.resize(count, ABSENT);
        Self { entries: super::roomy(count), places }
    }

    pub(super) fn contains(&self, server: usize) -> bool {
        self.places[server] != ABSENT
    }

    /// The server with the smallest key.
    pub(super) fn top(&self) -> Option<(K, usize)> {
        self.entries.first().map(|&(key, server)| (key, server as usize))
    }

    /// The server with the smallest key that is not `avoid`; `avoid` itself if there is no other.
    pub(super) fn top_without(&self, avoid: Option<usize>) -> Option<(K, usize)> {
        let (key, server) = self.top()?;
        if avoid != Some(server) {
            return Some((key, server));
        }
        // The second smallest is one of the children of the top.
        let children = self.entries.get(1..self.entries.len().min(3)).unwrap_or_default();
        let second = children.iter().min_by_key(|entry| entry.0);
        Some(second.map_or((key, server), |&(key, server)| (key, server as usize)))
    }

    /// Gives a server this key, whether it was there or not.
    pub(super) fn set(&mut self, server: usize, key: K) {
        match self.places[server] {
            ABSENT => {
                let place = self.entries.len();
                self.entries.push((key, server as u32));
                self.places[server] = place as u32;
                self.rise(place);
            }
            place => {
                let place = place as usize;
                self.entries[place].0 = key;
                let place = self.rise(place);
                self.sink(place);
            }
        }
    }

    /// Takes a server out.
    pub(super) fn remove(&mut self, server: usize) {
        let place = self.places[server];
        if place == ABSENT {
            return;
        }
        let place = place as usize;
        let last = self.entries.len() - 1;
        self.swap(place, last);
        self.entries.pop();
        self.places[server] = ABSENT;
        if place < last {
            let place = self.rise(place);
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.entries[parent].0 <= self.entries[place].0 {
                break;
            }
            self.swap(place, parent);
            place = parent;
        }
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let Some(mut child) = self.entries.get(left).map(|_| left) else { return };
            if self.entries.get(left + 1).is_some_and(|right| right.0 < self.entries[left].0) {
                child = left + 1;
            }
            if self.entries[place].0 <= self.entries[child].0 {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.entries.swap(a, b);
        self.places[self.entries[a].1 as usize] = a as u32;
        self.places[self.entries[b].1 as usize] = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::Heap;
    use std::collections::BTreeMap;

    #[test]
    fn agrees_with_a_sorted_map_under_random_changes() {
        let mut seed = 1_u64;
        let mut draw = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        let mut heap = Heap::new(13);
        let mut model = BTreeMap::new();
        for step in 0..20_000_u64 {
            let server = draw(13) as usize;
            if draw(3) == 0 {
                heap.remove(server);
                model.retain(|_, held| *held != server);
            } else {
                let key = (draw(50), step);
                heap.set(server, key);
                model.retain(|_, held| *held != server);
                model.insert(key, server);
            }
            assert_eq!(heap.top(), model.first_key_value().map(|(key, server)| (*key, *server)));
            let avoid = draw(13) as usize;
            let other = model.iter().find(|entry| *entry.1 != avoid).or_else(|| model.first_key_value());
            assert_eq!(heap.top_without(Some(avoid)), other.map(|(key, server)| (*key, *server)));
            assert_eq!(heap.contains(avoid), model.values().any(|held| *held == avoid));
        }
    }
}
