//! Compiles stick tables: declarations become parameters, and references between tables are resolved. Must never look
//! at a rule.

use super::Compiler;
use super::peers::{global_name, shares};
use super::table_seat::TableSeat;
use base::NameIndex;
use config::diagnostic::Form;
use config::spec::{PeersSpec, ProxySpec, Spec, TableKeySpec, TableSpec};
use live::table::StickTable;
use std::collections::HashSet;

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
        let sums = sums(&declared);
        let plan = |one: &Declared<'_>| StickTable {
            shared: one.through.is_some(),
            summed: sums.contains(&one.name),
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

/// Returns the names of the tables that sum the values of another one.
fn sums(declared: &[Declared<'_>]) -> HashSet<String> {
    let own_values: HashSet<AddendKey<'_>> = declared.iter().filter_map(Declared::as_addend).collect();
    let is_sum = |one: &&Declared<'_>| one.addend().is_some_and(|addend| own_values.contains(&addend));
    declared.iter().filter(is_sum).map(|one| one.name.clone()).collect()
}

/// A table whose values can be summed: one of its section's own tables, or the table of a proxy.
#[derive(PartialEq, Eq, Hash)]
struct AddendKey<'a> {
    section: &'a str,
    of_proxy: bool,
    name: &'a str,
}

impl Declared<'_> {
    fn key<'a>(&'a self, name: &'a str) -> Option<AddendKey<'a>> {
        Some(AddendKey { section: &self.through?.name.value, of_proxy: self.proxy.is_some(), name })
    }

    /// Returns it as a table whose values can be summed, if it is shared.
    fn as_addend(&self) -> Option<AddendKey<'_>> {
        self.key(&self.name)
    }

    /// Returns the table whose values it sums, if its name and its options say so. That table need not exist: then it is
    /// a table as any other.
    fn addend(&self) -> Option<AddendKey<'_>> {
        let bare = self.name.strip_suffix(TableSpec::SUM_SUFFIX)?;
        self.written.is_sum(&self.name).then(|| self.key(bare))?
    }
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

#[cfg(test)]
mod tests {
    /// Compiles a configuration; returns the names of the tables that hold sums.
    fn sums(text: &str) -> Vec<String> {
        let file = config::InputFile { name: "x".into(), bytes: text.as_bytes().into() };
        let options = config::LoadOptions { local_peer: "me".into(), ..config::LoadOptions::default() };
        let loaded = config::load(&[file], config::environment::Environment::new(), &options);
        let (mut found, limits) = (loaded.diagnostics.clone(), crate::SystemLimits::default());
        let program = crate::compile(&loaded.spec, &mut crate::compile::tests::Names, &limits, &mut found);
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.tables.iter().filter(|table| table.summed).map(|table| table.name.to_string()).collect()
    }

    #[test]
    fn a_table_sums_only_if_there_are_values_in_its_section() {
        let text = "peers p\n peer me 192.0.2.1:1\n table t type ip size 10 store gpc0\n table t.agg type ip size 10 \
                    store gpc0\n table none.agg type ip size 10 store gpc0\n table b.agg type ip size 10 store gpc0\n \
                    table r type ip size 10\n table r.agg type ip size 10 recv-only\npeers q\n peer me 192.0.2.1:2\n \
                    table t.agg type ip size 10 store gpc0\n\
                    backend b\n stick-table type ip size 10 store gpc0 peers p\n\
                    backend b.agg\n stick-table type ip size 10 store gpc0 peers p\n\
                    backend c\n stick-table type ip size 10 store gpc0 peers p\n\
                    backend c.agg\n stick-table type ip size 10 store gpc0 peers q\n\
                    backend d\n stick-table type ip size 10 store gpc0\n\
                    backend d.agg\n stick-table type ip size 10 store gpc0 peers q\n";
        assert_eq!(sums(text), ["p/t.agg", "b.agg"]);
    }
}
