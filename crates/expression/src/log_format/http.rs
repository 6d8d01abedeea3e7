//! The request, captures and cookies (configuration manual, sections 8.2.6, 8.7 and 8.8). Must never print in one alias
//! what `tune.http.logurilen` truncates in another.

use super::escape::Classes;
use super::printer::Printer;
use super::row::{Alias, Kind, Restriction};
use crate::record::Record;

/// Replaces a request that was never received or is invalid.
const BAD_REQUEST: &[u8] = b"<BADREQ>";

/// A request line as logged: the limit truncates the whole line, not its parts.
struct RequestLine<'a> {
    method: &'a [u8],
    /// `None` if the line was truncated before it; likewise for the version.
    uri: Option<&'a [u8]>,
    version: Option<&'a [u8]>,
}

impl<'a> RequestLine<'a> {
    fn of(record: &Record<'a>) -> Option<Self> {
        if record.method.is_empty() {
            return None;
        }
        let mut left = record.request_limit;
        let mut cut = |part: &'a [u8]| {
            let part = &part[..part.len().min(left)];
            left -= part.len();
            part
        };
        let method = cut(record.method);
        let uri = (!cut(b" ").is_empty()).then(|| cut(record.target));
        let version = (!cut(b" ").is_empty()).then(|| cut(record.version));
        Some(Self { method, uri, version })
    }

    fn uri(&self) -> &'a [u8] {
        self.uri.unwrap_or_default()
    }

    fn without_query(&self) -> &'a [u8] {
        let uri = self.uri();
        &uri[..uri.iter().position(|&byte| byte == b'?').unwrap_or(uri.len())]
    }

    fn query(&self) -> &'a [u8] {
        &self.uri()[self.without_query().len()..]
    }

    /// The path without scheme, host and query; empty for `*` and for the authority of a CONNECT.
    fn path(&self) -> &'a [u8] {
        let uri = self.without_query();
        if uri.first() == Some(&b'/') {
            return uri;
        }
        let Some(scheme) = uri.windows(3).position(|window| window == b"://") else { return b"" };
        let behind = &uri[scheme + 3..];
        behind.iter().position(|&byte| byte == b'/').map_or(b"", |slash| &behind[slash..])
    }

    /// A version that is truncated or missing is the oldest one.
    fn version(&self) -> &'a [u8] {
        self.version.filter(|version| !version.is_empty()).unwrap_or(b"HTTP/0.9")
    }
}

/// Prints a part of the request line.
fn print_part(record: &Record<'_>, out: &mut Printer<'_>, select: impl for<'b> FnOnce(RequestLine<'b>) -> &'b [u8]) {
    let text = RequestLine::of(record).map_or(BAD_REQUEST, select);
    out.text(|out| out.put(text, Classes::REQUEST));
}

fn request_line(record: &Record<'_>, out: &mut Printer<'_>) {
    let Some(line) = RequestLine::of(record) else {
        return out.text(|out| out.put(BAD_REQUEST, Classes::REQUEST));
    };
    let parts = std::iter::once(line.method).chain(line.uri).chain(line.version);
    out.text(|out| out.put_joined(parts, Classes::REQUEST));
}

/// Prints `{first|second}`; nothing if no capture is declared.
fn braced(captures: &[Option<&[u8]>], out: &mut Printer<'_>) {
    if captures.is_empty() {
        return out.nothing();
    }
    out.text(|out| {
        for (place, capture) in captures.iter().enumerate() {
            out.mark(if place == 0 { b'{' } else { b'|' });
            out.put(capture.unwrap_or_default(), Classes::FIELD);
        }
        out.mark(b'}');
    });
}

/// Prints each capture as a field of its own.
fn listed(captures: &[Option<&[u8]>], out: &mut Printer<'_>) {
    if captures.is_empty() {
        return out.nothing();
    }
    out.list(captures.iter().copied());
}

const fn row(
    name: &'static str,
    kind: Kind,
    restriction: Restriction,
    doc: &'static str,
    render: fn(&Record<'_>, &mut Printer<'_>),
) -> Alias {
    Alias { name, kind, restriction, at_end: false, doc, render }
}

use Kind::{String, StringList};
use Restriction::Http;

/// Requests and captures.
pub const TABLE: &[Alias] = &[
    row("CC", String, Http, "captured cookie of the request, \"name=value\"", |record, out| {
        out.name(record.request_cookie);
    }),
    row("CS", String, Http, "captured cookie of the response, \"name=value\"", |record, out| {
        out.name(record.response_cookie);
    }),
    row("HM", String, Http, "method", |record, out| print_part(record, out, |line| line.method)),
    row("HP", String, Http, "request URI without its query string", |record, out| {
        print_part(record, out, |line| line.without_query());
    }),
    row("HPO", String, Http, "path alone, without host and query string", |record, out| {
        print_part(record, out, |line| line.path());
    }),
    row("HQ", String, Http, "query string with its \"?\"", |record, out| {
        print_part(record, out, |line| line.query());
    }),
    row("HU", String, Http, "request URI", |record, out| print_part(record, out, |line| line.uri())),
    row("HV", String, Http, "version, \"HTTP/1.1\"", |record, out| {
        print_part(record, out, |line| line.version());
    }),
    row("hr", String, Restriction::None, "captured request header fields, \"{first|second}\"", |record, out| {
        braced(record.request_captures, out);
    }),
    row("hrl", StringList, Restriction::None, "captured request header fields, one by one", |record, out| {
        listed(record.request_captures, out);
    }),
    row("hs", String, Restriction::None, "captured response header fields, \"{first|second}\"", |record, out| {
        braced(record.response_captures, out);
    }),
    row("hsl", StringList, Restriction::None, "captured response header fields, one by one", |record, out| {
        listed(record.response_captures, out);
    }),
    row("r", String, Http, "request line", request_line),
];
