//! Caches as a stream uses them (configuration manual, section 6): which requests they may answer (`cache-use`), which
//! responses they may store (`cache-store`), and the answer that is generated from a stored response. Must never hold a
//! response.

pub(super) mod cache_help;
pub(super) mod cache_hit;
pub(super) mod cacheability;
pub(super) mod freshness;
pub(super) mod stored_response;
pub(super) mod validation;

use std::cell::Cell;
use std::future::Future as _;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use conn::service::Service;
use live::cache::{Cache, CacheLookup, Codings, Object, Place, RequestDirectives, Role, Signature, Update, Varies};
use live::counters::{ContentCounters, Count};
use policy::rule::Action;
use wire::date::parse_http_date;
use wire::http::{Framing, Head, Method, Version};

use crate::session::Session;
pub use crate::stream::cache::cache_help::Help;
use crate::stream::cache::freshness::{CacheDirectives, has_directive, lifetime, lifetime_by_standard, staleness};
use crate::stream::cache::stored_response::StoredResponse;
use crate::stream::exchange::filter;
use crate::stream::exchange::started_service::StartedService;
use crate::stream::reply::early_hints;
use crate::stream::request::request_target::origin_form;
use crate::stream_state::cache_use::CacheUse;
use crate::stream_state::{ServiceName, StreamState};
use crate::worker::SharedStreamState;

/// Maximum duration of a request that refreshes a stale response, before another request does so.
const REFRESH: Duration = Duration::from_secs(60);

/// Maximum time that a request waits for a response to be read from a file.
const READ: Duration = Duration::from_secs(1);

/// Name of the cache in place of a server.
pub(super) const SHOWN: ServiceName = ServiceName::Known("<CACHE>");

/// Whether a successful request with this method invalidates stored responses (RFC 9111, section 4.4).
fn is_unsafe(method: Method) -> bool {
    !matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace | Method::Connect)
}

/// Whether the request target names another host than the Host field: which one a server uses is not known.
fn names_two_hosts(request: &Head) -> bool {
    let target = request.target();
    if target.starts_with(b"/") {
        return false;
    }
    let named = wire::http::target::host(target).and_then(|(from, to)| target.get(from..to));
    named.is_some_and(|named| !request.host().is_some_and(|host| host.eq_ignore_ascii_case(named)))
}

/// Returns the cache key of a request, in a text buffer borrowed from the worker. Requests with the same key share
/// stored responses.
fn key(session: &Session, request: &Head) -> Vec<u8> {
    let scheme: &[u8] = if session.is_secure() { b"https://" } else { b"http://" };
    let target = origin_form(request.target());
    let host = request.host().unwrap_or_default();
    let mut key = session.worker.take_text();
    key.extend_from_slice(scheme);
    key.extend_from_slice(host);
    // A space ends the host, which cannot contain one.
    key.push(b' ');
    key.extend_from_slice(target);
    key
}

/// Performs the action of a rule on a request.
pub fn request(session: &Session, state: &mut StreamState, action: &Action) -> Help {
    match action {
        Action::UseCache { cache, hints } => look_up(session, state, *cache, *hints),
        Action::PurgeCache(cache) => {
            if let Some(cache) = session.worker.process.live.caches.get(*cache) {
                let key = key(session, &state.request);
                cache.remove(&key);
                session.worker.keep_text(key);
            }
            Help::None
        }
        _ => Help::None,
    }
}

/// Whether a status means that the server has failed (RFC 5861, section 4).
fn is_failure(status: i32) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

/// Whether an answer with that status is replaced by a stale response (`stale-if-error`).
pub fn has_fallback(session: &Session, state: &StreamState, status: u16) -> bool {
    is_failure(status.into()) && fallback(session, state).is_some()
}

fn fallback(session: &Session, state: &StreamState) -> Option<(usize, Arc<Object>)> {
    let cache_use = state.cache.as_deref()?;
    let index = cache_use.falls_back.filter(|_| state.answer.cache_hit.is_none())?;
    let cache = session.worker.process.live.caches.get(index)?;
    let object = cache.look_up_stale(&cache_use.key, cache_use.signature.as_ref()?, rt::now())?;
    Some((index, object))
}

/// Returns the stale response that answers a request whose server has failed with that status, if one may.
pub fn stale_answer(session: &Session, state: &mut StreamState, status: i32) -> Option<StartedService> {
    let (index, object) = fallback(session, state).filter(|_| is_failure(status))?;
    takes_over(session, state, index, object)
}

/// Answers a request that was sent to a server with a stored response.
pub(super) fn takes_over(
    session: &Session,
    state: &mut StreamState,
    index: usize,
    object: Arc<Object>,
) -> Option<StartedService> {
    answers(session, state, index, object);
    state.response.clear();
    withdraw(state);
    // Requests that wait for this one look up again.
    state.cache.as_mut()?.lead.take();
    let service = take_hit(session, state).map(|stored| Box::new(stored) as Box<dyn Service>);
    Some(StartedService { service, shown: SHOWN, ruled: true })
}

/// Records that a response of the cache answers the request.
fn answers(session: &Session, state: &mut StreamState, index: usize, object: Arc<Object>) {
    count(session, state, |counters| &counters.cache_hits);
    (state.answer.cache_hit, state.answer.hit) = (Some(index), Some(object));
}

/// Removes the conditional fields that the cache has added to the request.
fn withdraw(state: &mut StreamState) {
    if state.cache.as_mut().is_some_and(|cache_use| cache_use.conditional) {
        validation::withdraw(&mut state.request);
    }
}

/// The rule `cache-use`: looks up a response.
fn look_up(session: &Session, state: &mut StreamState, index: usize, hints: bool) -> Help {
    let Some(cache) = session.worker.process.live.caches.get(index) else { return Help::None };
    let request = &state.request;
    // A request with credentials gets a stored response only if RFC 9111 permits it (section 3.5).
    let authorized = request.contains(b"authorization");
    if request.version() != Version::Http11 || authorized && !cache.plan().standard || names_two_hosts(request) {
        return Help::None;
    }
    let method = request.known_method();
    // The content of a body is not part of the key, and a protocol switch is never cached.
    let plain = !request.framing.has_body() && !request.upgrade;
    let signature = if cache.plan().varies { Signature::of(request) } else { Some(Signature::default()) };
    let may_store = method == Method::Get && plain && !has_directive(request, b"cache-control", b"no-store");
    let key = key(session, request);
    let asked = if cache.plan().standard {
        freshness::parse_directives(request)
    } else {
        CacheDirectives { wants_fresh: freshness::wants_fresh(request), ..CacheDirectives::default() }
    };
    let mut found = CacheLookup::Nothing;
    let may_answer = matches!(method, Method::Get | Method::Head) && plain && !asked.wants_fresh;
    if may_answer {
        count(session, state, |counters| &counters.cache_lookups);
        if let Some(signature) = &signature {
            found = find(cache, &key, signature, &asked, authorized);
        }
    }
    if let CacheLookup::Hit(object) = found {
        session.worker.keep_text(key);
        // A conditional request of another cache is withdrawn.
        withdraw(state);
        state.cache = None;
        answers(session, state, index, object);
        return Help::Answers;
    }
    let falls_back = (may_answer && !authorized && cache.plan().stale_if_error > Duration::ZERO).then_some(index);
    let mut cache_use = CacheUse {
        key: key.as_slice().into(),
        signature,
        may_store,
        authorized,
        hints: None,
        lead: Cell::default(),
        awaits: None,
        lies: None,
        falls_back,
        asks_for: None,
        conditional: false,
        only_if_cached: asked.only_if_cached,
    };
    session.worker.keep_text(key);
    let lies = (!authorized && matches!(found, CacheLookup::Nothing | CacheLookup::Hints(_)))
        .then(|| lies(session, cache, &cache_use, index));
    let help = match lies.flatten().filter(|_| may_answer && asked.wants == RequestDirectives::default()) {
        Some(place) => {
            cache_use.lies = Some((index, place));
            Help::Reads
        }
        None if asked.only_if_cached => return Help::Unsatisfied,
        // It neither waits for another request nor lets others wait for it.
        None if authorized => Help::None,
        None => {
            continue_after_lookup(session, state, cache, &mut cache_use, Lookup { index, found, hints, waits: true })
        }
    };
    state.cache = Some(Box::new(cache_use));
    help
}

/// Looks up a response for a request with these cache directives; `authorized`: the request has credentials.
fn find(cache: &Cache, key: &[u8], signature: &Signature, asked: &CacheDirectives, authorized: bool) -> CacheLookup {
    let found = match cache.plan().standard {
        true => cache.look_up_for(key, signature, rt::now(), &asked.wants),
        false => cache.look_up(key, signature, rt::now()),
    };
    match found {
        CacheLookup::Hit(object) if authorized && !freshness::is_for_all(&object.head) => CacheLookup::Nothing,
        CacheLookup::Hit(object) => CacheLookup::Hit(object),
        _ if authorized => CacheLookup::Nothing,
        CacheLookup::Stale(object) if asked.only_if_cached => CacheLookup::Hit(object),
        found => found,
    }
}

/// Returns the place of the response in the file of a cache.
fn lies(session: &Session, cache: &Cache, cache_use: &CacheUse, index: usize) -> Option<Place> {
    if !cache.has_disk() || !session.worker.process.disks.get(index)?.is_ready() {
        return None;
    }
    cache.place(&cache_use.key, cache_use.signature.as_ref()?, rt::now())
}

/// Reads a response from a file, for one second at most, and returns whether it answers.
pub async fn read(session: &Session, timer: &mut rt::Timer, state: &SharedStreamState) -> Help {
    let lying = state.borrow_mut().cache.as_mut().and_then(|own| Some((own.lies.take()?, own.key.clone())));
    let Some(((index, place), key)) = lying else { return Help::None };
    let process = &session.worker.process;
    let (Some(cache), Some(disk)) = (process.live.caches.get(index), process.disks.get(index)) else {
        return Help::None;
    };
    timer.arm(Some(rt::now() + READ));
    let mut reading = std::pin::pin!(disk.read(cache, key, place));
    let read = std::future::poll_fn(|cx| match reading.as_mut().poll(cx) {
        Poll::Ready(object) => Poll::Ready(object),
        Poll::Pending => timer.poll_expired(cx).map(|()| {
            disk.note_hang();
            None
        }),
    });
    let object = read.await;
    timer.arm(None);
    let state = &mut *state.borrow_mut();
    state.timings.request = Some(rt::now());
    disk.write(cache, rt::now());
    let Some(object) = object else {
        let alone = state.cache.as_ref().is_some_and(|cache_use| cache_use.only_if_cached);
        return if alone { Help::Unsatisfied } else { Help::None };
    };
    answers(session, state, index, object);
    Help::Answers
}

/// Result of a lookup.
struct Lookup {
    /// Index of the cache.
    index: usize,
    found: CacheLookup,
    /// The links of a stored response may be sent as early hints.
    hints: bool,
    /// The request may wait for another request.
    waits: bool,
}

/// Decides how a request continues after a lookup.
fn continue_after_lookup(
    session: &Session,
    state: &mut StreamState,
    cache: &Arc<Cache>,
    cache_use: &mut CacheUse,
    lookup: Lookup,
) -> Help {
    let Lookup { index, found, hints, waits } = lookup;
    let now = rt::now();
    let found = match found {
        // One request refreshes the response; the others are answered with the stale one until it is done.
        CacheLookup::Stale(object) if cache_use.may_store => match cache.join(&cache_use.key, now, now + REFRESH) {
            Role::Leads(lead) => {
                cache_use.lead.set(Some(lead));
                CacheLookup::Nothing
            }
            Role::Follows => CacheLookup::Hit(object),
        },
        CacheLookup::Stale(object) => CacheLookup::Hit(object),
        other => other,
    };
    if let CacheLookup::Hit(object) = found {
        answers(session, state, index, object);
        return Help::Answers;
    }
    let leads = cache_use.lead.take();
    let is_alone = leads.is_some();
    cache_use.lead.set(leads);
    if let Some(limit) = cache.plan().coalesce.filter(|_| cache_use.may_store && waits && !is_alone) {
        match cache.join(&cache_use.key, now, now + limit) {
            Role::Leads(lead) => cache_use.lead.set(Some(lead)),
            Role::Follows => {
                cache_use.awaits = Some(index);
                return Help::Waits;
            }
        }
    }
    if cache_use.may_store
        && let Some(object) = validation::ask(cache, &mut state.request, cache_use)
    {
        (cache_use.asks_for, cache_use.conditional) = (Some((index, object)), true);
    }
    match found {
        CacheLookup::Hints(object) if hints => {
            count(session, state, |counters| &counters.cache_hint_hits);
            cache_use.hints = Some(object);
            Help::Hints
        }
        _ => Help::None,
    }
}

/// Returns the cache for which a request waits, and the request's key in it.
pub fn awaited(session: &Session, state: &StreamState) -> Option<(Arc<Cache>, Box<[u8]>)> {
    let cache_use = state.cache.as_deref()?;
    let cache = session.worker.process.live.caches.get(cache_use.awaits?)?;
    Some((Arc::clone(cache), cache_use.key.clone()))
}

/// Looks up again after the other request was answered or has taken too long. `waits_on`: if nothing is found, one
/// request goes to a server and the others wait for it.
pub fn look_again(session: &Session, state: &mut StreamState, waits_on: bool) -> Help {
    let Some(mut cache_use) = state.cache.take() else { return Help::None };
    let index = cache_use.awaits.take();
    let cache = index.and_then(|index| session.worker.process.live.caches.get(index));
    let mut help = Help::None;
    if let (Some(cache), Some(index), Some(signature)) = (cache, index, &cache_use.signature) {
        let found = cache.look_up(&cache_use.key, signature, rt::now());
        help = continue_after_lookup(
            session,
            state,
            cache,
            &mut cache_use,
            Lookup { index, found, hints: false, waits: waits_on },
        );
    }
    state.cache = Some(cache_use);
    help
}

/// Counts for the proxy that defines the rule.
fn count(session: &Session, state: &StreamState, which: impl Fn(&ContentCounters) -> &Count) {
    let proxies = &session.worker.counters().proxies;
    match state.route.backend.filter(|backend| *backend != session.frontend) {
        Some(backend) => which(&proxies[backend].serving().content).increment(),
        None => which(&proxies[session.frontend].front_content).increment(),
    }
}

/// Takes the hints to send before the response.
pub fn take_hints(state: &mut StreamState) -> Option<Arc<Object>> {
    state.cache.as_mut()?.hints.take()
}

/// Takes the response that was found for a request and answers it.
pub(super) fn take_hit(session: &Session, state: &mut StreamState) -> Option<StoredResponse> {
    let object = state.answer.hit.take()?;
    let cache = state.answer.cache_hit.and_then(|index| session.worker.process.live.caches.get(index));
    let ranges = cache.is_some_and(|cache| cache.plan().ranges);
    Some(StoredResponse::new(object, ranges))
}

/// The rule `cache-store`: stores the response, or invalidates the responses that the request has changed.
pub fn store(session: &Session, state: &mut StreamState, head: &mut Head, index: usize) {
    let Some(cache) = session.worker.process.live.caches.get(index) else { return };
    let Some(cache_use) = state.cache.as_deref().filter(|_| state.answer.cache_hit.is_none()) else { return };
    // Waiting requests continue once the response is stored, or now.
    let mut lead = cache_use.lead.take();
    if let Some(lead) = &mut lead {
        // After a server error, the waiting requests try one after the other.
        lead.set_known(head.status() < 500);
    }
    let method = state.request.known_method();
    if is_unsafe(method) {
        if (200..400).contains(&head.status()) {
            cache.remove(&cache_use.key);
            if cache.plan().standard {
                others_changed(&cache_use.key, head).iter().for_each(|key| {
                    cache.remove(key);
                });
            }
        }
        return;
    }
    if cache.plan().standard && updates(method, head.status()) {
        return freshen(cache, cache_use, head, false);
    }
    let stores = freshness::may_be_stored(cache.plan().standard, head.status());
    if method != Method::Get || !cache_use.may_store || state.wants_head_alone() || !stores {
        return;
    }
    if cache_use.authorized && !freshness::is_for_all(head) {
        return;
    }
    if !filter::can_store(session, state, index) {
        return;
    }
    if ends_with_connection(session, state, head) {
        return;
    }
    let Some((object, length)) = object(cache, cache_use, head) else { return };
    let length = length.filter(|_| !filter::may_resize(session, state, index));
    let signature = cache_use.signature.unwrap_or_default();
    if cache.plan().hints == config::spec::EarlyHints::Only {
        if !object.hints.is_empty() {
            cache.store_hints(&cache_use.key, object);
        }
        return;
    }
    // The cache generates its own Age field.
    head.remove_all(b"age");
    if let Some(storing) = cache.begin(&cache_use.key, &signature, object, length) {
        filter::keep(session, state, index, storing.led_by(lead));
    }
    if let Some(disk) = session.worker.process.disks.get(index) {
        disk.write(cache, rt::now());
    }
}

/// Whether the body is delimited only by the end of the connection: a truncated one would look the same (RFC 9111,
/// section 3.3). A FastCGI application marks the end of its output.
fn ends_with_connection(session: &Session, state: &StreamState, head: &Head) -> bool {
    let is_fcgi = || {
        let proxy = state.route.backend.map(|backend| session.generation().proxy(backend));
        proxy.and_then(|proxy| proxy.backend.as_ref()).is_some_and(|backend| backend.fcgi.is_some())
    };
    head.framing == Framing::UntilClose && !is_fcgi()
}

/// Returns the keys of other responses that an unsafe request invalidates (RFC 9111, section 4.4): the targets of
/// Location and Content-Location on the same host.
fn others_changed(key: &[u8], head: &Head) -> Vec<Box<[u8]>> {
    let Some(end) = key.iter().position(|byte| *byte == b' ') else { return Vec::new() };
    let origin = &key[..end];
    let named = [&b"location"[..], b"content-location"].into_iter().flat_map(|field| head.all(field));
    let targets = named.filter_map(|value| {
        let value = value.split(|byte| *byte == b'#').next().unwrap_or_default();
        let rest = match value.get(..origin.len()) {
            Some(start) if start.eq_ignore_ascii_case(origin) => &value[origin.len()..],
            _ => value,
        };
        match rest {
            [] => Some(&b"/"[..]),
            [b'/', b'/', ..] => None,
            [b'/', ..] => Some(rest),
            _ => None,
        }
    });
    targets.map(|target| [origin, b" ", target].concat().into()).collect()
}

/// Whether a response may update a stored one, without being stored itself.
fn updates(method: Method, status: u16) -> bool {
    matches!((method, status), (Method::Get | Method::Head, 304) | (Method::Head, 200))
}

/// Updates or removes a stored response after a response of the server (RFC 9111, sections 4.3.4 and 4.3.5). `asked`:
/// the cache itself has made the request conditional.
pub(super) fn freshen(cache: &Cache, cache_use: &CacheUse, head: &Head, asked: bool) {
    let Some(signature) = &cache_use.signature else { return };
    cache.freshen(&cache_use.key, signature, |object| {
        // The Content-Length of a response to HEAD is that of the corresponding GET.
        let told = head.first(b"content-length").and_then(freshness::seconds).filter(|_| head.status() != 304);
        let is_whole = told.is_none_or(|length| length == object.length);
        let says_which = head.contains(b"etag") || head.contains(b"last-modified");
        if !is_whole || says_which && head.status() != 304 && !freshness::is_same(&object.head, head) {
            return Update::Remove;
        }
        if !freshness::is_same(&object.head, head) && (!asked || says_which) {
            return Update::Keep;
        }
        let kept = freshness::updated(&object.head, head);
        let life = lifetime_by_standard(cache.plan().age, &kept, rt::now(), rt::wall().seconds);
        let Some(life) = life else { return Update::Remove };
        let mut fresh = object.with_head(kept, life);
        (fresh.never_stale, fresh.stale_if_error) = staleness(&fresh.head);
        Update::Replace(Box::new(fresh))
    });
}

/// Returns the response to store and the length of its body; `None`: it must not be stored.
fn object(cache: &Cache, cache_use: &CacheUse, head: &Head) -> Option<(Object, Option<u64>)> {
    let plan = cache.plan();
    let of_plan = if plan.standard { lifetime_by_standard } else { lifetime };
    let life = of_plan(plan.age, head, rt::now(), rt::wall().seconds)?;
    let varies = Varies::of(head);
    let mut variant = (Varies::default(), Signature::default());
    if head.contains(b"vary") {
        let varies = varies.filter(|_| plan.varies)?;
        let own = cache_use.signature?;
        let codings = Codings::of_response(head)?;
        if varies.coding && !codings.are_among(own.codings) {
            // The client gets it nevertheless: the server has nothing better.
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
    kept.detach();
    for field in [&b"age"[..], b"connection", b"upgrade", b"trailer"] {
        kept.remove_all(field);
    }
    if plan.standard {
        freshness::kept_back(head).iter().for_each(|field| {
            kept.remove_all(field);
        });
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
        object.hints = head.all(b"link").filter_map(early_hints::of_field).collect();
    }
    Some((object, length))
}

/// Maximum number of tags per response.
const TAGS: usize = 64;

/// Returns the tags in a field, separated by blanks and commas.
fn tags(head: &Head, field: &[u8]) -> Box<[Box<[u8]>]> {
    let all = head.all(field).flat_map(|value| value.split(|byte| matches!(byte, b' ' | b',' | b'\t')));
    all.filter(|tag| !tag.is_empty()).take(TAGS).map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_unsafe_request_names_is_forgotten_on_the_same_host_alone() {
        let rows: &[(&str, &[&str])] = &[
            ("/b?c=d", &["http://a /b?c=d"]),
            ("http://a/b#f", &["http://a /b"]),
            ("HTTP://A", &["http://a /"]),
            ("http://b/c", &[]),
            ("http://a:81/c", &[]),
            ("http://a.b/c", &[]),
            ("https://a/c", &[]),
            ("//b/c", &[]),
            ("c", &[]),
        ];
        for (value, expected) in rows {
            let mut head = Head::new();
            head.append(b"location", value.as_bytes());
            let found = others_changed(b"http://a /x", &head);
            let found: Vec<_> = found.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
            assert_eq!(found, *expected, "{value}");
        }
    }
}
