//! Stick tables: declarations become plans, and find each other. Must never look at a rule.

use super::Compiler;
use crate::program::StickTable;
use config::diagnostic::Form;
use config::spec::{ProxySpec, Spec, TableKeySpec, TableSpec};

impl Compiler<'_> {
    /// Collects the tables of all proxies.
    pub(super) fn tables(&mut self, spec: &Spec) {
        let declared: Vec<(usize, &ProxySpec, &TableSpec)> = spec
            .proxies
            .iter()
            .enumerate()
            .filter_map(|(index, proxy)| Some((index, proxy, proxy.stick_table.as_ref()?)))
            .collect();
        let mut tables: Vec<StickTable> = declared
            .iter()
            .map(|(index, proxy, written)| StickTable::new(&proxy.name.value, Some(*index), written))
            .collect();
        for (at, (_, proxy, written)) in declared.iter().enumerate() {
            let Some(target) = &written.write_to else { continue };
            match find_target(&tables, at, &target.value) {
                Ok(found) => tables[at].write_to = Some(found),
                Err(why) => {
                    let name = &proxy.name.value;
                    let message = format!("Proxy '{name}': failed to initialize stick-table: write-to: {why}.");
                    self.alert(target.span, Form::Bare, message);
                }
            }
        }
        *self.shared.tables.borrow_mut() = tables;
    }
}

/// The table that a `write-to` names.
fn find_target(tables: &[StickTable], own: usize, name: &str) -> Result<usize, String> {
    let found = tables.iter().position(|table| *table.name == *name);
    let found = found.ok_or_else(|| format!("table '{name}' doesn't exist"))?;
    let (target, source) = (&tables[found], &tables[own]);
    if target.key.name() != source.key.name() {
        return Err(format!(
            "cannot mix table types ('{name}' has '{}' type and '{}' has '{}' type)",
            target.key.name(),
            source.name,
            source.key.name()
        ));
    }
    if target.key != source.key {
        return Err(format!(
            "cannot mix key sizes ('{name}' has '{}' key_size and '{}' has '{}' key_size)",
            key_size(target.key),
            source.name,
            key_size(source.key)
        ));
    }
    Ok(found)
}

/// Bytes that HAProxy takes for a key: a string has one more than it may be long.
fn key_size(key: TableKeySpec) -> u32 {
    match key {
        TableKeySpec::Ipv4 | TableKeySpec::Integer => 4,
        TableKeySpec::Ipv6 => 16,
        TableKeySpec::Text(length) => length + 1,
        TableKeySpec::Binary(length) => length,
    }
}
