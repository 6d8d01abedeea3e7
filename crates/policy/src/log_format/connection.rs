//! Who talks to whom, how much, and how it ended: names, addresses, counts (configuration manual, section 8.2.6).

use super::alias::{Alias, Kind, Restriction};
use super::date;
use super::escape::{Encoding, Flags, absent, optional, quoted, string};
use super::number::{decimal, hexadecimal, signed};
use super::record::{Endpoint, Record};
use super::timer::bytes;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Appends an address without its port.
fn ip(out: &mut Vec<u8>, endpoint: Endpoint, flags: Flags) {
    match endpoint {
        Endpoint::Absent => absent(out, flags),
        Endpoint::Unix(_) => string(out, b"unix", Encoding::NAME, flags),
        Endpoint::Inet(address) if flags.contains(Flags::HEX) => hexadecimal_ip(out, address.ip()),
        Endpoint::Inet(address) => quoted(out, flags, |out| match address {
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

fn port(out: &mut Vec<u8>, endpoint: Endpoint, flags: Flags) {
    let number = match endpoint {
        Endpoint::Absent => return absent(out, flags),
        Endpoint::Inet(address) => u64::from(address.port()),
        Endpoint::Unix(number) => u64::from(number),
    };
    if flags.contains(Flags::HEX) {
        hexadecimal(out, number, 4);
    } else {
        decimal(out, number);
    }
}

fn transport(record: &Record<'_>, flags: Flags, out: &mut Vec<u8>) {
    quoted(out, flags, |out| {
        string(out, record.frontend.as_bytes(), Encoding::NAME, flags.without(Flags::QUOTE));
        if record.tls_frontend {
            out.push(b'~');
        }
    });
}

fn retries(record: &Record<'_>, _: Flags, out: &mut Vec<u8>) {
    if record.redispatched {
        out.push(b'+');
    }
    decimal(out, u64::from(record.retries));
}

/// Appends the line about a connection that failed before any stream existed (section 8.2.5): client, date, "frontend/bind:"
/// and what went wrong.
pub fn connection_error(record: &Record<'_>, reason: &str, out: &mut Vec<u8>) {
    ip(out, record.client, Flags::NONE);
    out.push(b':');
    port(out, record.client, Flags::NONE);
    out.extend_from_slice(b" [");
    date::with_millis(out, record.accept_date, record.local_offset);
    out.extend_from_slice(b"] ");
    for part in [record.frontend, "/", record.bind_name, ": ", reason] {
        out.extend_from_slice(part.as_bytes());
    }
}

const fn address_row(name: &'static str, doc: &'static str, render: fn(&Record<'_>, Flags, &mut Vec<u8>)) -> Alias {
    Alias { name, kind: Kind::Ip, restriction: Restriction::None, at_end: false, doc, render }
}

const fn port_row(name: &'static str, doc: &'static str, render: fn(&Record<'_>, Flags, &mut Vec<u8>)) -> Alias {
    Alias { name, kind: Kind::Numeric, restriction: Restriction::None, at_end: false, doc, render }
}

const fn count_row(name: &'static str, doc: &'static str, render: fn(&Record<'_>, Flags, &mut Vec<u8>)) -> Alias {
    Alias { name, kind: Kind::Numeric, restriction: Restriction::None, at_end: true, doc, render }
}

const fn text_row(
    name: &'static str,
    restriction: Restriction,
    doc: &'static str,
    render: fn(&Record<'_>, Flags, &mut Vec<u8>),
) -> Alias {
    Alias { name, kind: Kind::String, restriction, at_end: false, doc, render }
}

/// Names, addresses, counts and states.
pub const TABLE: &[Alias] = &[
    count_row("B", "bytes passed to the client, heads included", |record, _, out| {
        bytes(out, record.partial, record.bytes_to_client);
    }),
    count_row("U", "bytes received from the client, heads included", |record, _, out| {
        decimal(out, record.bytes_from_client);
    }),
    count_row("ac", "actconn: connections of the process", |record, _, out| decimal(out, u64::from(record.actconn))),
    text_row("b", Restriction::None, "the backend's name", |record, flags, out| {
        optional(out, Some(record.backend.as_bytes()), Encoding::NAME, flags);
    }),
    count_row("bc", "beconn: streams of the backend, queued ones included", |record, _, out| {
        decimal(out, u64::from(record.beconn));
    }),
    address_row("bi", "address that the connection to the server comes from", |record, flags, out| {
        ip(out, record.backend_source, flags);
    }),
    port_row("bp", "port that the connection to the server comes from", |record, flags, out| {
        port(out, record.backend_source, flags);
    }),
    count_row("bq", "requests processed before this one in the backend's queue", |record, _, out| {
        decimal(out, u64::from(record.backend_queue));
    }),
    address_row("ci", "the client's address", |record, flags, out| ip(out, record.client, flags)),
    port_row("cp", "the client's port", |record, flags, out| port(out, record.client, flags)),
    text_row("f", Restriction::None, "the frontend's name", |record, flags, out| {
        optional(out, Some(record.frontend.as_bytes()), Encoding::NAME, flags);
    }),
    count_row("fc", "feconn: connections of the frontend", |record, _, out| decimal(out, u64::from(record.feconn))),
    address_row("fi", "address that the client connected to", |record, flags, out| {
        ip(out, record.destination, flags);
    }),
    port_row("fp", "port that the client connected to", |record, flags, out| port(out, record.destination, flags)),
    text_row("ft", Restriction::None, "the frontend's name, with \"~\" behind it for TLS", transport),
    count_row("rc", "connection attempts that were repeated; \"+\" before it after a redispatch", retries),
    text_row("s", Restriction::None, "the server's name, \"<NOSRV>\" or \"<STATS>\"", |record, flags, out| {
        optional(out, Some(record.server.as_bytes()), Encoding::NAME, flags);
    }),
    count_row("sc", "srv_conn: streams on the server", |record, _, out| decimal(out, u64::from(record.srv_conn))),
    address_row("si", "the server's address", |record, flags, out| ip(out, record.server_address, flags)),
    port_row("sp", "the server's port", |record, flags, out| port(out, record.server_address, flags)),
    count_row("sq", "requests processed before this one in the server's queue", |record, _, out| {
        decimal(out, u64::from(record.server_queue));
    }),
    text_row("sslc", Restriction::Tls, "cipher suite with the client", |record, flags, out| {
        optional(out, record.tls_cipher.map(str::as_bytes), Encoding::NAME, flags);
    }),
    text_row("sslv", Restriction::Tls, "version of TLS with the client", |record, flags, out| {
        optional(out, record.tls_version.map(str::as_bytes), Encoding::NAME, flags);
    }),
    Alias {
        name: "ST",
        kind: Kind::Numeric,
        restriction: Restriction::None,
        at_end: false,
        doc: "status sent to the client; -1: none, 0 in TCP mode",
        render: |record, _, out| signed(out, i64::from(record.status)),
    },
    Alias {
        name: "ts",
        kind: Kind::String,
        restriction: Restriction::None,
        at_end: true,
        doc: "termination state, two characters",
        render: |record, _, out| out.extend_from_slice(&record.termination[..2]),
    },
    text_row("tsc", Restriction::Http, "termination state with the two characters about cookies", |record, _, out| {
        out.extend_from_slice(&record.termination);
    }),
];
