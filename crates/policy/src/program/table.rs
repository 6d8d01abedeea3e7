//! A stick table, ready to be filled (configuration manual, section 11.1), and where each kind of data lies in an entry.
//! Must never hold an entry.

use config::spec::{DataForm, DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
use std::time::Duration;

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
}

impl StickTable {
    /// From what the configuration says; `write_to` is for whoever knows the other tables.
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
        }
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

/// Says that a kind of data is not there.
const NOWHERE: u16 = u16::MAX;

/// Where each kind of data lies in an entry, in words of 32 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// What is stored, in the order of the kinds.
    pub stores: Vec<StoreSpec>,
    /// By kind.
    places: [u16; DataKind::ALL.len()],
    /// By kind: its place in `stores`.
    indices: [u8; DataKind::ALL.len()],
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
        let mut layout = Self { stores, places: [NOWHERE; 27], indices: [0; 27], words: 0 };
        for (index, store) in layout.stores.iter().enumerate() {
            layout.places[store.kind as usize] = u16::try_from(layout.words).unwrap_or(NOWHERE);
            layout.indices[store.kind as usize] = u8::try_from(index).unwrap_or(0);
            layout.words += Self::width(store.kind) * store.elements as usize;
        }
        layout
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
    pub fn has(&self, kind: DataKind) -> bool {
        self.places[kind as usize] != NOWHERE
    }

    /// What is said about a kind that is stored.
    #[inline]
    pub fn store(&self, kind: DataKind) -> Option<&StoreSpec> {
        if self.has(kind) { self.stores.get(self.indices[kind as usize] as usize) } else { None }
    }

    /// Where an element lies.
    #[inline]
    pub fn place(&self, kind: DataKind, element: u32) -> Option<std::ops::Range<usize>> {
        let store = self.store(kind)?;
        if element >= store.elements {
            return None;
        }
        let width = Self::width(kind);
        let start = self.places[kind as usize] as usize + width * element as usize;
        Some(start..start + width)
    }
}
