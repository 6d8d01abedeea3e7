//! The parties of a stream, its byte counts and its end: names, addresses, counters (configuration manual, section
//! 8.2.6).

use super::alias::{Alias, Kind, Restriction};
use super::date;
use super::escape::{Classes, Flags};
use super::number::{decimal, hexadecimal};
use super::printer::Printer;
use crate::record::{Endpoint, Record};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Prints an address without its port.
fn ip(endpoint: Endpoint, out: &mut Printer<'_>) {
    match endpoint {
        Endpoint::Absent => out.absent(),
        Endpoint::Unix(_) => out.name(Some(b"unix")),
        Endpoint::Inet(address) if out.flags.contains(Flags::HEX) => {
            out.word(|out| hexadecimal_ip(out, address.ip()));
        }
        Endpoint::Inet(address) => out.quoted_word(|out| match address {
            SocketAddr::V4(address) => dotted(out, *address.ip()),
            SocketAddr::V6(address) => {
                // Writing into a vector does not fail.
                let _ = write!(out, "{}", address.ip());
            }
        }),
    }
}

fn dotted(out: &mut Vec<u8>, address: Ipv4Addr) {
    for (place, byte) in address.octets().into_iter().enumerate() {
        if place > 0 {
            out.push(b'.');
        }
        decimal(out, u64::from(byte));
    }
}

fn hexadecimal_ip(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => hexadecimal(out, u64::from(address.to_bits()), 8),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            hexadecimal(out, (bits >> 64) as u64, 16);
            hexadecimal(out, bits as u64, 16);
        }
    }
}

fn port(endpoint: Endpoint, out: &mut Printer<'_>) {
    match endpoint {
        Endpoint::Absent => out.absent(),
        Endpoint::Inet(address) => out.number_or_hexadecimal(address.port().into(), 4),
        Endpoint::Unix(number) => out.number_or_hexadecimal(number.into(), 4),
    }
}

fn transport(record: &Record<'_>, out: &mut Printer<'_>) {
    out.text(|text| {
        text.put(record.frontend.as_bytes(), Classes::NAME);
        if record.tls_frontend {
            text.mark(b'~');
        }
    });
}

/// Appends the line about a connection that failed before any stream existed (section 8.2.5): client, date,
/// "frontend/bind:" and the error.
pub fn connection_error(record: &Record<'_>, reason: &str, out: &mut Vec<u8>) {
    let mut printer = Printer::plain(out, Flags::MANDATORY);
    ip(record.client, &mut printer);
    printer.out.push(b':');
    port(record.client, &mut printer);
    out.extend_from_slice(b" [");
    date::with_millis(out, record.accept_date, record.local_offset);
    out.extend_from_slice(b"] ");
    for part in [record.frontend, "/", record.bind_name, ": ", reason] {
        out.extend_from_slice(part.as_bytes());
    }
}

const fn address_row(name: &'static str, doc: &'static str, render: fn(&Record<'_>, &mut Printer<'_>)) -> Alias {
    Alias { name, kind: Kind::Ip, restriction: Restriction::None, at_end: false, doc, render }
}

const fn port_row(name: &'static str, doc: &'static str, render: fn(&Record<'_>, &mut Printer<'_>)) -> Alias {
    Alias { name, kind: Kind::Numeric, restriction: Restriction::None, at_end: false, doc, render }
}

const fn count_row(name: &'static str, doc: &'static str, render: fn(&Record<'_>, &mut Printer<'_>)) -> Alias {
    Alias { name, kind: Kind::Numeric, restriction: Restriction::None, at_end: true, doc, render }
}

const fn text_row(
    name: &'static str,
    restriction: Restriction,
    doc: &'static str,
    render: fn(&Record<'_>, &mut Printer<'_>),
) -> Alias {
    Alias { name, kind: Kind::String, restriction, at_end: false, doc, render }
}

/// Names, addresses, counts and states.
pub const TABLE: &[Alias] = &[
    count_row(
        "B",
        "bytes passed to the client, heads included, also of answers that Weir makes itself; 0 for a page that answers what was no request (400, 408)",
        |record, out| {
            out.growing(i64::try_from(record.bytes_to_client).unwrap_or(i64::MAX), record.partial);
        },
    ),
    count_row("U", "bytes received from the client, heads included", |record, out| {
        out.count(record.bytes_from_client);
    }),
    count_row("ac", "actconn: connections of the process", |record, out| out.count(record.actconn)),
    text_row("b", Restriction::None, "the backend's name", |record, out| {
        out.name(Some(record.backend.as_bytes()));
    }),
    count_row("bc", "beconn: streams of the backend, queued ones included", |record, out| {
        out.count(record.beconn);
    }),
    address_row("bi", "address that the connection to the server comes from", |record, out| {
        ip(record.backend_source, out);
    }),
    port_row("bp", "port that the connection to the server comes from", |record, out| {
        port(record.backend_source, out);
    }),
    count_row("bq", "requests processed before this one in the backend's queue", |record, out| {
        out.count(record.backend_queue);
    }),
    address_row("ci", "the client's address", |record, out| ip(record.client, out)),
    port_row("cp", "the client's port", |record, out| port(record.client, out)),
    text_row("f", Restriction::None, "the frontend's name", |record, out| {
        out.name(Some(record.frontend.as_bytes()));
    }),
    count_row("fc", "feconn: connections of the frontend", |record, out| out.count(record.feconn)),
    address_row("fi", "address that the client connected to", |record, out| {
        ip(record.destination, out);
    }),
    port_row("fp", "port that the client connected to", |record, out| port(record.destination, out)),
    text_row("ft", Restriction::None, "the frontend's name, with \"~\" behind it for TLS", transport),
    count_row("rc", "connection attempts that were repeated; \"+\" before it after a redispatch", |record, out| {
        out.growing(record.retries.into(), record.redispatched);
    }),
    text_row("s", Restriction::None, "the server's name, \"<NOSRV>\" or \"<STATS>\"", |record, out| {
        out.name(Some(record.server.as_bytes()));
    }),
    count_row("sc", "srv_conn: streams on the server", |record, out| out.count(record.srv_conn)),
    address_row("si", "the server's address", |record, out| ip(record.server_address, out)),
    port_row("sp", "the server's port", |record, out| port(record.server_address, out)),
    count_row("sq", "requests processed before this one in the server's queue", |record, out| {
        out.count(record.server_queue);
    }),
    text_row("sslc", Restriction::Tls, "cipher suite with the client", |record, out| {
        out.name(record.tls_cipher.map(str::as_bytes));
    }),
    text_row("sslv", Restriction::Tls, "version of TLS with the client", |record, out| {
        out.name(record.tls_version.map(str::as_bytes));
    }),
    Alias {
        name: "ST",
        kind: Kind::Numeric,
        restriction: Restriction::None,
        at_end: false,
        doc: "status sent to the client; -1: none, 0 in TCP mode",
        render: |record, out| out.number(record.status.into()),
    },
    Alias {
        name: "ts",
        kind: Kind::String,
        restriction: Restriction::None,
        at_end: true,
        doc: "termination state, two characters",
        render: |record, out| out.word(|out| out.extend_from_slice(&record.termination[..2])),
    },
    text_row("tsc", Restriction::Http, "termination state with the two characters about cookies", |record, out| {
        out.word(|out| out.extend_from_slice(&record.termination));
    }),
];
