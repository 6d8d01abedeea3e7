//! What caches do for a stream (configuration manual, section 6): which requests they may answer (`cache-use`), which responses they may
//! store (`cache-store`), and the answer that is made of a stored one. Must never hold a response.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use base::moment::Moment;
use conn::service::Service;
use live::cache::{Cache, Codings, Found, Lead, Lifetime, Object, Role, Signature, Varies};
use live::counters::{ContentCounters, Count};
use policy::rule::Action;
use wire::date::parse_http_date;
use wire::http::{Framing, Head, Method, Version};

use crate::session::Session;
use crate::stream::filter;
use crate::stream::hints;
use crate::stream::request::origin_form;
use crate::stream::serving::Started;
use crate::stream::stored::Stored;
use crate::stream_state::StreamState;

/// How long one request may take that fetches a response in the place of an old one, before another one goes.
const REFRESH: Duration = Duration::from_secs(60);

/// How the cache is named in place of a server.
const SHOWN: &str = "<CACHE>";

/// What `cache-use` has found out about a request.
pub struct CacheUse {
    /// Scheme, host and target: what the request asks for.
    key: Box<[u8]>,
    /// What the response may depend on beside that; `None`: too much.
    signature: Option<Signature>,
    /// The response may be stored.
    may_store: bool,
    /// The cache that answers, and its response.
    hit: Option<(usize, Arc<Object>)>,
    /// What hints are sent of.
    hints: Option<Arc<Object>>,
    /// Others wait for its response.
    lead: Cell<Option<Lead>>,
    /// The cache whose next response for the same it waits for.
    awaits: Option<usize>,
    /// The cache whose old response may answer it where its server fails.
    falls_back: Option<usize>,
}

/// What a cache does for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// It answers.
    Answers,
    /// It has hints for the client.
    Hints,
    /// Another request asks a server for the same.
    Waits,
    /// Nothing.
    None,
}

/// Whether the list of a field names a directive, with or without a value.
fn has_directive(head: &Head, field: &[u8], wanted: &[u8]) -> bool {
    head.all(field).flat_map(directives).any(|(name, _)| name.eq_ignore_ascii_case(wanted))
}

/// Directives and their values, unquoted (RFC 9111, section 5.2): commas between quotes divide nothing.
fn directives(value: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
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

/// Methods whose success changes what is asked for (RFC 9111, section 4.4).
fn is_unsafe(method: Method) -> bool {
    !matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace | Method::Connect)
}

/// Whether the target of a request names another host than its Host field: which one a server takes is not known.
fn names_two_hosts(request: &Head) -> bool {
    let target = request.target();
    let named = wire::http::target::host(target).and_then(|(from, to)| target.get(from..to));
    named.is_some_and(|named| !request.host().is_some_and(|host| host.eq_ignore_ascii_case(named)))
}

/// What a request asks for: responses are shared by requests that have all of this in common.
fn key(session: &Session, request: &Head) -> Box<[u8]> {
    let scheme: &[u8] = if session.is_secure() { b"https://" } else { b"http://" };
    let target = origin_form(request.target());
    // A blank ends the host, in which none can be.
    [scheme, request.host().unwrap_or_default(), b" ", target].concat().into()
}

/// Performs a rule on a request.
pub fn request(session: &Session, state: &mut StreamState, action: &Action) -> Help {
    match action {
        Action::UseCache { cache, hints } => look_up(session, state, (*cache, *hints)),
        Action::PurgeCache(cache) => {
            if let Some(cache) = session.worker.process.live.caches.get(*cache) {
                cache.remove(&key(session, &state.request));
            }
            Help::None
        }
        _ => Help::None,
    }
}

/// Whether a status says that a server has failed (RFC 5861, section 4).
fn is_failure(status: i32) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// Whether an answer with that status makes way for an old response (`stale-if-error`).
pub fn has_fallback(session: &Session, state: &StreamState, status: u16) -> bool {
    is_failure(status.into()) && fallback(session, state).is_some()
}

fn fallback(session: &Session, state: &StreamState) -> Option<(usize, Arc<Object>)> {
    let cache_use = state.cache.as_deref()?;
    let index = cache_use.falls_back.filter(|_| state.cache_hit.is_none())?;
    let cache = session.worker.process.live.caches.get(index)?;
    let object = cache.look_up_stale(&cache_use.key, cache_use.signature.as_ref()?, rt::now())?;
    Some((index, object))
}

/// What answers a request whose server has failed with that status, where an old response may.
pub fn stale_answer(session: &Session, state: &mut StreamState, status: i32) -> Option<Started> {
    let (index, object) = fallback(session, state).filter(|_| is_failure(status))?;
    count(session, state, |counters| &counters.cache_hits);
    state.cache_hit = Some(index);
    state.response.clear();
    if let Some(cache_use) = state.cache.as_mut() {
        // Those that wait for this one look for themselves.
        cache_use.lead.take();
        cache_use.hit = Some((index, object));
    }
    Some(answer(session, state))
}

/// Performs a rule on a response.
pub fn response(session: &Session, state: &StreamState, head: &mut Head, action: &Action) {
    if let Action::StoreInCache(cache) = action {
        store(session, state, head, *cache);
    }
}

/// The rule `cache-use`: looks for a response.
fn look_up(session: &Session, state: &mut StreamState, (index, hints): (usize, bool)) -> Help {
    let Some(cache) = session.worker.process.live.caches.get(index) else { return Help::None };
    let request = &state.request;
    if request.version() != Version::Http11 || request.contains(b"authorization") || names_two_hosts(request) {
        return Help::None;
    }
    let method = request.known_method();
    // What a body says is no part of the key, and a switch of protocols is none of a cache's business.
    let plain = !request.framing.has_body() && !request.upgrade;
    let signature = if cache.plan().varies { Signature::of(request) } else { Some(Signature::default()) };
    let may_store = method == Method::Get && plain && !has_directive(request, b"cache-control", b"no-store");
    let key = key(session, request);
    let wants_fresh = has_directive(request, b"cache-control", b"no-cache")
        || has_directive(request, b"cache-control", b"max-age")
        || has_directive(request, b"pragma", b"no-cache");
    let mut found = Found::Nothing;
    let may_answer = matches!(method, Method::Get | Method::Head) && plain && !wants_fresh;
    if may_answer {
        count(session, state, |counters| &counters.cache_lookups);
        if let Some(signature) = &signature {
            found = cache.look_up(&key, signature, rt::now());
        }
    }
    let falls_back = (may_answer && cache.plan().stale_if_error > Duration::ZERO).then_some(index);
    let mut cache_use =
        CacheUse { key, signature, may_store, hit: None, hints: None, lead: Cell::default(), awaits: None, falls_back };
    let help = settle(session, state, cache, (&mut cache_use, index, hints), found, true);
    state.cache = Some(Box::new(cache_use));
    help
}

/// What is found means for a request. `first`: it has not waited yet.
fn settle(
    session: &Session,
    state: &mut StreamState,
    cache: &Arc<Cache>,
    (cache_use, index, hints): (&mut CacheUse, usize, bool),
    found: Found,
    first: bool,
) -> Help {
    let now = rt::now();
    let found = match found {
        // One request fetches another one, the others are served meanwhile.
        Found::Stale(object) if cache_use.may_store => match cache.join(&cache_use.key, now, now + REFRESH) {
            Role::Leads(lead) => {
                cache_use.lead.set(Some(lead));
                Found::Nothing
            }
            Role::Follows => Found::Hit(object),
        },
        Found::Stale(object) => Found::Hit(object),
        other => other,
    };
    if let Found::Hit(object) = found {
        count(session, state, |counters| &counters.cache_hits);
        state.cache_hit = Some(index);
        cache_use.hit = Some((index, object));
        return Help::Answers;
    }
    let leads = cache_use.lead.take();
    let is_alone = leads.is_some();
    cache_use.lead.set(leads);
    if let Some(limit) = cache.plan().coalesce.filter(|_| cache_use.may_store && first && !is_alone) {
        match cache.join(&cache_use.key, now, now + limit) {
            Role::Leads(lead) => cache_use.lead.set(Some(lead)),
            Role::Follows => {
                cache_use.awaits = Some(index);
                return Help::Waits;
            }
        }
    }
    match found {
        Found::Hints(object) if hints => {
            count(session, state, |counters| &counters.cache_hint_hits);
            cache_use.hints = Some(object);
            Help::Hints
        }
        _ => Help::None,
    }
}

/// The cache that a request waits for, and the key of what it asks for.
pub fn awaited(session: &Session, state: &StreamState) -> Option<(Arc<Cache>, Box<[u8]>)> {
    let cache_use = state.cache.as_deref()?;
    let cache = session.worker.process.live.caches.get(cache_use.awaits?)?;
    Some((Arc::clone(cache), cache_use.key.clone()))
}

/// The other request has been answered, or takes too long: looks again.
pub fn look_again(session: &Session, state: &mut StreamState) -> Help {
    let Some(mut cache_use) = state.cache.take() else { return Help::None };
    let index = cache_use.awaits.take();
    let cache = index.and_then(|index| session.worker.process.live.caches.get(index));
    let mut help = Help::None;
    if let (Some(cache), Some(index), Some(signature)) = (cache, index, &cache_use.signature) {
        let found = cache.look_up(&cache_use.key, signature, rt::now());
        help = settle(session, state, cache, (&mut cache_use, index, false), found, false);
    }
    state.cache = Some(cache_use);
    help
}

/// Counts for the proxy whose rule it is.
fn count(session: &Session, state: &StreamState, which: impl Fn(&ContentCounters) -> &Count) {
    let proxies = &session.worker.counters().proxies;
    match state.backend.filter(|backend| *backend != session.frontend) {
        Some(backend) => which(&proxies[backend].back_content).increment(),
        None => which(&proxies[session.frontend].front_content).increment(),
    }
}

/// What there is to send before the response.
pub fn take_hints(state: &mut StreamState) -> Option<Arc<Object>> {
    state.cache.as_mut()?.hints.take()
}

/// The service that answers a request by what was found for it.
pub fn answer(session: &Session, state: &mut StreamState) -> Started {
    let found = state.cache.as_mut().and_then(|cache_use| cache_use.hit.take());
    let service = found.map(|(index, object)| {
        let cache = session.worker.process.live.caches.get(index);
        let ranges = cache.is_some_and(|cache| cache.plan().ranges);
        Box::new(Stored::new(object, ranges)) as Box<dyn Service>
    });
    Started { service, shown: SHOWN.into(), ruled: true }
}

/// The rule `cache-store`: stores the response, or forgets what a request has changed.
fn store(session: &Session, state: &StreamState, head: &mut Head, index: usize) {
    let Some(cache) = session.worker.process.live.caches.get(index) else { return };
    let Some(cache_use) = state.cache.as_deref().filter(|_| state.cache_hit.is_none()) else { return };
    // Whoever waits goes on once it is stored, or now.
    let lead = cache_use.lead.take();
    let method = state.request.known_method();
    if is_unsafe(method) {
        if (200..400).contains(&head.status()) {
            cache.remove(&cache_use.key);
        }
        return;
    }
    if method != Method::Get || !cache_use.may_store || state.wants_head_alone() || head.status() != 200 {
        return;
    }
    let Some(filters) = state.filters.as_ref().filter(|filters| filter::can_store(filters, index)) else { return };
    let Some((object, length)) = object(cache, cache_use, head) else { return };
    let signature = cache_use.signature.unwrap_or_default();
    if cache.plan().hints == config::spec::EarlyHints::Only {
        if !object.hints.is_empty() {
            cache.store_hints(&cache_use.key, object);
        }
        return;
    }
    // How old it is says the cache.
    head.remove_all(b"age");
    if let Some(storing) = cache.begin(&cache_use.key, &signature, object, length) {
        filter::keep(filters, index, storing.led_by(lead));
    }
}

/// What is stored of a response, and the length of its body; `None`: it must not be.
fn object(cache: &Cache, cache_use: &CacheUse, head: &Head) -> Option<(Object, Option<u64>)> {
    let plan = cache.plan();
    let life = lifetime(plan.age, head, (rt::now(), rt::wall().seconds))?;
    let varies = Varies::of(head);
    let mut variant = (Varies::default(), Signature::default());
    if head.contains(b"vary") {
        let varies = varies.filter(|_| plan.varies)?;
        let own = cache_use.signature?;
        let codings = Codings::of_response(head)?;
        if varies.coding && !codings.are_among(own.codings) {
            // The client gets it, because the server has nothing better.
            return None;
        }
        variant = (varies, Signature { codings, ..own });
    }
    let length = match head.framing {
        Framing::None => return None,
        Framing::Length(length) => Some(length),
        Framing::Chunked | Framing::UntilClose => None,
    };
    let mut kept = head.clone();
    kept.trailers = None;
    for field in [&b"age"[..], b"connection", b"upgrade", b"trailer"] {
        kept.remove_all(field);
    }
    let mut object = Object::new(kept, life);
    (object.never_stale, object.stale_if_error) = staleness(head);
    object.variant = variant;
    let date = |name: &[u8]| head.first(name).and_then(parse_http_date);
    object.modified = date(b"last-modified").or_else(|| date(b"date")).unwrap_or(rt::wall().seconds);
    if let Some(field) = &plan.tag_field {
        object.tags = tags(head, field);
    }
    if plan.hints != config::spec::EarlyHints::Off {
        object.hints = head.all(b"link").filter_map(hints::of_field).collect();
    }
    Some((object, length))
}

/// Tags of a response at most.
const TAGS: usize = 64;

/// The tags that a field names, between blanks and commas.
fn tags(head: &Head, field: &[u8]) -> Box<[Box<[u8]>]> {
    let all = head.all(field).flat_map(|value| value.split(|byte| matches!(byte, b' ' | b',' | b'\t')));
    all.filter(|tag| !tag.is_empty()).take(TAGS).map(Into::into).collect()
}

/// How long a response may be used (RFC 9111, section 4.2.1): `None`: it must not be stored.
fn lifetime(most: u32, head: &Head, (now, wall): (Moment, i64)) -> Option<Lifetime> {
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
    let left = left.min(u64::from(most));
    let age = match head.first(b"age") {
        Some(age) => seconds(age)?,
        None => 0,
    };
    let left = left.checked_sub(age).filter(|left| *left > 0)?;
    let age = u32::try_from(age).unwrap_or(u32::MAX);
    Some(Lifetime { stored: now, age, left: Duration::from_secs(left) })
}

/// Whether a response must not be used once it is over (RFC 9111, sections 4.2.4 and 5.2.2.10), and how long it permits that
/// where its server fails (RFC 5861, section 4).
fn staleness(head: &Head) -> (bool, Option<Duration>) {
    let says = |name: &[u8]| has_directive(head, b"cache-control", name);
    let never = [&b"must-revalidate"[..], b"proxy-revalidate", b"s-maxage"].into_iter().any(says);
    let mut said = head.all(b"cache-control").flat_map(directives);
    let own = said.find(|(name, _)| name.eq_ignore_ascii_case(b"stale-if-error"));
    (never, own.map(|(_, value)| Duration::from_secs(value.and_then(seconds).unwrap_or(0))))
}

/// A number of seconds; more than fits is a long time.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    is_number.then(|| text.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row<'r, T> = (&'r [(&'r str, &'r str)], T);

    fn response(fields: &[(&str, &str)]) -> Head {
        let mut head = Head::new();
        fields.iter().for_each(|(name, value)| head.append(name.as_bytes(), value.as_bytes()));
        head
    }

    /// What HAProxy 3.5 was seen to store with `max-age 100`, and for how long.
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
            (&[("expires", "0"), ("etag", "\"e\"")], None),
            (&[("expires", "Tue, 24 Nov 2001 18:00:00 GMT"), ("etag", "\"e\"")], None),
            (&[("expires", "Tue, 24 Nov 2201 18:00:00 GMT")], Some(100)),
        ];
        for (fields, expected) in rows {
            let found = lifetime(100, &response(fields), (Moment::ZERO, 1_795_543_000)).map(|life| life.left.as_secs());
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
}
