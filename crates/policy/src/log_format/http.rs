//! The request, captures and cookies (configuration manual, sections 8.2.6, 8.7 and 8.8). Must never show
//! in one alias what `tune.http.logurilen` hides in another.

use super::alias::{Alias, Kind, Restriction};
use super::escape::{Encoding, Flags, absent, encoded, optional, quoted, string};
use super::record::Record;

/// Stands for a request that was never received or not valid.
const BAD_REQUEST: &[u8] = b"<BADREQ>";

/// A request line as it is logged: whole lines are cut, not their parts.
struct RequestLine<'a> {
    method: &'a [u8],
    /// `None` where the line was cut before it; so for the version.
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

    /// Without scheme, host and query; empty for `*` and for the authority of a CONNECT.
    fn path(&self) -> &'a [u8] {
        let uri = self.without_query();
        if uri.first() == Some(&b'/') {
            return uri;
        }
        let Some(scheme) = uri.windows(3).position(|window| window == b"://") else { return b"" };
        let behind = &uri[scheme + 3..];
        behind.iter().position(|&byte| byte == b'/').map_or(b"", |slash| &behind[slash..])
    }

    /// What was cut off, or never was there, makes a request of the oldest version.
    fn version(&self) -> &'a [u8] {
        self.version.filter(|version| !version.is_empty()).unwrap_or(b"HTTP/0.9")
    }
}

/// Appends a part of the request line.
fn part(
    record: &Record<'_>,
    flags: Flags,
    out: &mut Vec<u8>,
    select: impl for<'b> FnOnce(RequestLine<'b>) -> &'b [u8],
) {
    let text = RequestLine::of(record).map_or(BAD_REQUEST, select);
    string(out, text, Encoding::REQUEST, flags);
}

fn request_line(record: &Record<'_>, flags: Flags, out: &mut Vec<u8>) {
    let Some(line) = RequestLine::of(record) else { return string(out, BAD_REQUEST, Encoding::REQUEST, flags) };
    quoted(out, flags, |out| {
        encoded(out, line.method, Encoding::REQUEST, flags);
        for part in [line.uri, line.version].into_iter().flatten() {
            out.push(b' ');
            encoded(out, part, Encoding::REQUEST, flags);
        }
    });
}

/// `{first|second}`; nothing where no capture is declared.
fn braced(out: &mut Vec<u8>, captures: &[Option<&[u8]>], flags: Flags) {
    if captures.is_empty() {
        return;
    }
    quoted(out, flags, |out| {
        for (place, capture) in captures.iter().enumerate() {
            out.push(if place == 0 { b'{' } else { b'|' });
            encoded(out, capture.unwrap_or_default(), Encoding::FIELD, flags);
        }
        out.push(b'}');
    });
}

/// Each capture as a field of its own.
fn listed(out: &mut Vec<u8>, captures: &[Option<&[u8]>], flags: Flags) {
    for (place, capture) in captures.iter().enumerate() {
        if place > 0 {
            out.push(b' ');
        }
        match capture {
            Some(capture) => string(out, capture, Encoding::FIELD, flags),
            None => absent(out, flags),
        }
    }
}

const fn row(
    name: &'static str,
    kind: Kind,
    restriction: Restriction,
    doc: &'static str,
    render: fn(&Record<'_>, Flags, &mut Vec<u8>),
) -> Alias {
    Alias { name, kind, restriction, at_end: false, doc, render }
}

use Kind::{String, StringList};
use Restriction::Http;

/// Requests and captures.
pub const TABLE: &[Alias] = &[
    row("CC", String, Http, "captured cookie of the request, \"name=value\"", |record, flags, out| {
        optional(out, record.request_cookie, Encoding::NAME, flags);
    }),
    row("CS", String, Http, "captured cookie of the answer, \"name=value\"", |record, flags, out| {
        optional(out, record.response_cookie, Encoding::NAME, flags);
    }),
    row("HM", String, Http, "method", |record, flags, out| part(record, flags, out, |line| line.method)),
    row("HP", String, Http, "request URI without its query string", |record, flags, out| {
        part(record, flags, out, |line| line.without_query());
    }),
    row("HPO", String, Http, "path alone, without host and query string", |record, flags, out| {
        part(record, flags, out, |line| line.path());
    }),
    row("HQ", String, Http, "query string with its \"?\"", |record, flags, out| {
        part(record, flags, out, |line| line.query());
    }),
    row("HU", String, Http, "request URI", |record, flags, out| part(record, flags, out, |line| line.uri())),
    row("HV", String, Http, "version, \"HTTP/1.1\"", |record, flags, out| {
        part(record, flags, out, |line| line.version());
    }),
    row("hr", String, Restriction::None, "captured request header fields, \"{first|second}\"", |record, flags, out| {
        braced(out, record.request_captures, flags);
    }),
    row("hrl", StringList, Restriction::None, "captured request header fields, one by one", |record, flags, out| {
        listed(out, record.request_captures, flags);
    }),
    row(
        "hs",
        String,
        Restriction::None,
        "captured response header fields, \"{first|second}\"",
        |record, flags, out| {
            braced(out, record.response_captures, flags);
        },
    ),
    row("hsl", StringList, Restriction::None, "captured response header fields, one by one", |record, flags, out| {
        listed(out, record.response_captures, flags);
    }),
    row("r", String, Http, "request line", request_line),
];
