//! Compiles stick tables: declarations become parameters, and references between tables are resolved. Must never look
//! at a rule.

use super::Compiler;
use super::peers::{global_name, shares};
use super::table_seat::TableSeat;
use base::NameIndex;
use config::diagnostic::Form;
use config::spec::{PeersSpec, ProxySpec, Spec, TableKeySpec, TableSpec};
use live::table::StickTable;

impl Compiler<'_> {
    /// Collects the tables of all proxies and `peers` sections: those with an assigned index there, others in the order
    /// of the files.
    pub(super) fn tables(&mut self, spec: &Spec) {
        let of_proxies = spec.proxies.iter().enumerate().filter_map(|(index, proxy)| {
            let written = proxy.stick_table.as_ref()?;
            Some(Declared {
                name: proxy.name.value.clone(),
                proxy: Some(index),
                written,
                through: through(spec, proxy),
            })
        });
        let of_sections = spec.sections.peers.iter().flat_map(|section| {
            section.tables.iter().map(move |table| Declared {
                name: global_name(section, &table.name.value),
                proxy: None,
                written: &table.table,
                through: Some(section).filter(|section| shares(section)),
            })
        });
        let mut declared: Vec<Declared<'_>> = of_proxies.chain(of_sections).collect();
        declared.sort_by_key(|one| (one.written.span.file, one.written.span.line));
        let plan = |one: &Declared<'_>| StickTable {
            shared: one.through.is_some(),
            summed: one.through.is_some() && one.written.is_sum(&one.name),
            shards: one.through.map_or(0, |section| section.shards),
            ..StickTable::new(&one.name, one.proxy, one.written)
        };
        let names: Vec<String> = declared.iter().map(|one| one.name.clone()).collect();
        let mut declared: Vec<Option<Declared<'_>>> = declared.into_iter().map(Some).collect();
        let seated = NameIndex::default();
        let mut places = Vec::with_capacity(declared.len());
        let mut tables: Vec<StickTable> = Vec::with_capacity(declared.len());
        for seat in &self.table_seats {
            let found = match seat {
                TableSeat::Stays(name) => seated.find(&names, name, |name| Some(name)),
                TableSeat::Removed(_) => None,
            };
            match (found.and_then(|found| declared[found].take()), seat) {
                (Some(own), _) => {
                    tables.push(plan(&own));
                    places.push((tables.len() - 1, own));
                }
                (None, TableSeat::Removed(table)) => tables.push((**table).clone()),
                (None, TableSeat::Stays(_)) => {}
            }
        }
        for own in declared.into_iter().flatten() {
            tables.push(plan(&own));
            places.push((tables.len() - 1, own));
        }
        let targets = NameIndex::default();
        for (at, Declared { name, proxy, written, .. }) in &places {
            let at = *at;
            let Some(target) = &written.write_to else { continue };
            let (form, head) = match proxy {
                Some(_) => (Form::Bare, format!("Proxy '{name}': failed to initialize stick-table")),
                None => (Form::LateParsing, format!("failed to initialize '{name}' stick-table")),
            };
            match find_target(&tables, &targets, at, &target.value) {
                Ok(found) => tables[at].write_to = Some(found),
                Err(why) => self.alert(target.span, form, format!("{head}: write-to: {why}.")),
            }
        }
        self.shared.indexes.tables.clear();
        *self.shared.tables.borrow_mut() = tables;
    }
}

/// A table declaration.
struct Declared<'a> {
    name: String,
    /// Index of the proxy that declares it.
    proxy: Option<usize>,
    written: &'a TableSpec,
    /// The `peers` section that synchronizes it.
    through: Option<&'a PeersSpec>,
}

/// Returns the `peers` section that synchronizes the table of a proxy.
fn through<'a>(spec: &'a Spec, proxy: &ProxySpec) -> Option<&'a PeersSpec> {
    let name = &proxy.stick_table.as_ref()?.peers.as_ref()?.value;
    spec.sections.peers.iter().find(|section| section.name.value == *name && shares(section))
}

/// Resolves the table of `write-to`.
fn find_target(tables: &[StickTable], names: &NameIndex, own: usize, name: &str) -> Result<usize, String> {
    let found = names.find(tables, name, |table| Some(&table.name));
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

/// Returns HAProxy's key size in bytes: for a string one more than its maximum length.
fn key_size(key: TableKeySpec) -> u32 {
    match key {
        TableKeySpec::Ipv4 | TableKeySpec::Integer => 4,
        TableKeySpec::Ipv6 => 16,
        TableKeySpec::Text(length) => length + 1,
        TableKeySpec::Binary(length) => length,
    }
}
