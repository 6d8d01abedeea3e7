//! Conversion of stick-table entries to and from the peers protocol: a table's definition, an entry's data. Must never
//! let a peer store data that the table does not.

use super::names::{Learned, SentNames, ServerKeyForm};
use super::plan::Shared;
use crate::table::StickTable;
use crate::table::{Origin, Table, TableKey};
use base::moment::Moment;
use config::spec::{DataForm, DataKind, StoreSpec, TableKeySpec};
use std::sync::Arc;
use std::time::Duration;
use wire::peers::{Datum, Definition, KeyKind, Store, Update, is_array, update};

/// The remaining life of an entry is sent if it is shorter than that of a new one by this much.
const WORTH_TELLING: Duration = Duration::from_millis(500);

/// The definition of a table, with its id on the connection.
pub(super) fn definition(shared: &Shared, id: u64) -> Definition {
    let plan = &shared.table.plan;
    let (key, key_length) = match plan.key {
        TableKeySpec::Integer => (KeyKind::Integer, 4),
        TableKeySpec::Ipv4 => (KeyKind::Ipv4, 4),
        TableKeySpec::Ipv6 => (KeyKind::Ipv6, 16),
        TableKeySpec::Text(length) => (KeyKind::Text, length.saturating_add(1)),
        TableKeySpec::Binary(length) => (KeyKind::Binary, length),
    };
    let stores = plan.layout.stores.iter().map(|store| {
        let elements = if is_array(store.kind as u8) { store.elements } else { 1 };
        Store { kind: store.kind as u8, elements, period: store.period }
    });
    let expire = plan.expire.map_or(0, |life| u64::try_from(life.as_millis()).unwrap_or(u64::MAX));
    Definition { id, name: shared.name.as_bytes().to_vec(), key, key_length, stores: stores.collect(), expire }
}

/// An entry to be sent.
pub(super) struct Entry<'a> {
    pub(super) number: u32,
    pub(super) key: &'a [u8],
    pub(super) words: &'a [u32],
    pub(super) until: Moment,
}

/// Appends an entry. Its remaining life is included if it differs from the table's expiry.
pub(super) fn append_entry(
    out: &mut Vec<u8>,
    told: &Definition,
    index: usize,
    table: &Table,
    names: &mut SentNames,
    entry: &Entry<'_>,
    now: Moment,
) {
    let plan = &table.plan;
    let life = entry.until.saturating_since(now);
    let left = plan.expire.filter(|full| life + WORTH_TELLING < *full).map(|_| millis(life));
    if plan.expire.is_some() && life.is_zero() {
        return;
    }
    // The name is kept until the message is written.
    let name = plan.layout.place(DataKind::ServerKey, 0).and_then(|place| entry.words.get(place)?.first().copied());
    let name = names.tell(index, name.unwrap_or(0), &table.servers);
    let tick = Table::tick(now);
    let mut data = Vec::with_capacity(plan.layout.stores.len());
    for store in &plan.layout.stores {
        for element in 0..store.elements {
            let place = plan.layout.place(store.kind, element);
            let Some(words) = place.and_then(|place| entry.words.get(place)) else { return };
            let datum = match (store.kind.form(), words) {
                (DataForm::Server, _) => match &name {
                    ServerKeyForm::Nothing => Datum::Known(0),
                    ServerKeyForm::Known(number) => Datum::Known(*number),
                    ServerKeyForm::New(number, name) => Datum::Named { number: *number, name },
                },
                (DataForm::Number, [word]) => Datum::Number(u64::from(*word)),
                (DataForm::Large, [low, high]) => Datum::Number(u64::from(*low) | u64::from(*high) << 32),
                (DataForm::Rate, [begin, current, previous]) => {
                    Datum::Rate { age: Table::age(*begin, tick), current: *current, previous: *previous }
                }
                _ => return,
            };
            data.push((store.kind as u8, element, datum));
        }
    }
    // Each update contains its number: HAProxy 3.5 miscounts updates without one, and acknowledges wrong ones.
    update(out, told, &Update { number: Some(entry.number), left, key: entry.key, data });
}

fn millis(life: Duration) -> u32 {
    u32::try_from(life.as_millis()).unwrap_or(u32::MAX).max(1)
}

/// Whether a peer's table is compatible with ours, so that its entries can be learned.
pub(super) fn fits(plan: &StickTable, told: &Definition) -> bool {
    match plan.key {
        TableKeySpec::Integer => told.key == KeyKind::Integer,
        TableKeySpec::Ipv4 => told.key == KeyKind::Ipv4 && told.key_length == 4,
        TableKeySpec::Ipv6 => told.key == KeyKind::Ipv6 && told.key_length == 16,
        TableKeySpec::Text(length) => told.key == KeyKind::Text && told.key_length == length.saturating_add(1),
        TableKeySpec::Binary(length) => told.key == KeyKind::Binary && told.key_length == length,
    }
}

/// Returns why the values of a peer's table are not summed completely.
pub(super) fn difference(sum: &StickTable, fits: bool, told: &Definition) -> Option<String> {
    if !fits {
        return Some("has other keys than here: its values are not summed".to_owned());
    }
    let is_there = |ours: &&StoreSpec| {
        let theirs = told.stores.iter().find(|store| store.kind == ours.kind as u8);
        let fits = |theirs: &Store| is_same_period(theirs.period, ours.period) && theirs.elements >= ours.elements;
        theirs.is_some_and(fits)
    };
    let missing = sum.layout.stores.iter().filter(|ours| !is_there(ours)).map(ToString::to_string);
    let missing: Vec<String> = missing.collect();
    (!missing.is_empty()).then(|| format!("does not store {}, so that it counts as zero", missing.join(", ")))
}

/// Whether values of rates can be exchanged; the period of other data, and of peers that omit it, is 0.
fn is_same_period(one: u32, other: u32) -> bool {
    one == 0 || other == 0 || one == other
}

/// The place of the values that a peer has sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum UpdateTarget<'a> {
    /// They are sums, which are computed here.
    Nowhere,
    Table,
    /// The table: they are values of this instance, sent by an older process of it.
    OwnTable,
    /// The table of sums.
    Sum(&'a Table, Origin),
}

/// Stores a peer's update in the table, and in the one of `write-to`, or as the peer's values in the table of sums. Names
/// of servers are recorded even if the table is full.
pub(super) fn store_update(
    shared: &Shared,
    target: UpdateTarget<'_>,
    told: &Definition,
    heard: &Update<'_>,
    names: &mut Learned,
    now: Moment,
) {
    for (_, _, datum) in &heard.data {
        if let Datum::Named { number, name } = datum {
            names.note(*number, name);
        }
    }
    let table = match target {
        UpdateTarget::Nowhere => return,
        UpdateTarget::Sum(sum, _) => sum,
        UpdateTarget::Table | UpdateTarget::OwnTable => &shared.table,
    };
    let plan = &table.plan;
    let Some(key) = key(plan.key, heard.key) else { return };
    let expire = plan.expire.unwrap_or_default();
    // A peer's values do not outlast its entry.
    let full = match target {
        UpdateTarget::Sum(..) if told.expire > 0 => expire.min(Duration::from_millis(told.expire)),
        _ => expire,
    };
    let life = heard.left.map_or(full, |left| Duration::from_millis(left.into()).min(full));
    let tick = Table::tick(now);
    let mut words = Vec::with_capacity(heard.data.len());
    for (number, element, datum) in &heard.data {
        let Some(kind) = DataKind::ALL.get(usize::from(*number)).copied() else { continue };
        let Some(ours) = plan.layout.store(kind) else { continue };
        let period = told.stores.iter().find(|store| store.kind == *number).map_or(0, |store| store.period);
        // Rates over another period cannot be converted.
        if !is_same_period(period, ours.period) {
            continue;
        }
        let value = match *datum {
            Datum::Number(number) => [number as u32, (number >> 32) as u32, 0],
            Datum::Rate { age, current, previous } => [tick.wrapping_sub(age), current, previous],
            Datum::Named { name, .. } => [shared.table.servers.number(name), 0, 0],
            Datum::Known(number) => [names.name(number).map_or(0, |name| shared.table.servers.number(name)), 0, 0],
        };
        let width = crate::table::Layout::width(kind);
        words.push((kind, *element, value, width));
    }
    let data = words.iter().map(|(kind, element, value, width)| (*kind, *element, &value[..*width]));
    let until = now.saturating_add(life);
    match target {
        UpdateTarget::Nowhere => false,
        UpdateTarget::Table => table.learn(&key, now, until, data),
        UpdateTarget::OwnTable => table.inherit(&key, now, until, data),
        UpdateTarget::Sum(_, origin) => table.add_origin(&key, origin, now, until, data),
    };
    if let Some(target) = &shared.write_to {
        pass_on(target, &shared.table, &key, &words, now);
    }
}

/// Writes data that are not sums to the other table (`write-to`).
fn pass_on(
    target: &Arc<Table>,
    source: &Table,
    key: &TableKey<'_>,
    words: &[(DataKind, u32, [u32; 3], usize)],
    now: Moment,
) {
    target.upsert(key, now, |entry| {
        for (kind, element, value, width) in words {
            match kind {
                DataKind::ServerId | DataKind::Gpt0 | DataKind::Gpt => {
                    entry.set_raw(*kind, *element, &value[..*width]);
                }
                DataKind::ServerKey => {
                    let name = source.servers.name(value[0]);
                    let number = name.map_or(0, |name| target.servers.number(&name));
                    entry.set_raw(*kind, *element, &[number]);
                }
                _ => {}
            }
        }
    });
}

/// Decodes a key as sent by a peer.
fn key(spec: TableKeySpec, bytes: &[u8]) -> Option<TableKey<'_>> {
    let short = |length: usize| {
        let mut padded = [0; 16];
        padded.get_mut(..length)?.copy_from_slice(bytes.get(..length).filter(|_| bytes.len() == length)?);
        Some(TableKey::Short(padded, length))
    };
    match spec {
        TableKeySpec::Integer | TableKeySpec::Ipv4 => short(4),
        TableKeySpec::Ipv6 => short(16),
        TableKeySpec::Text(length) => {
            // HAProxy includes the terminating NUL of its strings.
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            (text.len() <= length as usize).then_some(TableKey::Long(text))
        }
        TableKeySpec::Binary(length) => (bytes.len() == length as usize).then_some(TableKey::Long(bytes)),
    }
}
