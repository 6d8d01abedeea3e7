//! Access of scripts to stick tables (class `StickTable` of HAProxy's Lua manual). Must never change an entry.

use std::sync::Arc;

use config::spec::{DataForm, DataKind, StoreSpec, TableKeySpec};
use expression::sample::Value as Sample;
use live::table::{Cursor, Datum, EntryView, Table, TableKey, sample_of};
use mlua::{Lua, LuaString, Table as LuaTable};

use crate::value::{Plain, of_sample};

/// Entries visited per lock of a shard.
const PAGE: u32 = 128;

/// A condition on a stored value.
struct Condition {
    datum: Datum,
    holds: fn(&i64, &i64) -> bool,
    value: i64,
}

impl Condition {
    /// Parses `(column, operator, value)`; `None`: unknown column or operator.
    fn parse(words: &[String]) -> Option<Self> {
        let [column, operator, value] = words else { return None };
        let holds: fn(&i64, &i64) -> bool = match operator.as_str() {
            "eq" => i64::eq,
            "ne" => i64::ne,
            "le" => i64::le,
            "lt" => i64::lt,
            "ge" => i64::ge,
            "gt" => i64::gt,
            _ => return None,
        };
        Some(Self { datum: Datum::first(DataKind::find(column)?), holds, value: value.parse().ok()? })
    }

    fn matches(&self, entry: &EntryView<'_>, table: &Table) -> bool {
        self.datum.read(entry, table).is_some_and(|value| (self.holds)(&(value as i64), &self.value))
    }
}

fn find(name: &str) -> Option<Arc<Table>> {
    let process = crate::process()?;
    process.live.tables.iter().find(|table| *table.plan.name == *name).map(Arc::clone)
}

fn row(name: &str, value: Plain) -> (Plain, Plain) {
    (Plain::from(name), value)
}

fn information(name: &str) -> Option<Plain> {
    let table = find(name)?;
    let (kind, length) = match table.plan.key {
        TableKeySpec::Ipv4 => ("ip", 4),
        TableKeySpec::Ipv6 => ("ipv6", 16),
        TableKeySpec::Integer => ("integer", 4),
        // HAProxy includes the NUL byte.
        TableKeySpec::Text(length) => ("string", length + 1),
        TableKeySpec::Binary(length) => ("binary", length),
    };
    let column = |store: &StoreSpec| {
        let period = if store.period > 0 { store.period.into() } else { -1 };
        row(store.kind.name(), Plain::Int(period))
    };
    let expire = table.plan.expire.map_or(0, |period| i64::try_from(period.as_millis()).unwrap_or(i64::MAX));
    Some(Plain::Table(vec![
        row("expire", Plain::Int(expire)),
        row("size", Plain::Int(table.plan.size.into())),
        row("used", Plain::Int(table.used().into())),
        row("data", Plain::Table(table.plan.layout.stores.iter().map(column).collect())),
        row("length", Plain::Int(length.into())),
        row("nopurge", Plain::Bool(table.plan.nopurge)),
        row("type", Plain::from(kind)),
    ]))
}

fn number(value: u64) -> Plain {
    Plain::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Returns the data of an entry. The first element of an array is also returned under the array's name, as in HAProxy.
fn data(entry: &EntryView<'_>, table: &Table) -> Vec<(Plain, Plain)> {
    let mut rows = Vec::new();
    for StoreSpec { kind, elements, .. } in &table.plan.layout.stores {
        let read = |element: u32| Datum::array(*kind, element.into()).and_then(|datum| datum.read(entry, table));
        let first = read(0).unwrap_or(0);
        rows.push(row(
            kind.name(),
            match kind.form() {
                DataForm::Server => {
                    let known = u32::try_from(first).ok().and_then(|first| table.servers.name(first));
                    known.map_or(Plain::from("-"), |name| Plain::Text(name.to_vec()))
                }
                _ => number(first),
            },
        ));
        let (before, behind) = match kind {
            DataKind::Gpt => ("gpt", ""),
            DataKind::Gpc => ("gpc", ""),
            DataKind::GpcRate => ("gpc", "_rate"),
            _ => continue,
        };
        let element = |element| row(&format!("{before}{element}{behind}"), number(read(element).unwrap_or(0)));
        rows.extend((0..*elements).map(element));
    }
    rows
}

/// Returns the entry of a key, with its reference count and its remaining time.
fn entry(name: &str, key: &[u8]) -> Option<Plain> {
    let (worker, table) = (crate::here()?, find(name)?);
    crate::prelude::lend(&worker, |context| {
        let key = TableKey::of_sample(table.plan.key, context, Sample::Str(context.copy(key)?))?;
        let now = rt::now();
        table.find(&key, now, |entry| {
            let left = if entry.until == base::Moment::MAX { 0 } else { entry.until.millis_since(now) };
            let mut rows = data(&entry, &table);
            rows.push(row("use", Plain::Int(entry.trackers.into())));
            rows.push(row("expire", number(left)));
            Plain::Table(rows)
        })
    })
}

/// Returns the matching entries by key. `words`: columns, operators and values of conditions.
fn entries(name: &str, words: &[String]) -> Option<Plain> {
    crate::here()?;
    let table = find(name)?;
    let conditions: Vec<Condition> = words.chunks(3).map(Condition::parse).collect::<Option<_>>()?;
    let (mut cursor, mut rows) = (Some(Cursor::default()), Vec::new());
    while let Some(from) = cursor {
        cursor = table.page(from, PAGE, rt::now(), |_, entry| {
            if conditions.iter().all(|condition| condition.matches(&entry, &table))
                && let Some(key) = sample_of(table.plan.key, entry.key)
            {
                rows.push((of_sample(key, false), Plain::Table(data(&entry, &table))));
            }
        });
    }
    Some(Plain::Table(rows))
}

/// Adds the functions for tables.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua, native: &LuaTable) -> mlua::Result<()> {
    native.set("table_information", lua.create_function(|_, name: String| Ok(information(&name)))?)?;
    native.set(
        "table_entry",
        lua.create_function(|_, (name, key): (String, LuaString)| Ok(entry(&name, &key.as_bytes())))?,
    )?;
    native.set(
        "table_entries",
        lua.create_function(|_, (name, words): (String, Vec<String>)| Ok(entries(&name, &words)))?,
    )
}
