//! Dates and timers (configuration manual, sections 8.2.6 and 8.4).

use super::alias::{Alias, Kind, Restriction};
use super::date;
use super::escape::Flags;
use super::number::{decimal, hexadecimal, signed, three};
use super::record::Record;

const fn date_row(
    name: &'static str,
    restriction: Restriction,
    doc: &'static str,
    render: fn(&Record<'_>, Flags, &mut Vec<u8>),
) -> Alias {
    Alias { name, kind: Kind::Date, restriction, at_end: false, doc, render }
}

const fn timer_row(
    name: &'static str,
    restriction: Restriction,
    doc: &'static str,
    render: fn(&Record<'_>, Flags, &mut Vec<u8>),
) -> Alias {
    Alias { name, kind: Kind::Numeric, restriction, at_end: true, doc, render }
}

/// Dates.
pub const DATES: &[Alias] = &[
    date_row("T", Restriction::None, "accept date, UTC, with zone", |record, _, out| {
        date::with_zone(out, record.accept_date, 0);
    }),
    date_row("Tl", Restriction::None, "accept date, local time, with zone", |record, _, out| {
        date::with_zone(out, record.accept_date, record.local_offset);
    }),
    Alias {
        name: "Ts",
        kind: Kind::Numeric,
        restriction: Restriction::None,
        at_end: false,
        doc: "accept date as a UNIX timestamp, seconds",
        render: |record, flags, out| {
            if flags.contains(Flags::HEX) {
                hexadecimal(out, record.accept_date.seconds as u64, 4);
            } else {
                signed(out, record.accept_date.seconds);
            }
        },
    },
    date_row("t", Restriction::None, "accept date, local time, with milliseconds", |record, _, out| {
        date::with_millis(out, record.accept_date, record.local_offset);
    }),
    Alias {
        name: "ms",
        kind: Kind::Numeric,
        restriction: Restriction::None,
        at_end: false,
        doc: "milliseconds of the accept date, three digits",
        render: |record, flags, out| {
            if flags.contains(Flags::HEX) {
                hexadecimal(out, u64::from(record.accept_date.millis()), 2);
            } else {
                three(out, record.accept_date.millis());
            }
        },
    },
    date_row("tr", Restriction::Http, "request date, local time, with milliseconds", |record, _, out| {
        date::with_millis(out, record.request_date, record.local_offset);
    }),
    date_row("trg", Restriction::Http, "request date, UTC, with zone", |record, _, out| {
        date::with_zone(out, record.request_date, 0);
    }),
    date_row("trl", Restriction::Http, "request date, local time, with zone", |record, _, out| {
        date::with_zone(out, record.request_date, record.local_offset);
    }),
];

/// A total under `option logasap` says that it will still grow.
fn total(out: &mut Vec<u8>, record: &Record<'_>, millis: i64) {
    if record.partial {
        out.push(b'+');
    }
    signed(out, millis);
}

/// Timers, in milliseconds; -1 where that point was not reached.
pub const TIMERS: &[Alias] = &[
    timer_row("Ta", Restriction::Http, "active time: from the request's first byte to the end", |record, _, out| {
        total(out, record, record.timers.active);
    }),
    timer_row("Tc", Restriction::None, "time to connect to the server, retries included", |record, _, out| {
        signed(out, record.timers.connect);
    }),
    timer_row("Td", Restriction::None, "time to pass the answer on: Tt - (Tq + Tw + Tc + Tr)", |record, _, out| {
        signed(out, record.timers.data);
    }),
    timer_row("Th", Restriction::None, "time for the client's handshakes (TLS, PROXY protocol)", |record, _, out| {
        signed(out, record.timers.handshake);
    }),
    timer_row("Ti", Restriction::Http, "idle time before the request's first byte", |record, _, out| {
        signed(out, record.timers.idle);
    }),
    timer_row("Tq", Restriction::Http, "Th + Ti + TR", |record, _, out| signed(out, record.timers.query())),
    timer_row("TR", Restriction::Http, "time to receive the whole request head", |record, _, out| {
        signed(out, record.timers.request);
    }),
    timer_row("Tr", Restriction::Http, "the server's response time, to the end of its head", |record, _, out| {
        signed(out, record.timers.response);
    }),
    timer_row("Tt", Restriction::None, "total time from accept to the last close", |record, _, out| {
        total(out, record, record.timers.total);
    }),
    timer_row("Tu", Restriction::None, "total time as the user sees it: Tt - Ti", |record, _, out| {
        total(out, record, record.timers.user());
    }),
    timer_row("Tw", Restriction::None, "time in queues", |record, _, out| signed(out, record.timers.queue)),
];

/// Appends a byte count, which `option logasap` marks like a total.
pub fn bytes(out: &mut Vec<u8>, partial: bool, count: u64) {
    if partial {
        out.push(b'+');
    }
    decimal(out, count);
}
