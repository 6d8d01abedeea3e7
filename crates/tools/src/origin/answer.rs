//! The head of a response, and the framing of its body. Must never allocate, nor write the body.

use base::Buffer;
use wire::h1::Edits;
use wire::haterm::{Chunks, PAGE, Parameters, Report, Reuse, Writer, write_values};
use wire::http::{self, Head, reason};

use super::request::Request;

/// Maximum size of a head, in bytes.
pub const LARGEST_HEAD: usize = 512;

/// `100 Continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// This number of bytes without chunks, announced or ended by the connection's close.
    Plain(u64),
    /// This number of bytes in large chunks.
    LargeChunks(u64),
    /// This number of bytes in chunks of one byte each.
    ByteChunks(u64),
}

impl Framing {
    /// Returns the framing of the response to a request.
    pub fn of(request: &Request) -> Self {
        let parameters = &request.parameters;
        if request.bodiless || is_bodiless(parameters.status) {
            return Self::None;
        }
        match parameters.chunks {
            // HTTP/1.0 has no chunks: the close of the connection ends the body.
            _ if !request.modern => Self::Plain(parameters.size),
            Chunks::None => Self::Plain(parameters.size),
            Chunks::Large => Self::LargeChunks(parameters.size),
            Chunks::Bytes => Self::ByteChunks(parameters.size),
        }
    }
}

/// Whether responses of that status have no body.
fn is_bodiless(status: u16) -> bool {
    status < 200 || status == 204 || status == 304
}

/// Whether the head contains the length. A body whose connection is closed on request ends with it.
fn announces_length(request: &Request) -> bool {
    let parameters = &request.parameters;
    let ends_with_connection = parameters.reuse == Reuse::Close || (!request.modern && !request.keep);
    let chunked = parameters.chunks != Chunks::None;
    let never_has_one = parameters.status < 200 || parameters.status == 204;
    // Without a length or chunks, a body on a persistent connection would never end.
    let must = !request.modern && request.keep;
    !never_has_one && (must || !(chunked || ends_with_connection))
}

/// Writes the head of the response; `waited` is the delay before it in milliseconds. `room` has at least
/// [`LARGEST_HEAD`] bytes of free space.
pub fn write_head(request: &Request, keep: bool, waited: u64, room: &mut Buffer) {
    let parameters = &request.parameters;
    let mut line = Line { room };
    line.text(if request.modern { b"HTTP/1.1 " } else { b"HTTP/1.0 " });
    line.number(u64::from(parameters.status));
    line.text(b" ");
    line.text(reason(parameters.status).as_bytes());
    line.text(b"\r\n");
    if announces_length(request) {
        line.text(b"content-length: ");
        line.number(parameters.size);
        line.text(b"\r\n");
    }
    if !parameters.cacheable {
        line.text(b"cache-control: no-cache\r\n");
    }
    if parameters.verbose {
        write_report(parameters, waited, &mut line);
    }
    // Only if it differs from the default of the version.
    match (request.modern, keep) {
        (true, false) => line.text(b"connection: close\r\n"),
        (false, true) => line.text(b"connection: keep-alive\r\n"),
        _ => {}
    }
    if matches!(Framing::of(request), Framing::LargeChunks(_) | Framing::ByteChunks(_)) {
        line.text(b"transfer-encoding: chunked\r\n");
    }
    line.text(b"\r\n");
}

/// Fills the head of the response for HTTP/2, and returns the length of the body, and edits with the length if it is
/// announced.
pub fn fields(request: &Request, waited: u64, head: &mut Head) -> (u64, Edits<'static>) {
    let parameters = &request.parameters;
    let status = if request.help { 200 } else { parameters.status };
    head.clear();
    head.set_status(status, b"");
    let size = if request.help { PAGE.len() as u64 } else { parameters.size };
    let is_told = request.help || parameters.chunks == Chunks::None;
    let framing = match status {
        204 | 304 => http::Framing::None,
        _ if is_told => http::Framing::Length(size),
        _ => http::Framing::Chunked,
    };
    if request.help {
        head.append(b"cache-control", b"no-cache");
        head.append(b"content-type", b"text/plain");
    } else {
        if parameters.grpc {
            head.append(b"content-type", b"application/grpc");
        }
        if !parameters.cacheable {
            head.append(b"cache-control", b"no-cache");
        }
        if parameters.verbose {
            let mut room = Report::default();
            write_values(parameters, waited, &mut room);
            head.append(b"x-req", b"time=0 ms");
            head.append(b"x-rsp", room.written());
        }
    }
    let has_body = !request.bodiless && framing != http::Framing::None;
    (if has_body { size } else { 0 }, Edits { framing, ..Edits::default() })
}

/// Writes X-req and X-rsp, in haterm's format.
fn write_report(parameters: &Parameters, waited: u64, line: &mut Line<'_>) {
    line.text(b"x-req: time=0 ms\r\nx-rsp: ");
    write_values(parameters, waited, line);
    line.text(b"\r\n");
}

/// Returns the whole response to an invalid request.
pub fn refusal(status: u16) -> String {
    let phrase = reason(status);
    let body =
        format!("<html><body><h1>{status} {phrase}</h1>\nYour browser sent an invalid request.\n</body></html>\n");
    format!(
        "HTTP/1.1 {status} {phrase}\r\ncontent-length: {}\r\ncache-control: no-cache\r\nconnection: close\r\n\
         content-type: text/html\r\n\r\n{body}",
        body.len()
    )
}

/// Returns the whole response to a request for help; a HEAD has no body.
pub fn help(bodiless: bool) -> String {
    let page = if bodiless { "" } else { PAGE };
    format!("HTTP/1.0 200 OK\r\ncache-control: no-cache\r\nconnection: close\r\ncontent-type: text/plain\r\n\r\n{page}")
}

/// Appends to a buffer with enough free space.
struct Line<'a> {
    room: &'a mut Buffer,
}

impl Writer for Line<'_> {
    #[inline]
    fn text(&mut self, text: &[u8]) {
        let fits = self.room.push(text);
        debug_assert!(fits, "a head is smaller than its room");
    }
}
