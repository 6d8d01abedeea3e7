//! A stick table, ready to be filled (configuration manual, section 11.1), and where each kind of data lies in an entry.
//! Must never hold an entry.

use config::spec::{DataForm, DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
use std::ops::Range;
use std::time::Duration;
use xxhash_rust::xxh64::xxh64;

/// A stick table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StickTable {
    /// Its name: that of its proxy, or that of its `peers` section, a slash and its own.
    pub name: Box<str>,
    /// Index of the proxy that declares it; `None`: a `peers` section does.
    pub proxy: Option<usize>,
    /// What its keys are.
    pub key: TableKeySpec,
    /// Entries at most.
    pub size: u32,
    /// How long an entry stays unless it is refreshed; `None`: until there is no room.
    pub expire: Option<Duration>,
    /// Where there is no room, no entry makes any.
    pub nopurge: bool,
    /// It learns from peers and tells them nothing.
    pub recv_only: bool,
    /// The table that gets what peers tell.
    pub write_to: Option<usize>,
    /// What servers are known by.
    pub server_key: ServerKeySpec,
    /// So many bytes are one event of a rate.
    pub byte_rate_factor: u32,
    /// What an entry holds.
    pub layout: Layout,
    /// Its updates are told to peers: it keeps their order.
    pub shared: bool,
    /// Parts that its keys are spread over when peers are told of them; 0: they are not.
    pub shards: u32,
}

impl StickTable {
    /// From what the configuration says; `write_to` is resolved by the caller, which knows the other tables.
    pub fn new(name: &str, proxy: Option<usize>, written: &TableSpec) -> Self {
        Self {
            name: name.into(),
            proxy,
            key: written.key,
            size: written.size,
            expire: written.expire.map(|millis| Duration::from_millis(millis.into())),
            nopurge: written.nopurge,
            recv_only: written.recv_only,
            write_to: None,
            server_key: written.server_key,
            byte_rate_factor: written.byte_rate_factor.max(1),
            layout: Layout::new(written.store.clone()),
            shared: written.peers.is_some(),
            shards: 0,
        }
    }

    /// What is left of a table that is removed from a running process: its place.
    pub fn removed(&self) -> Self {
        Self { name: Box::default(), proxy: None, shared: false, write_to: None, ..self.clone() }
    }

    /// Whether that is so.
    pub fn is_removed(&self) -> bool {
        self.name.is_empty()
    }

    /// The part that a key belongs to, from 1, as every HAProxy with a table of that name has it; 0: keys are not spread.
    pub fn shard(&self, key: &[u8]) -> u32 {
        if self.shards == 0 {
            return 0;
        }
        let seed = xxh64(self.name.as_bytes(), 0);
        let hash = match (self.key, key.first_chunk::<4>()) {
            // Numbers lie here the other way around.
            (TableKeySpec::Integer, Some(number)) => xxh64(&u32::from_be_bytes(*number).to_le_bytes(), seed),
            _ => xxh64(key, seed),
        };
        (hash % u64::from(self.shards)) as u32 + 1
    }

    /// Sees to it that entries hold a number of that kind: what rules store without being told to (`server_id`).
    pub fn require(&mut self, kind: DataKind) {
        if !self.layout.has(kind) {
            let mut stores = std::mem::take(&mut self.layout).stores;
            stores.push(StoreSpec { kind, elements: 1, period: 0 });
            self.layout = Layout::new(stores);
        }
    }
}

/// Where a kind of data lies in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Placed {
    /// Its first word.
    start: u32,
    /// None: it is not there.
    elements: u32,
    /// Milliseconds, of a rate.
    period: u32,
}

/// Where each kind of data lies in an entry, in words of 32 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// What is stored, in the order of the kinds.
    pub stores: Vec<StoreSpec>,
    /// By kind.
    places: [Placed; DataKind::ALL.len()],
    /// Words of an entry.
    words: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Layout {
    /// For these kinds, in any order.
    pub fn new(mut stores: Vec<StoreSpec>) -> Self {
        stores.sort_by_key(|store| store.kind);
        stores.dedup_by_key(|store| store.kind);
        let (mut places, mut words) = ([Placed::default(); DataKind::ALL.len()], 0);
        for StoreSpec { kind, elements, period } in stores.iter().copied() {
            places[kind as usize] = Placed { start: words as u32, elements, period };
            words += Self::width(kind) * elements as usize;
        }
        Self { stores, places, words }
    }

    /// Words of one element.
    pub const fn width(kind: DataKind) -> usize {
        match kind.form() {
            DataForm::Number | DataForm::Server => 1,
            DataForm::Large => 2,
            DataForm::Rate => 3,
        }
    }

    /// Words of an entry.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Whether entries hold it.
    #[inline]
    pub fn has(&self, kind: DataKind) -> bool {
        self.places[kind as usize].elements > 0
    }

    /// What is said about a kind that is stored.
    pub fn store(&self, kind: DataKind) -> Option<&StoreSpec> {
        self.stores.iter().find(|store| store.kind == kind)
    }

    /// Where an element lies, and the period of its kind in milliseconds.
    #[inline]
    pub fn find(&self, kind: DataKind, element: u32) -> Option<(Range<usize>, u32)> {
        let placed = &self.places[kind as usize];
        if element >= placed.elements {
            return None;
        }
        let width = Self::width(kind);
        let start = placed.start as usize + width * element as usize;
        Some((start..start + width, placed.period))
    }

    /// Where an element lies.
    #[inline]
    pub fn place(&self, kind: DataKind, element: u32) -> Option<Range<usize>> {
        self.find(kind, element).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::span::Span;

    #[test]
    fn keys_are_spread_as_haproxy_spreads_them() {
        // What `show table` of HAProxy 3.5 tells of tables under `shards 1000`.
        let rows: &[(&str, TableKeySpec, &[u8], u32)] = &[
            ("p/t1", TableKeySpec::Text(30), b"hello", 467),
            ("p/t1", TableKeySpec::Text(30), b"a", 852),
            ("p/t4", TableKeySpec::Text(40), b"hello", 29),
            ("f", TableKeySpec::Text(30), b"abc", 772),
            ("p/t2", TableKeySpec::Ipv4, &[1, 2, 3, 4], 844),
            ("p/t2", TableKeySpec::Ipv4, &[10, 0, 0, 1], 980),
            ("p/t3", TableKeySpec::Integer, &[0, 0, 0, 1], 797),
            ("p/t3", TableKeySpec::Integer, &[0, 0, 3, 232], 887),
        ];
        for (name, key, bytes, shard) in rows {
            let written = TableSpec {
                span: Span::default(),
                key: *key,
                size: 1,
                expire: None,
                nopurge: false,
                recv_only: false,
                write_to: None,
                server_key: ServerKeySpec::Name,
                byte_rate_factor: 1,
                store: Vec::new(),
                peers: None,
            };
            let mut table = StickTable::new(name, None, &written);
            assert_eq!(table.shard(bytes), 0);
            table.shards = 1_000;
            assert_eq!(table.shard(bytes), *shard, "{name} {}", bytes.escape_ascii());
        }
    }
}
