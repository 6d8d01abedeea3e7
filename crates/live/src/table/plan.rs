//! The configuration of a stick table (configuration manual, section 11.1), and the layout of its entries. Must never
//! hold an entry.

use config::spec::{DataForm, DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
use std::ops::Range;
use std::time::Duration;
use xxhash_rust::xxh64::xxh64;

/// The configuration of a stick table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StickTable {
    /// Its name: that of its proxy, or that of its `peers` section, a slash and its own.
    pub name: Box<str>,
    /// Index of the proxy that declares it; `None`: declared in a `peers` section.
    pub proxy: Option<usize>,
    /// The type of its keys.
    pub key: TableKeySpec,
    /// Maximum number of entries.
    pub size: u32,
    /// Time until an entry expires unless it is refreshed; `None`: kept until it is evicted.
    pub expire: Option<Duration>,
    /// No entry is evicted when the table is full.
    pub nopurge: bool,
    /// It learns from peers and sends them nothing.
    pub recv_only: bool,
    /// The table that also receives learned entries.
    pub write_to: Option<usize>,
    /// How servers are identified.
    pub server_key: ServerKeySpec,
    /// Number of bytes that are one event of a rate.
    pub byte_rate_factor: u32,
    pub layout: Layout,
    /// Its updates are sent to peers: their order is maintained.
    pub shared: bool,
    /// It holds the sums of another table's values over all peers: only these change it.
    pub summed: bool,
    /// Number of shards over which its keys are distributed to peers; 0: not sharded.
    pub shards: u32,
}

impl StickTable {
    /// Creates it from the parsed line; the caller resolves `write_to`, which refers to another table.
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
            summed: false,
            shards: 0,
        }
    }

    /// Returns the placeholder for a table removed from a running process.
    pub fn removed(&self) -> Self {
        Self { name: Box::default(), proxy: None, shared: false, summed: false, write_to: None, ..self.clone() }
    }

    /// Whether it is such a placeholder.
    pub fn is_removed(&self) -> bool {
        self.name.is_empty()
    }

    /// Returns the shard of a key, from 1, as HAProxy computes it for a table of that name; 0: not sharded.
    pub fn shard(&self, key: &[u8]) -> u32 {
        if self.shards == 0 {
            return 0;
        }
        let seed = xxh64(self.name.as_bytes(), 0);
        let hash = match (self.key, key.first_chunk::<4>()) {
            // Numbers are stored here in the opposite byte order.
            (TableKeySpec::Integer, Some(number)) => xxh64(&u32::from_be_bytes(*number).to_le_bytes(), seed),
            _ => xxh64(key, seed),
        };
        (hash % u64::from(self.shards)) as u32 + 1
    }

    /// Adds a kind of data if it is missing: for data that rules store implicitly (`server_id`).
    pub fn require(&mut self, kind: DataKind) {
        if !self.layout.has(kind) {
            let mut stores = std::mem::take(&mut self.layout).stores;
            stores.push(StoreSpec { kind, elements: 1, period: 0 });
            self.layout = Layout::new(stores);
        }
    }
}

/// The location of a kind of data in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct DataSlot {
    /// Its first word.
    start: u32,
    /// 0: not stored.
    elements: u32,
    /// The period of a rate in milliseconds.
    period: u32,
}

/// The location of each kind of data in an entry, in words of 32 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The stored kinds, in order.
    pub stores: Vec<StoreSpec>,
    /// By kind.
    places: [DataSlot; DataKind::ALL.len()],
    /// Number of words of an entry.
    words: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Layout {
    /// Creates a layout for these kinds, in any order.
    pub fn new(mut stores: Vec<StoreSpec>) -> Self {
        stores.sort_by_key(|store| store.kind);
        stores.dedup_by_key(|store| store.kind);
        let (mut places, mut words) = ([DataSlot::default(); DataKind::ALL.len()], 0);
        for StoreSpec { kind, elements, period } in stores.iter().copied() {
            places[kind as usize] = DataSlot { start: words as u32, elements, period };
            words += Self::width(kind) * elements as usize;
        }
        Self { stores, places, words }
    }

    /// The number of words of one element.
    pub const fn width(kind: DataKind) -> usize {
        match kind.form() {
            DataForm::Number | DataForm::Server => 1,
            DataForm::Large => 2,
            DataForm::Rate => 3,
        }
    }

    /// The number of words of an entry.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Whether it is stored.
    #[inline]
    pub fn has(&self, kind: DataKind) -> bool {
        self.places[kind as usize].elements > 0
    }

    /// Returns the settings of a stored kind.
    pub fn store(&self, kind: DataKind) -> Option<&StoreSpec> {
        self.stores.iter().find(|store| store.kind == kind)
    }

    /// Returns the location of an element, and the period of its kind in milliseconds.
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

    /// Returns the location of an element.
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
        // The shards that `show table` of HAProxy 3.5 reports with `shards 1000`.
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
