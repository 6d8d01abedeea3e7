//! Fetches of unparsed bytes: their number, parts of them, the detected protocol (section 7.3.5). Must never read
//! beyond the received bytes.

use super::{Fetch, plain};
use crate::sample::{Context, Direction, MissingInput, Places, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use wire::http::Head;
use wire::rdp;

const REQUEST: Places = Places::REQUEST;
const RESPONSE: Places = Places::RESPONSE;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    part("payload", Places::EITHER, "Bytes from an offset on; with a length of 0, all available bytes."),
    list("payload_lv", Places::EITHER, "Bytes whose number is read from a length field."),
    Fetch::new("rdp_cookie", NAME, Type::Str, REQUEST, "Value of the RDP cookie.", rdp_cookie),
    Fetch::new("rdp_cookie_cnt", NAME, Type::Int, REQUEST, "1 if there is an RDP cookie, 0 if not.", rdp_cookie_count),
    plain("req.len", Type::Int, REQUEST, "Bytes of the request received so far.", length),
    part("req.payload", REQUEST, "Bytes of the request from an offset on; with a length of 0, all available bytes."),
    list("req.payload_lv", REQUEST, "Bytes of the request whose number is read from a length field."),
    Fetch::new("req.rdp_cookie", NAME, Type::Str, REQUEST, "Value of the RDP cookie.", rdp_cookie),
    Fetch::new(
        "req.rdp_cookie_cnt",
        NAME,
        Type::Int,
        REQUEST,
        "1 if there is an RDP cookie, 0 if not.",
        rdp_cookie_count,
    ),
    plain("req_len", Type::Int, REQUEST, "Alias of `req.len`.", length),
    plain("res.len", Type::Int, RESPONSE, "Bytes of the response received so far.", length),
    part("res.payload", RESPONSE, "Bytes of the response from an offset on; with a length of 0, all available bytes."),
    list("res.payload_lv", RESPONSE, "Bytes of the response whose number is read from a length field."),
    plain("wait_end", Type::Bool, Places::RUNNING, "True once nothing remains to be waited for.", wait_end),
];

const NAME: Signature = Signature::new(0, &[Kind::Str]);
const PART: Signature = Signature::new(2, &[Kind::Int, Kind::Int]);
const LIST: Signature = Signature::new(2, &[Kind::Int, Kind::Int, Kind::Str]);

const fn part(name: &'static str, places: Places, doc: &'static str) -> Fetch {
    Fetch::new(name, PART, Type::Bin, places, doc, payload)
}

const fn list(name: &'static str, places: Places, doc: &'static str) -> Fetch {
    Fetch::new(name, LIST, Type::Bin, places, doc, payload_lv).checked(check_list)
}

/// Records that more bytes may change the sample.
fn may_change(context: &Context<'_>) {
    context.missing::<()>(MissingInput::Body);
}

fn length<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    if context.direction == Direction::Request {
        // Before a stream there is nothing to count.
        context.probes.stream()?;
    }
    may_change(context);
    let head = match context.direction {
        Direction::Request => context.request,
        Direction::Response => context.response,
    };
    Some(Value::Int(head.map_or(0, |head| of_head(head, context.direction)) + context.bytes.data.len() as i64))
}

/// The size of a head in HAProxy's internal representation of messages (HTX).
fn of_head(head: &Head, direction: Direction) -> i64 {
    // Its start line begins with 20 bytes, the version has 8, the end marker 1.
    let fields: usize = head.fields().map(|(name, value)| name.len() + value.len()).sum();
    let line = match direction {
        Direction::Request => head.method().len() + head.target().len(),
        Direction::Response => 3 + head.reason().len(),
    };
    (20 + 8 + 1 + line + fields) as i64
}

/// Whether the bytes are a parsed HTTP message, which has no payload.
fn is_understood(context: &Context<'_>) -> bool {
    context.request.is_some() || context.response.is_some()
}

fn payload<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    if is_understood(context) {
        return None;
    }
    let data = context.bytes.data;
    let (offset, length) = (usize::try_from(arguments.int(0)?).ok()?, usize::try_from(arguments.int(1)?).ok()?);
    if offset.checked_add(length)? > context.limit {
        return None;
    }
    if length == 0 {
        may_change(context);
        return data.get(offset..).filter(|rest| !rest.is_empty()).map(Value::Bin);
    }
    data.get(offset..offset + length)
        .map_or_else(|| context.missing(MissingInput::Bytes), |found| Some(Value::Bin(found)))
}

/// Computes the start of the block: from the start of the bytes, or relative to the end of its length.
fn check_list(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let (offset, length) = (arguments.int(0).unwrap_or(0), arguments.int(1).unwrap_or(0));
    if offset < 0 {
        return Err("payload offset1 must be positive".to_owned());
    }
    if length == 0 {
        return Err("payload length must be > 0".to_owned());
    }
    if length < 0 {
        // Accepted, but never satisfied.
        return Ok(());
    }
    let behind = offset.saturating_add(length);
    let start = match arguments.utf8(2) {
        None => behind,
        Some(text) => {
            let number: i64 = text.parse().map_err(|_| "payload offset2 is not a number".to_owned())?;
            if text.starts_with(['+', '-']) { behind.saturating_add(number) } else { number }
        }
    };
    if start < 0 {
        return Err("payload offset2 too negative".to_owned());
    }
    arguments.set(2, Argument::Int(start));
    Ok(())
}

fn payload_lv<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    if is_understood(context) {
        return None;
    }
    let data = context.bytes.data;
    let number = |index| arguments.int(index).and_then(|number| usize::try_from(number).ok());
    let (offset, bytes, start) = (number(0)?, number(1)?, number(2)?);
    if offset.saturating_add(bytes) > context.limit {
        return None;
    }
    let Some(length) = data.get(offset..offset + bytes) else { return context.missing(MissingInput::Bytes) };
    let length = length.iter().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
    let end = start.checked_add(length).filter(|end| length > 0 && *end <= context.limit)?;
    data.get(start..end).map_or_else(|| context.missing(MissingInput::Bytes), |found| Some(Value::Bin(found)))
}

pub(super) fn proto_http<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    if context.direction == Direction::Response {
        return None;
    }
    // The preface of HTTP/2 looks like a request as well.
    if context.bytes.data.starts_with(wire::h2::PREFACE) {
        return Some(Value::Bool(true));
    }
    context.request_head().map(|_| Value::Bool(true))
}

/// The number of bytes that decide whether there is a cookie.
const ENOUGH: usize = 18;

fn rdp_cookie<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let data = context.bytes.data;
    match rdp::cookie(data, arguments.text(0).unwrap_or_default()) {
        Some(value) => Some(Value::Str(value)),
        None if rdp::is_incomplete(data) => context.missing(MissingInput::Bytes),
        None => None,
    }
}

fn rdp_cookie_count<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let data = context.bytes.data;
    let found = rdp::cookie(data, arguments.text(0).unwrap_or_default()).is_some();
    if !found && !is_understood(context) && (data.len() < ENOUGH || rdp::is_incomplete(data)) {
        return context.missing(MissingInput::Bytes);
    }
    Some(Value::Int(found.into()))
}

fn wait_end<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    if context.bytes.complete { Some(Value::Bool(true)) } else { context.missing(MissingInput::End) }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn bytes_that_have_come() {
        let rows = [
            ("req.len", "10"),
            ("req_len", "10"),
            ("res.len", "10"),
            ("req.payload(0,3)", "020061"),
            ("payload(0,3)", "020061"),
            ("res.payload(0,3)", "020061"),
            ("req.payload(8,0)", "6768"),
            ("req.payload(8,9)", "<none>"),
            ("req.payload(10,0)", "<none>"),
            ("req.payload(99999,1)", "<none>"),
            ("req.payload(-1,1)", "<none>"),
            ("req.payload_lv(0,1)", "0061"),
            ("payload_lv(0,1)", "0061"),
            ("res.payload_lv(0,1,+1)", "6162"),
            ("req.payload_lv(0,1,-1)", "0200"),
            ("req.payload_lv(0,2)", "<none>"),
            ("req.payload_lv(0,0)", "!invalid args in fetch method 'req.payload_lv' : payload length must be > 0"),
            ("req.payload_lv(4,2,-9)", "!invalid args in fetch method 'req.payload_lv' : payload offset2 too negative"),
            (
                "req.payload_lv(0,2,x)",
                "!invalid args in fetch method 'req.payload_lv' : payload offset2 is not a number",
            ),
            ("req.proto_http", "<none>"),
            ("wait_end", "1"),
            ("rdp_cookie", "<none>"),
        ];
        check_rows(&Scene::bytes(b"\x02\0abcdefgh"), &rows);
        let preface = Scene::bytes(wire::h2::PREFACE);
        check_rows(&preface, &[("req.proto_http", "1")]);
        let part = Scene { bytes: b"GET / HT".to_vec(), ..Scene::default() };
        let rows = [
            ("req.payload(0,9)", "<incomplete>"),
            ("req.payload_lv(0,1)", "<incomplete>"),
            ("req.proto_http", "<incomplete>"),
            ("rdp_cookie_cnt", "<incomplete>"),
            ("wait_end", "<incomplete>"),
        ];
        check_rows(&part, &rows);
    }

    #[test]
    fn protocols() {
        let rows = [("req.proto_http", "1"), ("req_proto_http", "1"), ("req.rdp_cookie_cnt", "0")];
        check_rows(&Scene::bytes(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), &rows);
        // Parts of an unparsed request.
        let rows =
            [("method", "GET"), ("url", "/a?b"), ("path", "/a"), ("req.hdr(host)", "A"), ("res.hdr(host)", "<none>")];
        check_rows(&Scene::bytes(b"GET /a?b HTTP/1.1\r\nHost: A\r\n\r\nbody"), &rows);
        let part = Scene { bytes: b"GET /a HTTP/1.1\r\nHost: A\r\n".to_vec(), ..Scene::default() };
        check_rows(&part, &[("path", "<incomplete>"), ("req.hdr(host)", "<incomplete>")]);
        let none = Scene { bytes: b"\x16\x03\x01 x\r\n".to_vec(), ..Scene::default() };
        check_rows(&none, &[("path", "<none>"), ("req.hdr(host)", "<none>"), ("req.proto_http", "<none>")]);
        check_rows(
            &Scene::request("GET", "/137", &[("host", "127.0.0.1:18741"), ("accept", "*/*")]),
            &[("req.len", "64"), ("req.proto_http", "1"), ("req.payload(0,3)", "<none>")],
        );
        let mut packet = vec![3, 0, 0, 34, 29, 0xe0, 0, 0, 0, 0, 0];
        packet.extend(b"Cookie: mstshash=user\r\n");
        let rows = [
            ("rdp_cookie", "user"),
            ("req.rdp_cookie(MSTShash)", "user"),
            ("rdp_cookie(msts)", "<none>"),
            ("rdp_cookie_cnt", "1"),
            ("rdp_cookie_cnt(x)", "0"),
        ];
        check_rows(&Scene::bytes(&packet), &rows);
    }
}
