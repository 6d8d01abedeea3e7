//! What identifies the line itself: process, host, counters, identifiers (configuration manual, section 8.2.6).

use super::alias::{Alias, Kind, Restriction};
use super::escape::{Encoding, Flags, optional, string};
use super::number::{decimal, hexadecimal};
use super::record::Record;

/// A number that `X` prints in at least four hexadecimal digits.
fn number(out: &mut Vec<u8>, value: u32, flags: Flags) {
    if flags.contains(Flags::HEX) {
        hexadecimal(out, u64::from(value), 4);
    } else {
        decimal(out, u64::from(value));
    }
}

const fn row(name: &'static str, kind: Kind, doc: &'static str, render: fn(&Record<'_>, Flags, &mut Vec<u8>)) -> Alias {
    Alias { name, kind, restriction: Restriction::None, at_end: false, doc, render }
}

/// Process, host, counters and identifiers.
pub const TABLE: &[Alias] = &[
    row("H", Kind::String, "the host's name", |record, flags, out| {
        optional(out, Some(record.hostname.as_bytes()), Encoding::NAME, flags);
    }),
    Alias {
        name: "ID",
        kind: Kind::String,
        restriction: Restriction::None,
        at_end: true,
        doc: "unique-id",
        render: |record, flags, out| optional(out, record.unique_id, Encoding::NAME, flags),
    },
    row("lc", Kind::Numeric, "lines that the frontend has logged before", |record, flags, out| {
        number(out, record.log_counter, flags);
    }),
    Alias {
        name: "OG",
        kind: Kind::String,
        restriction: Restriction::Log,
        at_end: false,
        doc: "where the line is written: \"txn_close\" and others",
        render: |record, flags, out| string(out, record.origin.name().as_bytes(), Encoding::NAME, flags),
    },
    row("pid", Kind::Numeric, "the process", |record, flags, out| number(out, record.pid, flags)),
    row("rt", Kind::Numeric, "requests (HTTP) or sessions (TCP) before this one", |record, flags, out| {
        number(out, record.request_counter, flags);
    }),
];
