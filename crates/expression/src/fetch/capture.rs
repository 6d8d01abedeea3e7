//! Fetches of captures (section 7.3.6): slots, and the request line as received.

use super::Fetch;
use super::request::path_and_query;
use crate::capture::CapturedText;
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};

const SLOT: Signature = Signature::new(1, &[Kind::Int]);

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    Fetch::new(
        "capture.req.hdr",
        SLOT,
        Type::Str,
        Places::TRANSACTION,
        "Content of the request capture slot with that index, from 0.",
        |context, arguments| slot(context, arguments, true),
    )
    .checked(check_slot),
    Fetch::new(
        "capture.req.method",
        Signature::NONE,
        Type::Str,
        Places::TRANSACTION,
        "Method of the request as received.",
        |context, _| line(context, true),
    ),
    Fetch::new(
        "capture.req.uri",
        Signature::NONE,
        Type::Str,
        Places::TRANSACTION,
        "Target of the request as received, without scheme and host.",
        |context, _| line(context, false),
    ),
    Fetch::new(
        "capture.req.ver",
        Signature::NONE,
        Type::Str,
        Places::TRANSACTION,
        "Version of the request.",
        |context, _| version(context.request),
    ),
    Fetch::new(
        "capture.res.hdr",
        SLOT,
        Type::Str,
        Places::of("...........YYYYYYYYY.."),
        "Content of the response capture slot with that index, from 0.",
        |context, arguments| slot(context, arguments, false),
    )
    .checked(check_slot),
    Fetch::new(
        "capture.res.ver",
        Signature::NONE,
        Type::Str,
        Places::TRANSACTION,
        "Version of the response.",
        |context, _| version(context.response),
    ),
];

fn check_slot(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    if arguments.int(0).is_some_and(|slot| slot < 0) {
        return Err("capture identifier must be >= 0".to_owned());
    }
    Ok(())
}

fn slot<'a>(context: &Context<'a>, arguments: &'a Arguments, of_request: bool) -> Option<Value<'a>> {
    let index = usize::try_from(arguments.int(0)?).ok()?;
    let captures = context.captures?.borrow();
    let slots = if of_request { &captures.request } else { &captures.response };
    let text = slots.get(index).and_then(CapturedText::get)?;
    context.copy(text).map(Value::Str)
}

fn line<'a>(context: &Context<'a>, method: bool) -> Option<Value<'a>> {
    let request = context.request?;
    if let Some(captures) = context.captures
        && let Some((first, target)) = &captures.borrow().line
    {
        return context.copy(if method { first } else { path_and_query(target)? }).map(Value::Str);
    }
    Some(Value::Str(if method { request.method() } else { path_and_query(request.target())? }))
}

fn version<'a>(head: Option<&'a wire::http::Head>) -> Option<Value<'a>> {
    let text = match head?.version() {
        wire::http::Version::Http10 => "HTTP/1.0",
        wire::http::Version::Http11 => "HTTP/1.1",
    };
    Some(Value::Str(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn the_target_is_told_without_scheme_and_host() {
        for (target, told) in [
            ("/a/b?c", "/a/b?c"),
            ("http://h:80/p?q", "/p?q"),
            ("http://h?x", "?x"),
            ("*", "<none>"),
            ("h:80", "<none>"),
        ] {
            let rows = [("capture.req.uri", told), ("capture.req.method", "GET"), ("capture.req.ver", "HTTP/1.1")];
            check_rows(&Scene::request("GET", target, &[]), &rows);
        }
    }
}
