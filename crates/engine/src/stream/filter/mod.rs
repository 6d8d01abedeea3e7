//! The room of the filters: what stands in the way of a stream's messages, in the order that the configuration gives
//! (configuration manual, section 9). A kind of filter is a file here that implements [`Filter`]; it is attached to a
//! stream when the stream begins, or gets its backend, and sees heads and bodies of both directions. A stream of proxies
//! without filters knows of none of it: that costs a look whether a list is empty. Must never know what a filter does.
//!
//! What a filter can do, in the order in which it happens:
//!
//! 1. [`Filter::note`]: it is told that it was attached, that the stream began, that a backend was chosen, and so on.
//! 2. [`Filter::head`]: it sees a head that is about to go on and may change it, the framing of its body included.
//! 3. [`Filter::wants`]: it says whether it has to see the body. As long as no filter has to, bodies flow as without any:
//!    in large pieces, or through the kernel.
//! 4. [`Filter::body`]: it lets payload go on, holds it back, or puts other bytes in its place.
//!
//! Bodies of tunnels and of TCP sessions are filtered the same way, without heads. Answers that Weir gives itself are told
//! with [`Event::Replied`], and not filtered.

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

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use conn::duplex::Duplex;
use conn::flow::{Filtered, Passed, forward};
use expression::pattern::Regex;
use expression::sample::Direction;
use live::cache::Storing;
use live::table::Pinned;
use policy::program::Proxy;
use wire::http::{Fields, Head};

use crate::session::Session;
use crate::stream_state::StreamState;
use crate::worker::{SharedStreamState, Worker};
use chain::Chain;
use set::Attached;
pub use set::Set;

/// What a filter is told of its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// It was attached to the stream.
    Attached,
    /// The stream begins: its request is there, or its connection in TCP mode.
    Begun,
    /// It has this backend.
    BackendChosen(&'a str),
    /// A direction is looked at from now on.
    Opened(Direction),
    /// The whole message of a direction has gone on.
    MessageEnded(Direction),
    /// The request is sent again: what a server has answered so far does not count.
    Restarted,
    /// Weir answers itself, with this status.
    Replied(u16),
    /// A direction is not looked at any more.
    Closed(Direction),
    /// The stream ends.
    Ended,
    /// It is detached.
    Detached,
}

/// What a filter may see of its stream whenever it is called.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scene {
    /// A number that tells streams apart.
    pub stream: u64,
    /// Index of the worker.
    pub worker: usize,
    /// `mode http`.
    pub http: bool,
    /// The backend is known.
    pub has_backend: bool,
    /// Where a trace goes.
    pub tell: Option<fn(&[u8])>,
}

/// The proxies of a stream whose request is ready for its server.
#[derive(Debug, Clone, Copy)]
pub struct Parties<'a> {
    /// Its frontend.
    pub frontend: &'a Proxy,
    /// Its backend; `None`: it is answered before it has one.
    pub backend: Option<&'a Proxy>,
}

/// A filter wants the message not to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadRefused {
    /// It makes no sense, or the filter failed.
    Refused,
    /// The filter has ended the stream: with this status and text of an answer, or with the proxy's page.
    Ended(Option<(u16, Vec<u8>)>),
}

/// One filter of one stream.
pub trait Filter {
    /// It is told what becomes of the stream.
    fn note(&mut self, scene: &Scene, event: Event<'_>) {
        let _ = (scene, event);
    }

    /// Rules have run over the request: what it asks for is known. Called before [`Filter::head`] sees it, and for requests
    /// that a service answers as well, whose heads no filter sees.
    fn negotiate(&mut self, parties: &Parties<'_>, request: &mut Head) {
        let _ = (parties, request);
    }

    /// An answer has come, which rules have not seen. Returns the algorithm that it will be compressed by.
    fn judge(&mut self, state: &StreamState) -> Option<&'static str> {
        let _ = state;
        None
    }

    /// A head that is about to go on. What it changes there is what goes on: also `framing`, where it is going to change
    /// the length of the body.
    fn head(&mut self, scene: &Scene, direction: Direction, head: &mut Head) {
        let _ = (scene, direction, head);
    }

    /// Whether a script makes it: it sees heads by [`Filter::poll_head`] alone.
    fn is_scripted(&self) -> bool {
        false
    }

    /// The same as [`Filter::head`] for a script, which sees the head by the stream's state and may wait.
    ///
    /// # Errors
    /// [`HeadRefused`]
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        scene: &Scene,
        direction: Direction,
    ) -> Poll<Result<(), HeadRefused>> {
        let _ = (cx, scene, direction);
        Poll::Ready(Ok(()))
    }

    /// The request is ready for its server, as all filters have made it.
    fn begin_copy(&mut self, session: &Session, state: &StreamState) {
        let _ = (session, state);
    }

    /// Whether it has to see the payload of that direction. Asked when the direction begins, and after rules were run.
    fn wants(&self, direction: Direction) -> bool;

    /// Moves payload that may go on from `input` to `output`, which is empty; what stays is shown again. `ended`: nothing
    /// comes behind it. Only where [`Filter::wants`] said so: for the others everything goes on.
    fn body(
        &mut self,
        scene: &Scene,
        direction: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> Passed {
        let _ = (scene, direction, ended);
        forward(input, output, usize::MAX);
        Passed::Through
    }

    /// The trailers of a body that it may see; called before [`Filter::body`] is called with the end. What stays goes on.
    fn trailers(&mut self, direction: Direction, trailers: &mut Option<Fields>) {
        let _ = (direction, trailers);
    }

    /// A rule limits the bandwidth of the stream: to so many bytes in such a time, each the filter's own where there is
    /// none.
    fn limit(&mut self, bytes: Option<u64>, period: Option<Duration>) {
        let _ = (bytes, period);
    }

    /// The cache that it stores responses in.
    fn cache(&self) -> Option<usize> {
        None
    }

    /// A response is to be stored from its first byte on; taken if it is for this filter's cache.
    fn keep(&mut self, cache: usize, storing: &mut Option<Storing>) {
        let _ = (cache, storing);
    }

    /// Whether a rule has put it there to replace what matches.
    fn replaces(&self) -> bool {
        false
    }

    /// Whether it makes other bytes of a response.
    fn recodes(&self) -> bool {
        false
    }

    /// The streams that it shares its limit with are those of this entry.
    fn share(&mut self, entry: Pinned) {
        let _ = entry;
    }
}

/// The filters of a stream, as its state, its flows and its rules share them.
pub type Filters = Rc<RefCell<Set>>;

/// A stream of a proxy that has filters begins.
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

/// An empty set for a stream, in the memory of a former one where the worker has some.
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

/// The stream has got its backend. True: the frontend's filters ask agents about that.
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

/// Rules have run over a request.
pub fn negotiate(session: &Session, filters: &Filters, state: &SharedStreamState) {
    let state = &mut *state.borrow_mut();
    let backend = state.backend.map(|index| session.proxy_at(index));
    let parties = Parties { frontend: session.proxy(), backend };
    filters.borrow_mut().attached.iter_mut().for_each(|own| own.filter.negotiate(&parties, &mut state.request));
}

/// Whether scripts see heads of a stream, so that these have to be waited for.
#[inline]
pub fn are_scripted(filters: Option<&Filters>) -> bool {
    filters.is_some_and(|filters| filters.borrow().scripted)
}

/// A head is about to go on, in a stream that has filters of scripts. Called again while it waits.
///
/// # Errors
/// A filter refuses it.
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

/// A request's head is about to go to the server.
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

/// A request's head is about to go to a service, in a stream without filters of scripts. Nothing of it is copied.
pub fn service_head(filters: &Filters, state: &SharedStreamState) {
    filters.borrow_mut().head(Direction::Request, &mut state.borrow_mut().request);
}

/// A rule has what matches in a body replaced: in a request before any other filter sees it, in a response after caches have
/// stored what its server has sent, and before the other filters.
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

/// The same in a request, whose stream may have no filters yet.
pub fn replace_request_body(session: &Session, state: &mut StreamState, regex: &Regex, text: &[u8]) {
    let filters = state.filters.get_or_insert_with(|| new(session));
    replace_body(filters, Direction::Request, (regex, text), false);
}

/// A rule has the request copied to a backend, behind all other filters.
pub fn mirror(session: &Session, state: &mut StreamState, backend: usize) {
    let filters = state.filters.get_or_insert_with(|| new(session));
    let set = &mut *filters.borrow_mut();
    let filter = Box::new(mirror::Tap::new(backend));
    set.request.push(set.attached.len());
    set.copying += 1;
    // No rule names it: it is no filter of a proxy.
    set.attached.push(Attached { proxy: usize::MAX, index: usize::MAX, of_backend: false, filter });
}

/// An answer has come, which rules have not seen.
pub fn judge(state: &mut StreamState) {
    let Some(filters) = state.filters.clone() else { return };
    let set = &mut *filters.borrow_mut();
    // One filter alone compresses it.
    let found = set.response.iter().find_map(|index| set.attached[*index].filter.judge(state));
    state.compression = found;
}

/// An answer's head is about to go to the client.
pub fn response_head(filters: &Filters, head: &mut Head) {
    let set = &mut *filters.borrow_mut();
    set.tell_of(Direction::Response, Event::Opened(Direction::Response), |_| true);
    set.head(Direction::Response, head);
}

/// Puts the filters in the way of a message that has no body.
fn without_body(filters: &Filters, direction: Direction) {
    filters.borrow_mut().tell_of(direction, Event::MessageEnded(direction), |_| true);
}

/// Puts the filters in the way of a direction if one of them has to see it. `has_body`: something is to come.
pub fn install(filters: Option<&Filters>, direction: Direction, flow: &mut impl Filtered, has_body: bool) {
    let Some(filters) = filters else { return };
    if !has_body {
        without_body(filters, direction);
    } else if !flow.has_passage() && filters.borrow().wants(direction) {
        flow.set_body_filter(Box::new(Chain::new(filters, direction)));
    }
}

/// Puts the filters in the way of both directions of a tunnel.
pub fn install_both(filters: Option<&Filters>, duplex: &mut Duplex) {
    if let Some(filters) = filters {
        let set = &mut *filters.borrow_mut();
        if set.scripted && !set.scene.http {
            // No head of an answer tells scripts that it begins.
            set.tell_of(Direction::Response, Event::Opened(Direction::Response), |_| true);
        }
    }
    install(filters, Direction::Request, &mut duplex.up, true);
    install(filters, Direction::Response, &mut duplex.down, true);
}

/// Tells every filter of the stream, where there are any.
pub fn tell(filters: Option<&Filters>, event: Event<'_>) {
    if let Some(filters) = filters {
        filters.borrow_mut().tell(event);
    }
}

/// The request is sent again.
pub fn restart(state: &SharedStreamState) {
    let filters = state.borrow().filters.clone();
    tell(filters.as_ref(), Event::Restarted);
}

/// The index of a proxy, and that of a filter in it.
pub type RulePosition = (usize, usize);

/// A rule limits the bandwidth of the stream by the filter at that place.
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

/// Whether a response can be stored in a cache as its server has sent it: its filter sees it, and none before makes another one of it.
pub fn can_store(session: &Session, state: &StreamState, cache: usize) -> bool {
    if implied(session, state, cache).is_some() {
        // It stands before all others.
        return true;
    }
    let Some(filters) = &state.filters else { return false };
    let set = &*filters.borrow();
    let mut order = set.response.iter().map(|index| &set.attached[*index].filter);
    order.find(|filter| filter.recodes() || filter.cache() == Some(cache)).is_some_and(|filter| !filter.recodes())
}

/// Whether a script stands before the filter of a cache: how long the body becomes is not known.
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

/// Has the filter of a cache store the response that is about to pass. Where a rule implies it, it is attached now.
pub fn keep(session: &Session, state: &mut StreamState, cache: usize, storing: Storing) {
    let implied = implied(session, state, cache);
    let filters = state.filters.get_or_insert_with(|| new(session));
    let set = &mut *filters.borrow_mut();
    if let Some((place, plan)) = implied {
        set.scene.has_backend = state.backend.is_some();
        set.attach_first(place, place.0 != session.frontend, Box::new(cache::Keeper::storing(plan, storing)));
        return;
    }
    let mut storing = Some(storing);
    for index in &set.response {
        set.attached[*index].filter.keep(cache, &mut storing);
    }
}

/// The filter of a cache that a rule of the frontend or of the backend implies, and its place.
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

/// The stream ends, and its filters with it; their memory is for another one, unless a flow still has them.
pub fn end(worker: &Worker, filters: Filters) {
    {
        let set = &mut *filters.borrow_mut();
        for direction in [Direction::Request, Direction::Response] {
            set.tell_of(direction, Event::Closed(direction), |_| true);
        }
        // Those of the backend go first.
        set.tell_those(true, Event::Detached);
        set.tell_those(false, Event::Ended);
        set.tell_those(false, Event::Detached);
    }
    worker.keep_filters(filters);
}
