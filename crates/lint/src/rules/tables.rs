//! Counters of stick tables that never have a value. Must never report a counter of a proxy that no frontend uses.

use crate::finding::Findings;
use crate::model::{
    CounterAccess, CounterRead, Datum, Model, Proxy, Statement, StatementKind, counter_of_action, counter_of_call,
    samples_in,
};
use crate::rule::Rule;
use config::span::Span;

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "counter-not-stored",
        doc: "a counter is read from a stick table that does not store it, so that it never has a value",
        check: not_stored,
    },
    Rule {
        name: "counter-not-tracked",
        doc: "a counter is read from an entry that no 'track-sc' rule tracks, so that it never has a value",
        check: not_tracked,
    },
    Rule {
        name: "tracked-not-read",
        doc: "a 'track-sc' rule fills a stick table that nothing reads, not even a command",
        check: not_read,
    },
];

/// Calls `take` with every use of an entry in a proxy's own lines.
fn each_read(proxy: &Proxy<'_>, mut take: impl FnMut(&CounterRead, Span)) {
    let calls = proxy.samples.iter().flat_map(|sample| sample.calls.iter().map(|call| (call, sample.span)));
    for (call, span) in calls {
        if let Some(read) = counter_of_call(call) {
            take(&read, span);
        }
    }
    for statement in proxy.statements.iter().filter(|statement| !statement.line.inherited) {
        if let (Some(read), Some(word)) = (counter_of_action(statement.text(0)), statement.words.first()) {
            take(&read, word.span);
        }
    }
}

/// Returns the proxies whose rules may read counters, each with those whose rules may track for it.
fn readers<'m, 'a>(model: &'m Model<'a>) -> impl Iterator<Item = (&'m Proxy<'a>, Vec<&'m Proxy<'a>>)> {
    let used = model.proxies.iter().filter(|proxy| proxy.has_clients() || model.frontends_of(proxy).next().is_some());
    used.filter(|proxy| !proxy.spec.disabled).map(|proxy| (proxy, model.company_of(proxy)))
}

fn not_stored(model: &Model<'_>, findings: &mut Findings) {
    for (proxy, company) in readers(model) {
        each_read(proxy, |read, span| {
            let Some(datum) = read.datum else { return };
            let names: Vec<&str> = match &read.access {
                CounterAccess::Keyed { table } | CounterAccess::Tracked { table: table @ Some(_), .. } => {
                    vec![table.as_deref().unwrap_or(proxy.name())]
                }
                CounterAccess::Tracked { number, table: None } => company
                    .iter()
                    .flat_map(|other| &other.tracks)
                    .filter(|track| track.number == *number)
                    .map(|track| track.table.as_str())
                    .collect(),
            };
            let tables: Vec<_> = names.into_iter().filter_map(|name| model.table(name)).collect();
            if tables.is_empty() || tables.iter().any(|table| table.serves(read)) {
                return;
            }
            let mut names: Vec<String> = tables.iter().map(|table| format!("'{}'", table.name)).collect();
            names.dedup();
            let (many, do_not) = if names.len() == 1 { ("", "does not") } else { ("s", "do not") };
            let message = format!(
                "'{}' needs {}, which the stick table{many} {} {do_not} store",
                read.name,
                stored_name(datum),
                names.join(", ")
            );
            findings.add_with_hint(span, message, "add it to 'store' of the 'stick-table' line");
        });
    }
}

/// Returns a data type as in `store`.
fn stored_name(datum: Datum) -> String {
    let name = datum.kind.name();
    if datum.kind.is_array() { format!("element {} of '{name}'", datum.element) } else { format!("'{name}'") }
}

fn not_tracked(model: &Model<'_>, findings: &mut Findings) {
    for (proxy, company) in readers(model) {
        each_read(proxy, |read, span| {
            let CounterAccess::Tracked { number, .. } = &read.access else { return };
            if company.iter().flat_map(|other| &other.tracks).any(|track| track.number == *number) {
                return;
            }
            let message =
                format!("'{}' uses an entry that no 'track-sc{number}' rule of this stream tracks", read.name);
            findings.add(span, message);
        });
    }
}

fn not_read(model: &Model<'_>, findings: &mut Findings) {
    // Commands and scripts read every table; lines of 'defaults' sections read those of other sections.
    let in_defaults = model.document.sections.iter().filter(|section| section.line.keyword() == "defaults");
    let mut defaults = in_defaults.flat_map(|section| &section.body).flat_map(|line| samples_in(&line.words));
    let is_open = model.has_scripts() || !model.spec.global.runtime.sockets.is_empty();
    if is_open || defaults.any(|sample| sample.calls.iter().any(|call| counter_of_call(call).is_some())) {
        return;
    }
    for proxy in &model.proxies {
        for track in proxy.tracks.iter().filter(|track| !track.inherited) {
            let Some(table) = model.table(&track.table) else { continue };
            let is_shared = table.spec.peers.is_some() || table.spec.write_to.is_some() || table.name.contains('/');
            if !is_shared && !model.proxies.iter().any(|reader| reads(model, reader, &table.name)) {
                let message = format!("nothing reads the stick table '{}', which this rule fills", table.name);
                findings.add(track.span, message);
            }
        }
    }
}

/// Whether a line of a proxy uses the entries of a table.
fn reads(model: &Model<'_>, proxy: &Proxy<'_>, table: &str) -> bool {
    let own = proxy.name() == table;
    let is_stick = |statement: &Statement<'_>| statement.kind == StatementKind::Stick;
    if proxy.statements.iter().any(|one| is_stick(one) && (own || one.words.iter().any(|word| word.text == table))) {
        return true;
    }
    let mut is_read = false;
    each_read(proxy, |read, _| {
        is_read |= match &read.access {
            CounterAccess::Keyed { table: named } => named.as_deref().map_or(own, |named| named == table),
            CounterAccess::Tracked { table: Some(named), .. } => named == table,
            CounterAccess::Tracked { number, table: None } => {
                let company = model.company_of(proxy);
                let mut tracks = company.iter().flat_map(|other| &other.tracks);
                tracks.any(|track| track.number == *number && track.table == table)
            }
        };
    });
    let calls = || proxy.samples.iter().flat_map(|sample| &sample.calls);
    is_read || calls().any(|call| call.name == "in_table" && call.arguments.iter().flatten().any(|name| name == table))
}
