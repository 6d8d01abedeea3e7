//! Whether a shared cache may store a response, by HAProxy's rules for `nocache`. Must never change the response.

use expression::fields::each_value;
use wire::http::{Head, Method};

/// Statuses cacheable by default (RFC 9110, section 15.1).
const STATUSES: &[u16] = &[200, 203, 204, 206, 300, 301, 404, 405, 410, 414, 501];

/// Whether a cache may store the response to a request with that method.
pub(super) fn is_cacheable(head: &Head, method: Method) -> bool {
    let is_safe = matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace);
    if !is_safe || !STATUSES.contains(&head.status()) {
        return false;
    }
    let starts =
        |value: &[u8], name: &[u8]| value.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    if each_value(head, Some(b"pragma"), &mut |value| starts(value, b"no-cache")) {
        return false;
    }
    let mut is_dated = [&b"etag"[..], b"last-modified", b"expires"].into_iter().any(|name| head.contains(name));
    let is_forbidden = each_value(head, Some(b"cache-control"), &mut |value| {
        is_dated |= starts(value, b"max-age") || starts(value, b"s-maxage");
        let is_zero = [&b"max-age=0"[..], b"s-maxage=0"].iter().any(|zero| value.eq_ignore_ascii_case(zero));
        let is_kept = starts(value, b"private") || starts(value, b"no-store") || starts(value, b"no-cache");
        is_zero || (is_kept && !starts(value, b"no-cache=\"set-cookie"))
    });
    is_dated && !is_forbidden
}
