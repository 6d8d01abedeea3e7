//! Dates and timers (configuration manual, sections 8.2.6 and 8.4).

use super::date;
use super::printer::Printer;
use super::row::{Alias, Kind, Restriction};
use crate::record::Record;

const fn date_row(
    name: &'static str,
    restriction: Restriction,
    doc: &'static str,
    render: fn(&Record<'_>, &mut Printer<'_>),
) -> Alias {
    Alias { name, kind: Kind::Date, restriction, at_end: false, doc, render }
}

const fn timer_row(
    name: &'static str,
    restriction: Restriction,
    doc: &'static str,
    render: fn(&Record<'_>, &mut Printer<'_>),
) -> Alias {
    Alias { name, kind: Kind::Numeric, restriction, at_end: true, doc, render }
}

/// Dates.
pub const DATES: &[Alias] = &[
    date_row("T", Restriction::None, "accept date, UTC, with zone", |record, out| {
        out.word(|out| date::with_zone(out, record.accept_date, 0));
    }),
    date_row("Tl", Restriction::None, "accept date, local time, with zone", |record, out| {
        out.word(|out| date::with_zone(out, record.accept_date, record.local_offset));
    }),
    Alias {
        name: "Ts",
        kind: Kind::Numeric,
        restriction: Restriction::None,
        at_end: false,
        doc: "accept date as a UNIX timestamp, seconds",
        render: |record, out| out.number_or_hexadecimal(record.accept_date.seconds.max(0) as u64, 4),
    },
    date_row("t", Restriction::None, "accept date, local time, with milliseconds", |record, out| {
        out.word(|out| date::with_millis(out, record.accept_date, record.local_offset));
    }),
    Alias {
        name: "ms",
        kind: Kind::Numeric,
        restriction: Restriction::None,
        at_end: false,
        doc: "milliseconds of the accept date, three digits",
        render: |record, out| out.millis(record.accept_date.millis()),
    },
    date_row("tr", Restriction::Http, "request date, local time, with milliseconds", |record, out| {
        out.word(|out| date::with_millis(out, record.request_date, record.local_offset));
    }),
    date_row("trg", Restriction::Http, "request date, UTC, with zone", |record, out| {
        out.word(|out| date::with_zone(out, record.request_date, 0));
    }),
    date_row("trl", Restriction::Http, "request date, local time, with zone", |record, out| {
        out.word(|out| date::with_zone(out, record.request_date, record.local_offset));
    }),
];

/// Timers in milliseconds; -1 if the point was not reached.
pub const TIMERS: &[Alias] = &[
    timer_row("Ta", Restriction::Http, "active time: from the request's first byte to the end", |record, out| {
        out.growing(record.timers.active, record.partial);
    }),
    timer_row("Tc", Restriction::None, "time to connect to the server, retries included", |record, out| {
        out.number(record.timers.connect);
    }),
    timer_row(
        "Td",
        Restriction::None,
        "data transfer time of the response: Tt - (Tq + Tw + Tc + Tr)",
        |record, out| {
            out.number(record.timers.data);
        },
    ),
    timer_row("Th", Restriction::None, "time for the client's handshakes (TLS, PROXY protocol)", |record, out| {
        out.number(record.timers.handshake);
    }),
    timer_row(
        "Ti",
        Restriction::Http,
        "idle time before the request's first byte; over HTTP/2, time from the start of the previous stream to the request's header",
        |record, out| {
            out.number(record.timers.idle);
        },
    ),
    timer_row("Tq", Restriction::Http, "Th + Ti + TR", |record, out| out.number(record.timers.query())),
    timer_row("TR", Restriction::Http, "time to receive the complete request header", |record, out| {
        out.number(record.timers.request);
    }),
    timer_row(
        "Tr",
        Restriction::Http,
        "the server's response time, up to the end of the response header",
        |record, out| {
            out.number(record.timers.response);
        },
    ),
    timer_row("Tt", Restriction::None, "total time from accept to the last close", |record, out| {
        out.growing(record.timers.total, record.partial);
    }),
    timer_row("Tu", Restriction::None, "total time as the user sees it: Tt - Ti", |record, out| {
        out.growing(record.timers.user(), record.partial);
    }),
    timer_row("Tw", Restriction::None, "time in queues", |record, out| out.number(record.timers.queue)),
];
