//! Identification of the line itself: process, host, counters, identifiers (configuration manual, section 8.2.6).

use super::printer::Printer;
use super::row::{Alias, Kind, Restriction};
use crate::record::Record;

const fn row(name: &'static str, kind: Kind, doc: &'static str, render: fn(&Record<'_>, &mut Printer<'_>)) -> Alias {
    Alias { name, kind, restriction: Restriction::None, at_end: false, doc, render }
}

/// Process, host, counters and identifiers.
pub const TABLE: &[Alias] = &[
    row("H", Kind::String, "the host's name", |record, out| {
        out.name(Some(record.hostname.as_bytes()));
    }),
    Alias {
        name: "ID",
        kind: Kind::String,
        restriction: Restriction::None,
        at_end: true,
        doc: "unique-id",
        render: |record, out| out.name(record.unique_id),
    },
    row("lc", Kind::Numeric, "number of lines that the frontend logged before this one", |record, out| {
        out.number_or_hexadecimal(record.log_counter.into(), 4);
    }),
    Alias {
        name: "OG",
        kind: Kind::String,
        restriction: Restriction::Log,
        at_end: false,
        doc: "origin of the line: \"txn_close\" and others",
        render: |record, out| out.name(Some(record.origin.name().as_bytes())),
    },
    row("pid", Kind::Numeric, "process ID", |record, out| out.number_or_hexadecimal(record.pid.into(), 4)),
    row("rt", Kind::Numeric, "requests (HTTP) or sessions (TCP) before this one", |record, out| {
        out.number_or_hexadecimal(record.request_counter.into(), 4);
    }),
];
