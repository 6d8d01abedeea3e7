//! Freshness of responses, storing restrictions, and requirements of requests for stored ones (RFC 9111, sections 3, 4.2 and 5.2;
//! RFC 5861). Must never look at a cache, and never change a message.

use std::time::Duration;

use base::moment::Moment;
use live::cache::{Lifetime, RequestDirectives};
use wire::date::parse_http_date;
use wire::http::Head;

/// Statuses of responses that are stored with `rfc9111`: those that have a body, and that this cache implements.
const UNDERSTOOD: &[u16] = &[200, 203, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 451, 501];

/// Whether a response with that status may be stored.
pub(super) fn may_be_stored(standard: bool, status: u16) -> bool {
    if standard { UNDERSTOOD.contains(&status) } else { status == 200 }
}

/// Whether the list of a field contains a directive, with or without a value.
pub(in crate::stream) fn has_directive(head: &Head, field: &[u8], wanted: &[u8]) -> bool {
    head.all(field).flat_map(directives).any(|(name, _)| name.eq_ignore_ascii_case(wanted))
}

/// Returns directives and their unquoted values (RFC 9111, section 5.2), split at commas outside of quotes.
pub(super) fn directives(value: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    let mut quoted = false;
    let divides = move |byte: &u8| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    };
    value.split(divides).map(<[u8]>::trim_ascii).map(|one| match one.iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let value = &one[at + 1..];
            let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
            (&one[..at], Some(bare))
        }
        None => (one, None),
    })
}

/// Returns the freshness lifetime of a response (RFC 9111, section 4.2.1). `None`: it must not be stored.
pub(super) fn lifetime(most: u32, head: &Head, now: Moment, wall: i64) -> Option<Lifetime> {
    let forbids = |name: &[u8]| has_directive(head, b"cache-control", name);
    if [&b"no-store"[..], b"private", b"no-cache"].into_iter().any(forbids)
        || has_directive(head, b"pragma", b"no-cache")
    {
        return None;
    }
    let value = |wanted: &[u8]| {
        let mut all = head.all(b"cache-control").flat_map(directives);
        all.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| seconds(value.unwrap_or_default()))
    };
    let said = value(b"s-maxage").or_else(|| value(b"max-age"));
    let left = match (said, head.first(b"expires")) {
        (Some(said), _) => said?,
        (None, Some(expires)) => {
            let left = parse_http_date(expires)?.saturating_sub(wall);
            u64::try_from(left).unwrap_or(0)
        }
        (None, None) if head.contains(b"etag") || head.contains(b"last-modified") => u64::from(most),
        (None, None) => return None,
    };
    let age = match age(head) {
        Some(age) => age?,
        None => 0,
    };
    life(most, left, age, now)
}

/// Returns the seconds of Age: the first member of a list (RFC 9111, section 5.1). `None`: there is no Age; inner `None`: it is
/// not a number.
fn age(head: &Head) -> Option<Option<u64>> {
    let first = head.first(b"age")?.split(|byte| *byte == b',').next().unwrap_or_default();
    Some(seconds(first.trim_ascii()))
}

/// Returns the lifetime of a response with a freshness of `fresh` seconds and an age of `age` seconds. `most`: the maximum time
/// in this cache, regardless of its age on arrival.
fn life(most: u32, fresh: u64, age: u64, now: Moment) -> Option<Lifetime> {
    let left = fresh.checked_sub(age).map(|left| left.min(u64::from(most))).filter(|left| *left > 0)?;
    Some(Lifetime { stored: now, age: u32::try_from(age).unwrap_or(u32::MAX), left: Duration::from_secs(left) })
}

/// Whether a stale response must not be used (RFC 9111, sections 4.2.4 and 5.2.2.10), and for how long it may be used if its
/// server fails (RFC 5861, section 4).
pub(super) fn staleness(head: &Head) -> (bool, Option<Duration>) {
    let says = |name: &[u8]| has_directive(head, b"cache-control", name);
    let never = [&b"must-revalidate"[..], b"proxy-revalidate", b"s-maxage"].into_iter().any(says);
    let mut said = head.all(b"cache-control").flat_map(directives);
    let own = said.find(|(name, _)| name.eq_ignore_ascii_case(b"stale-if-error"));
    (never, own.map(|(_, value)| Duration::from_secs(value.and_then(seconds).unwrap_or(0))))
}

/// Whether a response to a request with credentials may be used for other requests (RFC 9111, section 3.5).
pub(super) fn is_for_all(head: &Head) -> bool {
    [&b"public"[..], b"s-maxage", b"must-revalidate"]
        .into_iter()
        .any(|name| has_directive(head, b"cache-control", name))
}

/// Parses a number of seconds; saturates on overflow.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    is_number.then(|| text.iter().fold(0, add))
}

/// Parses the requirements of a request for a stored response (RFC 9111, section 5.2.1). An invalid directive requires a response
/// of the server.
pub(super) fn parse_directives(head: &Head) -> CacheDirectives {
    let mut asked = CacheDirectives::default();
    for (name, value) in head.all(b"cache-control").flat_map(directives) {
        let number = value.and_then(seconds);
        let within = |time: &mut Duration| match number {
            Some(number) => {
                *time = Duration::from_secs(number.min(FOREVER));
                true
            }
            None => false,
        };
        let is = |wanted: &[u8]| name.eq_ignore_ascii_case(wanted);
        let read = if is(b"max-age") {
            within(asked.wants.max_age.insert(Duration::ZERO))
        } else if is(b"min-fresh") {
            within(&mut asked.wants.min_fresh)
        } else if is(b"max-stale") {
            let most = if value.is_none() { Some(FOREVER) } else { number };
            asked.wants.max_stale = Duration::from_secs(most.unwrap_or(0).min(FOREVER));
            true
        } else {
            asked.only_if_cached |= is(b"only-if-cached");
            !is(b"no-cache")
        };
        asked.wants_fresh |= !read;
    }
    asked.wants_fresh |= has_old_no_cache(head);
    asked
}

/// Whether a request requires a response of a server, as in HAProxy: one that limits age or freshness gets a new one.
pub(super) fn wants_fresh(head: &Head) -> bool {
    const WANTING: [&[u8]; 4] = [b"no-cache", b"max-age", b"max-stale", b"min-fresh"];
    // Most requests have neither field.
    if !head.contains(b"cache-control") {
        return has_directive(head, b"pragma", b"no-cache");
    }
    let is_one = |name: &[u8]| WANTING.iter().any(|wanting| name.eq_ignore_ascii_case(wanting));
    head.all(b"cache-control").flat_map(directives).any(|(name, _)| is_one(name))
}

/// Whether Pragma requires that; it only counts without Cache-Control (RFC 9111, section 5.4).
fn has_old_no_cache(head: &Head) -> bool {
    !head.contains(b"cache-control") && has_directive(head, b"pragma", b"no-cache")
}

/// Seconds that represent an unlimited time.
const FOREVER: u64 = u32::MAX as u64;

/// Requirements of a request for a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CacheDirectives {
    /// Limits on age and freshness.
    pub(super) wants: RequestDirectives,
    /// A stored response must not be used.
    pub(super) wants_fresh: bool,
    /// Only a stored response may be used.
    pub(super) only_if_cached: bool,
}

/// Returns the fields that are restricted to the response's own client or must not be reused (RFC 9111, sections 5.2.2.4 and
/// 5.2.2.7): the response is stored without them.
pub(super) fn kept_back(head: &Head) -> Vec<Vec<u8>> {
    let listed = head.all(b"cache-control").flat_map(directives).filter_map(|(name, value)| {
        let is = name.eq_ignore_ascii_case(b"private") || name.eq_ignore_ascii_case(b"no-cache");
        value.filter(|_| is)
    });
    let names = listed.flat_map(|value| value.split(|byte| *byte == b','));
    names.map(|name| name.trim_ascii().to_ascii_lowercase()).filter(|name| !name.is_empty()).collect()
}

/// As [`lifetime`], but strictly by RFC 9111: Expires is relative to Date, the time since Date counts as age, a response without
/// explicit freshness has a lifetime of zero, `private` and `no-cache` with field names restrict only these, and
/// `must-understand` overrides `no-store`.
pub(super) fn lifetime_by_standard(most: u32, head: &Head, now: Moment, wall: i64) -> Option<Lifetime> {
    let says = |name: &[u8]| has_directive(head, b"cache-control", name);
    let without_names = |wanted: &[u8]| {
        let mut all = head.all(b"cache-control").flat_map(directives);
        all.any(|(name, value)| name.eq_ignore_ascii_case(wanted) && value.is_none_or(<[u8]>::is_empty))
    };
    let understood = UNDERSTOOD.contains(&head.status());
    let must_understand = says(b"must-understand");
    if must_understand && !understood
        || says(b"no-store") && !must_understand
        || without_names(b"private")
        || without_names(b"no-cache")
    {
        return None;
    }
    let value = |wanted: &[u8]| {
        let mut all = head.all(b"cache-control").flat_map(directives);
        all.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| seconds(value.unwrap_or_default()))
    };
    let date = head.first(b"date").and_then(parse_http_date).unwrap_or(wall);
    let said = match value(b"s-maxage").or_else(|| value(b"max-age")) {
        Some(said) => said?,
        None => {
            let mut all = head.all(b"expires");
            let expires = all.next().and_then(parse_http_date)?;
            u64::try_from(expires.saturating_sub(date)).unwrap_or(0)
        }
    };
    let apparent = u64::try_from(wall.saturating_sub(date)).unwrap_or(0);
    life(most, said, age(head).flatten().unwrap_or(0).max(apparent), now)
}

/// Whether a server's response validates a stored one: its validators are the same.
pub(super) fn is_same(stored: &Head, came: &Head) -> bool {
    match (came.first(b"etag"), came.first(b"last-modified")) {
        (Some(etag), _) => stored.first(b"etag") == Some(etag),
        (None, Some(date)) => stored.first(b"last-modified") == Some(date),
        (None, None) => false,
    }
}

/// Returns the head of a stored response, updated with the fields of a later one (RFC 9111, section 3.2), except fields about its
/// body, the connection, or one client.
pub(super) fn updated(stored: &Head, came: &Head) -> Head {
    const OWN: &[&[u8]] = &[
        b"age",
        b"connection",
        b"content-encoding",
        b"content-length",
        b"content-range",
        b"content-type",
        b"keep-alive",
        b"proxy-connection",
        b"set-cookie",
        b"te",
        b"trailer",
        b"upgrade",
        b"vary",
    ];
    let mut head = stored.clone();
    // Its age is that of the new response, which may have no Date if its server has no clock.
    head.remove_all(b"date");
    let fields: Vec<_> = came.fields().filter(|(name, _)| !OWN.contains(name)).collect();
    for (name, _) in &fields {
        head.remove_all(name);
    }
    fields.into_iter().for_each(|(name, value)| head.append(name, value));
    head
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    type Row<'r, T> = (&'r [(&'r str, &'r str)], T);

    /// A head with these fields.
    pub(in crate::stream) fn response(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::new();
        fields.iter().for_each(|(name, value)| head.append(name.as_bytes(), value.as_bytes()));
        head
    }

    /// Lifetimes that HAProxy 3.5 uses with `max-age 100`; `None`: not stored.
    #[test]
    fn responses_say_how_long_they_live() {
        let rows: &[Row<'_, Option<u64>>] = &[
            (&[], None),
            (&[("etag", "\"e\"")], Some(100)),
            (&[("last-modified", "foo")], Some(100)),
            (&[("cache-control", "max-age=5")], Some(5)),
            (&[("cache-control", "Max-Age=5")], Some(5)),
            (&[("cache-control", "max-age=\"5\"")], Some(5)),
            (&[("cache-control", "max-age=500")], Some(100)),
            (&[("cache-control", "max-age=99999999999999999999999")], Some(100)),
            (&[("cache-control", "max-age=abc")], None),
            (&[("cache-control", "max-age=-1")], None),
            (&[("cache-control", "max-age=0")], None),
            (&[("cache-control", "s-maxage=5, max-age=7")], Some(5)),
            (&[("cache-control", "max-age=7"), ("cache-control", "s-maxage=0")], None),
            (&[("cache-control", "public")], None),
            (&[("cache-control", "no-store, max-age=5")], None),
            (&[("cache-control", "max-age=5"), ("cache-control", "no-store")], None),
            (&[("cache-control", "private=\"x\", max-age=5")], None),
            (&[("cache-control", "no-cache=\"set-cookie\", max-age=5")], None),
            (&[("cache-control", "must-revalidate, max-age=5")], Some(5)),
            (&[("cache-control", "x=\"a, private\", max-age=5")], Some(5)),
            (&[("pragma", "no-cache"), ("cache-control", "max-age=5")], None),
            (&[("age", "2"), ("cache-control", "max-age=5")], Some(3)),
            (&[("age", "5"), ("cache-control", "max-age=5")], None),
            (&[("age", "x"), ("cache-control", "max-age=5")], None),
            (&[("age", "2, 4"), ("cache-control", "max-age=5")], Some(3)),
            (&[("age", "2"), ("age", "4"), ("cache-control", "max-age=5")], Some(3)),
            (&[("age", "x, 4"), ("cache-control", "max-age=5")], None),
            // The cache's own limit applies to the time in this cache.
            (&[("age", "400"), ("cache-control", "max-age=5000")], Some(100)),
            (&[("age", "4950"), ("cache-control", "max-age=5000")], Some(50)),
            (&[("age", "40"), ("etag", "\"e\"")], Some(60)),
            (&[("expires", "0"), ("etag", "\"e\"")], None),
            (&[("expires", "Tue, 24 Nov 2001 18:00:00 GMT"), ("etag", "\"e\"")], None),
            (&[("expires", "Tue, 24 Nov 2201 18:00:00 GMT")], Some(100)),
        ];
        for (fields, expected) in rows {
            let found = lifetime(100, &response(fields), Moment::ZERO, 1_795_543_000).map(|life| life.left.as_secs());
            assert_eq!(found, *expected, "{fields:?}");
        }
    }

    #[test]
    fn responses_say_whether_they_may_be_used_once_they_are_over() {
        let rows: &[(&str, (bool, Option<u64>))] = &[
            ("max-age=5", (false, None)),
            ("max-age=5, must-revalidate", (true, None)),
            ("proxy-revalidate", (true, None)),
            ("s-maxage=5", (true, None)),
            ("max-age=5, stale-if-error=60", (false, Some(60))),
            ("Stale-If-Error=\"60\", Must-Revalidate", (true, Some(60))),
            ("stale-if-error", (false, Some(0))),
            ("stale-if-error=x", (false, Some(0))),
            ("x=\"a, must-revalidate\"", (false, None)),
        ];
        for (value, expected) in rows {
            let (never, own) = staleness(&response(&[("cache-control", value)]));
            assert_eq!((never, own.map(|own| own.as_secs())), *expected, "{value}");
        }
    }

    /// RFC 9111 to the letter, at a wall time of 18:00:00.
    #[test]
    fn responses_live_as_the_standard_says() {
        const NOW: &str = "Tue, 24 Nov 2026 18:00:00 GMT";
        const BEFORE: &str = "Tue, 24 Nov 2026 17:59:57 GMT";
        const LATER: &str = "Tue, 24 Nov 2026 18:00:10 GMT";
        let wall = parse_http_date(NOW.as_bytes()).unwrap();
        type Row<'a> = (u16, &'a [(&'a str, &'a str)], Option<(u64, u32)>);
        let rows: &[Row<'_>] = &[
            (200, &[("cache-control", "max-age=5")], Some((5, 0))),
            (200, &[("cache-control", "max-age=500")], Some((100, 0))),
            (200, &[("cache-control", "s-maxage=7, max-age=5")], Some((7, 0))),
            (200, &[("cache-control", "s-maxage=x, max-age=5")], None),
            (200, &[("expires", LATER)], Some((10, 0))),
            (200, &[("expires", LATER), ("date", NOW)], Some((10, 0))),
            // From Date to Expires are 13 seconds, of which 3 have passed.
            (200, &[("expires", LATER), ("date", BEFORE)], Some((10, 3))),
            (200, &[("expires", LATER), ("date", BEFORE), ("age", "5")], Some((8, 5))),
            (200, &[("expires", "0"), ("date", NOW)], None),
            (200, &[("expires", NOW), ("date", NOW)], None),
            (200, &[("expires", LATER), ("cache-control", "max-age=5")], Some((5, 0))),
            (200, &[("cache-control", "max-age=5"), ("date", BEFORE)], Some((2, 3))),
            (200, &[("cache-control", "max-age=5"), ("date", LATER)], Some((5, 0))),
            (200, &[("cache-control", "max-age=5"), ("age", "2")], Some((3, 2))),
            (200, &[("cache-control", "max-age=5"), ("age", "x")], Some((5, 0))),
            (200, &[("cache-control", "max-age=5"), ("age", "5")], None),
            (200, &[("cache-control", "max-age=5"), ("age", "2, 5")], Some((3, 2))),
            (200, &[("cache-control", "max-age=5000"), ("age", "400")], Some((100, 400))),
            // No heuristics.
            (200, &[("etag", "\"e\""), ("last-modified", BEFORE)], None),
            (200, &[("cache-control", "public")], None),
            (200, &[("cache-control", "no-store, max-age=5")], None),
            (200, &[("cache-control", "no-store, must-understand, max-age=5")], Some((5, 0))),
            (599, &[("cache-control", "no-store, must-understand, max-age=5")], None),
            (200, &[("cache-control", "private, max-age=5")], None),
            (200, &[("cache-control", "private=\"x-a\", max-age=5")], Some((5, 0))),
            (200, &[("cache-control", "private=\"x-a\", private, max-age=5")], None),
            (200, &[("cache-control", "no-cache, max-age=5")], None),
            (200, &[("cache-control", "no-cache=\"x-a\", max-age=5")], Some((5, 0))),
            (200, &[("pragma", "no-cache"), ("cache-control", "max-age=5")], Some((5, 0))),
            (404, &[("cache-control", "max-age=5")], Some((5, 0))),
        ];
        for (status, fields, expected) in rows {
            let mut head = response(fields);
            head.set_status(*status, b"x");
            let found = lifetime_by_standard(100, &head, Moment::ZERO, wall);
            assert_eq!(found.map(|life| (life.left.as_secs(), life.age)), *expected, "{status} {fields:?}");
        }
    }

    #[test]
    fn statuses_are_stored_that_a_cache_understands() {
        for (status, standard, by_default) in [
            (200, true, true),
            (203, true, false),
            (204, false, false),
            (206, false, false),
            (301, true, false),
            (304, false, false),
            (404, true, false),
            (500, false, false),
            (503, false, false),
        ] {
            assert_eq!((may_be_stored(true, status), may_be_stored(false, status)), (standard, by_default), "{status}");
        }
    }

    #[test]
    fn requests_say_what_a_stored_response_has_to_be() {
        let seconds = Duration::from_secs;
        let wants = |max_age: Option<u64>, min_fresh, max_stale| RequestDirectives {
            max_age: max_age.map(seconds),
            min_fresh: seconds(min_fresh),
            max_stale: seconds(max_stale),
        };
        type Row<'a> = (&'a [(&'a str, &'a str)], RequestDirectives, bool, bool);
        let rows: &[Row<'_>] = &[
            (&[], wants(None, 0, 0), false, false),
            (&[("cache-control", "max-age=5")], wants(Some(5), 0, 0), false, false),
            (&[("cache-control", "max-age=x")], wants(Some(0), 0, 0), true, false),
            (&[("cache-control", "min-fresh=5, Max-Stale=7")], wants(None, 5, 7), false, false),
            (&[("cache-control", "min-fresh")], wants(None, 0, 0), true, false),
            (&[("cache-control", "max-stale")], wants(None, 0, FOREVER), false, false),
            (&[("cache-control", "max-stale=x")], wants(None, 0, 0), false, false),
            (&[("cache-control", "no-cache")], wants(None, 0, 0), true, false),
            (&[("cache-control", "only-if-cached"), ("cache-control", "max-age=3")], wants(Some(3), 0, 0), false, true),
            (&[("pragma", "no-cache")], wants(None, 0, 0), true, false),
            (&[("pragma", "no-cache"), ("cache-control", "max-age=3")], wants(Some(3), 0, 0), false, false),
        ];
        for (fields, wants, wants_fresh, only_if_cached) in rows {
            let expected =
                CacheDirectives { wants: *wants, wants_fresh: *wants_fresh, only_if_cached: *only_if_cached };
            assert_eq!(parse_directives(&response(fields)), expected, "{fields:?}");
        }
    }

    #[test]
    fn requests_for_a_fresh_response_are_recognised() {
        let rows: &[(&[(&str, &str)], bool)] = &[
            (&[], false),
            (&[("cache-control", "no-cache")], true),
            (&[("cache-control", "x, Max-Age=5")], true),
            (&[("cache-control", "max-stale")], true),
            (&[("cache-control", "min-fresh=100")], true),
            (&[("cache-control", "only-if-cached, no-transform, no-store")], false),
            (&[("cache-control", "x=\"a, no-cache\"")], false),
            (&[("pragma", "no-cache")], true),
            (&[("pragma", "no-cache"), ("cache-control", "x")], false),
        ];
        for (fields, expected) in rows {
            assert_eq!(wants_fresh(&response(fields)), *expected, "{fields:?}");
        }
    }

    #[test]
    fn a_later_response_updates_the_fields_of_the_same_one() {
        let stored = response(&[("etag", "\"e\""), ("x-a", "1"), ("content-type", "a"), ("date", "old")]);
        let rows: &[(&[(&str, &str)], bool)] = &[
            (&[("etag", "\"e\"")], true),
            (&[("etag", "W/\"e\"")], false),
            (&[("etag", "\"f\"")], false),
            (&[("last-modified", "old")], false),
            (&[], false),
        ];
        for (fields, expected) in rows {
            assert_eq!(is_same(&stored, &response(fields)), *expected, "{fields:?}");
        }
        let came =
            response(&[("x-a", "2"), ("x-a", "3"), ("set-cookie", "a=b"), ("content-type", "b"), ("date", "new")]);
        let head = updated(&stored, &came);
        let mut all: Vec<_> = head
            .fields()
            .map(|(name, value)| format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)))
            .collect();
        all.sort();
        assert_eq!(all, ["content-type: a", "date: new", "etag: \"e\"", "x-a: 2", "x-a: 3"]);
    }

    #[test]
    fn fields_that_are_kept_back_are_named() {
        let head = response(&[("cache-control", "private=\"X-A, x-b\", no-cache=\"set-cookie\", max-age=5, x=\"y\"")]);
        assert_eq!(kept_back(&head), [b"x-a".to_vec(), b"x-b".to_vec(), b"set-cookie".to_vec()]);
    }
}
