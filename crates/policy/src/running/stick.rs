//! Lookups of samples in stick tables, for fetches and converters. Must never know the caller.

use crate::program::ProgramContext;
use expression::sample::{Context, Value};
use expression::{Argument, Arguments, Checking};
use live::table::{EntryMut, EntryView, Table, TableKey};

/// Sets a missing table argument to the table of the proxy.
pub fn default_table(arguments: &mut Arguments, checking: &Checking<'_>, at: usize) -> Result<(), String> {
    if !arguments.has(at) {
        let name = checking.names.current_name().unwrap_or_default();
        let found = checking.names.table(name).ok_or_else(|| format!("unable to find table '{name}'"))?;
        arguments.set(at, Argument::Table(found));
    }
    Ok(())
}

/// Reads the entry of a sample; returns `missing` if there is none, or if the sample is not a valid key. `None` if the
/// data is not stored.
pub fn look_up<'a, T>(
    context: &Context<'a>,
    value: Value<'a>,
    table: usize,
    missing: T,
    read: impl FnOnce(&EntryView<'_>, &Table) -> Option<T>,
) -> Option<T> {
    let table = context.live()?.tables.get(table)?;
    let Some(key) = TableKey::of_sample(table.plan.key, context, value) else { return Some(missing) };
    table.find(&key, context.now, |entry| read(&entry, table)).unwrap_or(Some(missing))
}

/// Changes the entry of a sample, and creates it if necessary; returns 0 if the sample is not a valid key. `None` if
/// the table is full, or the data is not stored.
pub fn change<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    table: usize,
    with: impl FnOnce(&mut EntryMut<'_>, &Table) -> Option<u64>,
) -> Option<u64> {
    let table = context.live()?.tables.get(table)?;
    let Some(key) = TableKey::of_sample(table.plan.key, context, value) else { return Some(0) };
    table.upsert(&key, context.now, |entry| with(entry, table))?
}
