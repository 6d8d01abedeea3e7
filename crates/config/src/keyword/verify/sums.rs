//! Checks of tables of sums (`X.agg`, Weir's own): the table whose values are summed stores the same data. Must
//! never check a table that is not shared through a `peers` section.

use crate::diagnostic::{Diagnostic, Severity};
use crate::keyword::proxy::ProxyDraft;
use crate::keyword::report::Report;
use crate::span::Span;
use crate::spec::{DataKind, PeersSpec, StoreSpec, TableKeySpec, TableSpec};

/// Maximum number of peers whose values are summed.
const MOST_PEERS: usize = 4_096;
/// Maximum length of a table's name in bytes: it is announced to peers in one message.
const LONGEST_NAME: usize = 200;
/// Data that have no sum.
const NOT_SUMMED: [DataKind; 4] = [DataKind::ServerId, DataKind::ServerKey, DataKind::Gpt0, DataKind::Gpt];

/// A table that is shared through a section.
struct SharedTable<'a> {
    name: &'a str,
    span: Span,
    table: &'a TableSpec,
}

/// Checks the tables of sums of all sections.
pub(in crate::keyword) fn sums(drafts: &[ProxyDraft], sections: &[PeersSpec], report: &mut Report<'_>) {
    for section in sections {
        let own = section.tables.iter();
        let own: Vec<SharedTable<'_>> =
            own.map(|one| SharedTable { name: &one.name.value, span: one.name.span, table: &one.table }).collect();
        let drafts = drafts.iter().filter(|draft| !draft.spec.disabled && !draft.gaps.base);
        let of_proxies = drafts.filter_map(|draft| {
            let table = draft.spec.stick_table.as_ref()?;
            let is_it = table.peers.as_ref().is_some_and(|peers| peers.value == section.name.value);
            is_it.then_some(SharedTable { name: &draft.spec.name.value, span: table.span, table })
        });
        let of_proxies: Vec<SharedTable<'_>> = of_proxies.collect();
        for tables in [own, of_proxies] {
            for sum in tables.iter().filter(|one| one.table.is_sum(one.name)) {
                let Some(addend) = addend(sum, &tables) else {
                    report.push(sums_nothing(sum, section));
                    continue;
                };
                let found = check(sum, addend, &tables).and_then(|()| check_peers(section));
                if let Err(Fault { why, hint }) = found {
                    let message =
                        format!("table '{}' of sums over the peers '{}': {why}.", sum.name, section.name.value);
                    let mut diagnostic = Diagnostic::alert(sum.span, message);
                    diagnostic.hint = Some(hint);
                    report.push(diagnostic);
                }
            }
        }
    }
}

/// A table of HAProxy may have such a name: it is one as any other.
fn sums_nothing(table: &SharedTable<'_>, section: &PeersSpec) -> Diagnostic {
    let bare = table.name.strip_suffix(TableSpec::SUM_SUFFIX).unwrap_or_default();
    let message = format!(
        "table '{}' of the peers '{}' sums nothing, since no table '{bare}' is shared through the same section: it is a \
         plain table.",
        table.name, section.name.value
    );
    let hint =
        format!("to sum over all peers, declare '{bare}' and share it; a table that receives sums is 'recv-only'");
    Diagnostic::new(Severity::Notice, table.span, message).with_hint(hint)
}

/// Why a table cannot hold sums, and what is possible.
struct Fault {
    why: String,
    hint: String,
}

fn fault(why: impl Into<String>, hint: impl Into<String>) -> Result<(), Fault> {
    Err(Fault { why: why.into(), hint: hint.into() })
}

/// Returns the table whose values a table sums.
fn addend<'t, 'a>(sum: &SharedTable<'_>, tables: &'t [SharedTable<'a>]) -> Option<&'t SharedTable<'a>> {
    let bare = sum.name.strip_suffix(TableSpec::SUM_SUFFIX)?;
    tables.iter().find(|one| one.name == bare)
}

fn check(sum: &SharedTable<'_>, addend: &SharedTable<'_>, tables: &[SharedTable<'_>]) -> Result<(), Fault> {
    let bare = addend.name;
    if sum.name.len() > LONGEST_NAME {
        return fault("its name is too long", format!("it has at most {LONGEST_NAME} bytes"));
    }
    if addend.table.is_sum(bare) && self::addend(addend, tables).is_some() {
        return fault(format!("table '{bare}' holds sums itself"), "sum a table with own values");
    }
    for (name, table) in [(bare, addend.table), (sum.name, sum.table)] {
        if table.write_to.is_some() {
            return fault(format!("'write-to' of '{name}' has no effect"), "remove 'write-to'");
        }
    }
    if addend.table.recv_only {
        return fault(
            format!("'{bare}' is 'recv-only' and thus has no own values"),
            format!("remove it from '{bare}'"),
        );
    }
    if sum.table.key != addend.table.key {
        let (ours, theirs) = (written(sum.table.key), written(addend.table.key));
        return fault(format!("its type '{ours}' is not that of '{bare}'"), format!("write 'type {theirs}'"));
    }
    if sum.table.byte_rate_factor != addend.table.byte_rate_factor {
        let hint = format!("write 'brates-factor {}'", addend.table.byte_rate_factor);
        return fault(format!("its 'brates-factor' is not that of '{bare}'"), hint);
    }
    check_stores(sum, addend)
}

/// Writes a type as in `type`.
fn written(key: TableKeySpec) -> String {
    match key {
        TableKeySpec::Text(length) | TableKeySpec::Binary(length) => format!("{} len {length}", key.name()),
        _ => key.name().to_owned(),
    }
}

fn check_stores(sum: &SharedTable<'_>, addend: &SharedTable<'_>) -> Result<(), Fault> {
    let is_summed = |store: &&StoreSpec| !NOT_SUMMED.contains(&store.kind);
    let possible: Vec<String> = addend.table.store.iter().filter(is_summed).map(ToString::to_string).collect();
    let hint = if possible.is_empty() {
        format!("'{}' stores nothing that can be summed", addend.name)
    } else {
        format!("possible are {}", possible.join(", "))
    };
    for store in &sum.table.store {
        if !is_summed(&store) {
            return fault(format!("'{}' has no sum", store.kind.name()), hint);
        }
        if !addend.table.store.contains(store) {
            return fault(format!("'{}' does not store {store}", addend.name), hint);
        }
    }
    Ok(())
}

fn check_peers(section: &PeersSpec) -> Result<(), Fault> {
    let peers = section.peers.len();
    if peers > MOST_PEERS {
        let hint = format!("at most {MOST_PEERS} peers are possible; let them be peers of a few instances that sum");
        return fault(format!("the section has {peers} peers"), hint);
    }
    Ok(())
}
