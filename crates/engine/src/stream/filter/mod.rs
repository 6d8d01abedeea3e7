//! Calls of filters on the way of a stream, and the built-in filters. Must never know the work of a filter.

mod bandwidth;
mod cache;
mod chain;
mod coding;
mod compression;
mod grpc_web;
mod mirror;
mod replace_body;
mod set;
mod shared;
mod trace;

use std::task::{Context, Poll};
use std::time::Duration;

use conn::duplex::Duplex;
use conn::flow::Filtered;
use expression::pattern::Regex;
use expression::sample::Direction;
use live::cache::Storing;
use live::table::Pinned;
use policy::program::Proxy;
use wire::http::Head;

use crate::filter::set::Attached;
pub use crate::filter::{Event, HeadRefused, RulePosition};
use crate::filter::{Filters, Parties, Scene};
use crate::session::Session;
use crate::stream_state::StreamState;
use crate::worker::{SharedStreamState, Worker};
use chain::Chain;

/// Attaches the filters of the frontend to a new stream, if there are any.
pub fn begin(session: &Session, state: &SharedStreamState) {
    let proxy = session.proxy();
    if !proxy.filters.are_wanted {
        return;
    }
    let filters = new(session);
    {
        let set = &mut *filters.borrow_mut();
        set.attach(session, state, proxy, false);
        set.tell(Event::Begun);
        set.tell_of(Direction::Request, Event::Opened(Direction::Request), |_| true);
    }
    state.borrow_mut().filters = Some(filters);
}

/// Creates an empty set for a stream, reusing memory of the worker.
fn new(session: &Session) -> Filters {
    let worker = &session.worker;
    let scene = Scene {
        stream: worker.requests(),
        worker: worker.id,
        http: session.is_http(),
        has_backend: false,
        tell: worker.process.host.tell,
    };
    let filters = worker.take_filters();
    filters.borrow_mut().scene = scene;
    filters
}

/// Attaches the backend's filters. Returns true if the frontend has SPOE rules for that event.
pub fn choose(session: &Session, state: &SharedStreamState, backend: &Proxy) -> bool {
    let known = state.borrow().filters.clone();
    let differs = backend.index != session.frontend;
    if known.is_none() && (!differs || !backend.filters.are_wanted) {
        return false;
    }
    let filters = known.unwrap_or_else(|| new(session));
    {
        let set = &mut *filters.borrow_mut();
        if differs {
            set.attach(session, state, backend, true);
        }
        set.scene.has_backend = true;
        set.tell(Event::BackendChosen(&backend.name));
        set.tell_of(Direction::Request, Event::Opened(Direction::Request), |of_backend| of_backend);
    }
    state.borrow_mut().filters = Some(filters);
    differs && session.proxy().rules.spoe.is_some()
}

/// Calls [`Filter::negotiate`] of all filters, after the rules have run over a request.
pub fn negotiate(session: &Session, filters: &Filters, state: &SharedStreamState) {
    let state = &mut *state.borrow_mut();
    let backend = state.backend.map(|index| session.proxy_at(index));
    let parties = Parties { frontend: session.proxy(), backend };
    filters.borrow_mut().attached.iter_mut().for_each(|own| own.filter.negotiate(&parties, &mut state.request));
}

/// Whether scripts process heads of a stream, so that the caller has to wait for them.
#[inline]
pub fn are_scripted(filters: Option<&Filters>) -> bool {
    filters.is_some_and(|filters| filters.borrow().scripted)
}

/// Processes a head in a stream that has script filters. Called again while it waits.
///
/// # Errors
/// A filter rejects the message.
pub fn poll_head(
    cx: &mut Context<'_>,
    filters: &Filters,
    state: &SharedStreamState,
    direction: Direction,
) -> Poll<Result<(), HeadRefused>> {
    let set = &mut *filters.borrow_mut();
    let scene = set.scene;
    if set.seen == 0 {
        set.seen = 1;
        if direction == Direction::Response {
            set.tell_of(direction, Event::Opened(direction), |_| true);
        }
    }
    while let Some(index) = set.order(direction).get(set.seen - 1).copied() {
        let filter = &mut set.attached[index].filter;
        if filter.is_scripted() {
            match filter.poll_head(cx, &scene, direction) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(refused)) => {
                    set.seen = 0;
                    return Poll::Ready(Err(refused));
                }
            }
        } else {
            let state = &mut *state.borrow_mut();
            let head = if direction == Direction::Request { &mut state.request } else { &mut state.response };
            filter.head(&scene, direction, head);
        }
        set.seen += 1;
    }
    set.seen = 0;
    Poll::Ready(Ok(()))
}

/// Processes a request's head before it is sent to the server.
pub fn request_head(session: &Session, filters: &Filters, state: &SharedStreamState) {
    if !are_scripted(Some(filters)) {
        negotiate(session, filters, state);
    }
    let state = &mut *state.borrow_mut();
    let set = &mut *filters.borrow_mut();
    if !set.scripted {
        set.head(Direction::Request, &mut state.request);
    }
    for place in set.request.len() - set.copying..set.request.len() {
        let index = set.request[place];
        set.attached[index].filter.begin_copy(session, state);
    }
}

/// Processes a request's head for a service, in a stream without script filters. It is not mirrored.
pub fn service_head(filters: &Filters, state: &SharedStreamState) {
    filters.borrow_mut().head(Direction::Request, &mut state.borrow_mut().request);
}

/// Adds a body replacement by a rule: in a request before all other filters, in a response after caches have stored the server's
/// response, and before the other filters.
pub fn replace_body(filters: &Filters, direction: Direction, (regex, text): (&Regex, &[u8]), head_alone: bool) {
    let set = &mut *filters.borrow_mut();
    let index = set.attached.len();
    let filter = Box::new(replace_body::Replacer::new(direction, regex.clone(), text, head_alone));
    set.attached.push(Attached { proxy: usize::MAX, index: usize::MAX, of_backend: false, filter });
    let (attached, order) = match direction {
        Direction::Request => (&set.attached, &mut set.request),
        Direction::Response => (&set.attached, &mut set.response),
    };
    let is_before = |index: &usize| attached[*index].filter.replaces() || attached[*index].filter.cache().is_some();
    let place = order.iter().rposition(is_before).map_or(0, |last| last + 1);
    order.insert(place, index);
}

/// Adds a body replacement to a request whose stream may have no filters yet.
pub fn replace_request_body(session: &Session, state: &mut StreamState, regex: &Regex, text: &[u8]) {
    let filters = state.filters.get_or_insert_with(|| new(session));
    replace_body(filters, Direction::Request, (regex, text), false);
}

/// Adds a copy of the request to a backend, after all other filters.
pub fn mirror(session: &Session, state: &mut StreamState, backend: usize) {
    let filters = state.filters.get_or_insert_with(|| new(session));
    let set = &mut *filters.borrow_mut();
    let filter = Box::new(mirror::Tap::new(backend));
    set.request.push(set.attached.len());
    set.copying += 1;
    // No rule refers to it: it is not a filter of a proxy.
    set.attached.push(Attached { proxy: usize::MAX, index: usize::MAX, of_backend: false, filter });
}

/// Calls [`Filter::judge`] for a received response, before its rules run.
pub fn judge(state: &mut StreamState) {
    let Some(filters) = state.filters.clone() else { return };
    let set = &mut *filters.borrow_mut();
    // Only one filter compresses it.
    let found = set.response.iter().find_map(|index| set.attached[*index].filter.judge(state));
    state.compression = found;
}

/// Processes a response's head before it is sent to the client.
pub fn response_head(filters: &Filters, head: &mut Head) {
    let set = &mut *filters.borrow_mut();
    set.tell_of(Direction::Response, Event::Opened(Direction::Response), |_| true);
    set.head(Direction::Response, head);
}

/// Reports the end of a message without a body.
fn without_body(filters: &Filters, direction: Direction) {
    filters.borrow_mut().tell_of(direction, Event::MessageEnded(direction), |_| true);
}

/// Installs the filters on a direction if one of them processes it. `has_body`: the message has a body.
pub fn install(filters: Option<&Filters>, direction: Direction, flow: &mut impl Filtered, has_body: bool) {
    let Some(filters) = filters else { return };
    if !has_body {
        without_body(filters, direction);
    } else if !flow.has_passage() && filters.borrow().wants(direction) {
        flow.set_body_filter(Box::new(Chain::new(filters, direction)));
    }
}

/// Installs the filters on both directions of a tunnel.
pub fn install_both(filters: Option<&Filters>, duplex: &mut Duplex) {
    if let Some(filters) = filters {
        let set = &mut *filters.borrow_mut();
        if set.scripted && !set.scene.http {
            // In TCP mode, no response head reports to scripts that the direction begins.
            set.tell_of(Direction::Response, Event::Opened(Direction::Response), |_| true);
        }
    }
    install(filters, Direction::Request, &mut duplex.up, true);
    install(filters, Direction::Response, &mut duplex.down, true);
}

/// Reports an event to every filter of the stream, if there are any.
pub fn tell(filters: Option<&Filters>, event: Event<'_>) {
    if let Some(filters) = filters {
        filters.borrow_mut().tell(event);
    }
}

/// Reports to the filters that the request is sent again.
pub fn restart(state: &SharedStreamState) {
    let filters = state.borrow().filters.clone();
    tell(filters.as_ref(), Event::Restarted);
}

/// Enables the bandwidth limit of a filter, by a rule.
pub fn limit(
    filters: Option<&Filters>,
    place: RulePosition,
    bytes: Option<u64>,
    period: Option<Duration>,
    entry: Option<Pinned>,
) {
    let Some(filters) = filters else { return };
    let set = &mut *filters.borrow_mut();
    let own = |own: &&mut Attached| (own.proxy, own.index) == place;
    if let Some(own) = set.attached.iter_mut().find(own) {
        own.filter.limit(bytes, period);
        if let Some(entry) = entry {
            own.filter.share(entry);
        }
    }
}

/// Whether a cache can store a response as its server has sent it: its filter is attached, and no earlier one changes the bytes.
pub fn can_store(session: &Session, state: &StreamState, cache: usize) -> bool {
    if implied(session, state, cache).is_some() {
        // An implied filter is the first of all.
        return true;
    }
    let Some(filters) = &state.filters else { return false };
    let set = &*filters.borrow();
    let mut order = set.response.iter().map(|index| &set.attached[*index].filter);
    order.find(|filter| filter.recodes() || filter.cache() == Some(cache)).is_some_and(|filter| !filter.recodes())
}

/// Whether a script filter precedes that of a cache, so that the length of the body is unknown.
pub fn may_resize(session: &Session, state: &StreamState, cache: usize) -> bool {
    if implied(session, state, cache).is_some() {
        return false;
    }
    let Some(filters) = &state.filters else { return false };
    let set = &*filters.borrow();
    let mut order = set.response.iter().map(|index| &set.attached[*index].filter);
    order
        .find(|filter| filter.is_scripted() || filter.cache() == Some(cache))
        .is_some_and(|filter| filter.is_scripted())
}

/// Makes the filter of a cache store the response that is about to pass. A filter implied by a rule is attached now.
pub fn keep(session: &Session, state: &mut StreamState, cache: usize, storing: Storing) {
    let implied = implied(session, state, cache);
    let filters = state.filters.get_or_insert_with(|| new(session));
    let set = &mut *filters.borrow_mut();
    if let Some(((proxy, index), plan)) = implied {
        set.scene.has_backend = state.backend.is_some();
        set.attach_first(proxy, index, proxy != session.frontend, Box::new(cache::Keeper::storing(plan, storing)));
        return;
    }
    let mut storing = Some(storing);
    for index in &set.response {
        set.attached[*index].filter.keep(cache, &mut storing);
    }
}

/// Returns the position of a cache filter that a rule of the frontend or of the backend implies.
fn implied(
    session: &Session,
    state: &StreamState,
    cache: usize,
) -> Option<(RulePosition, policy::program::CacheFilter)> {
    let backend = state.backend.filter(|backend| *backend != session.frontend);
    let proxies = [Some(session.proxy()), backend.map(|index| session.proxy_at(index))].into_iter().flatten();
    let mut all = proxies.flat_map(|proxy| proxy.filters.response.iter().map(move |index| (proxy, *index)));
    all.find_map(|(proxy, index)| match proxy.filters.list.get(index) {
        Some(policy::program::Filter::Cache(plan)) if plan.first && plan.cache == cache => {
            Some(((proxy.index, index), *plan))
        }
        _ => None,
    })
}

/// Detaches all filters at the end of a stream; their memory is reused, unless a relay still uses them.
pub fn end(worker: &Worker, filters: Filters) {
    {
        let set = &mut *filters.borrow_mut();
        for direction in [Direction::Request, Direction::Response] {
            set.tell_of(direction, Event::Closed(direction), |_| true);
        }
        // Those of the backend are detached first.
        set.tell_those(true, Event::Detached);
        set.tell_those(false, Event::Ended);
        set.tell_those(false, Event::Detached);
    }
    worker.keep_filters(filters);
}
