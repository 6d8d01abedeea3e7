//! Calls of filters on the way of a stream, and the table by which the filters of a proxy are made. Must never know the work of a
//! filter.

mod bandwidth;
mod cache;
mod chain;
mod coding;
mod compression;
mod grpc_web;
mod mirror;
mod replace_body;
mod shared;
mod trace;

use std::sync::Arc;
use std::task::{Context, Poll};

use config::spec::PlainFilter;
use conn::duplex::Duplex;
use conn::flow::Filtered;
use expression::sample::Direction;
use policy::program::{self, Proxy};
use wire::http::Head;

use crate::filter::set::{AttachedFilter, FilterEntry};
pub use crate::filter::{Event, HeadRefused, RulePosition};
use crate::filter::{Filter, FilterContext, Filters, ProxyPair, Set};
use crate::session::Session;
use crate::worker::{SharedStreamState, Worker};
pub use bandwidth::limit;
pub use cache::{can_store, keep, may_resize};
use chain::Chain;
pub use compression::judge;
pub use mirror::mirror;
pub use replace_body::{replace_body, replace_request_body};

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

/// Position of a filter that acts elsewhere: of a FastCGI application; of SPOE, which is run by rules; and of a cache that a
/// rule implies.
struct PlaceholderFilter;

impl Filter for PlaceholderFilter {
    fn wants(&self, _: Direction) -> bool {
        false
    }
}

/// Makes the filter of a plan; `None`: it is that of a script, which does not apply to the stream.
fn filter_of(
    plan: &program::Filter,
    session: &Session,
    state: &SharedStreamState,
    position: RulePosition,
    of_backend: bool,
) -> Option<AttachedFilter> {
    let filter: Box<dyn Filter> = match plan {
        program::Filter::Bandwidth(limit) => Box::new(bandwidth::BandwidthFilter::new(*limit)),
        program::Filter::SharedBandwidth(limit) => Box::new(shared::SharedBandwidthFilter::new(Arc::clone(limit))),
        // It is attached when it stores.
        program::Filter::Cache(plan) if plan.first => Box::new(PlaceholderFilter),
        program::Filter::Cache(plan) => Box::new(cache::CacheFilter::new(*plan)),
        program::Filter::Compression(plan) => {
            let limits = session.generation().program.global.compression;
            Box::new(compression::CompressionFilter::new(*plan, &session.worker, session.frontend, limits))
        }
        program::Filter::FcgiApp | program::Filter::Spoe | program::Filter::Otel => Box::new(PlaceholderFilter),
        program::Filter::Script(plan) => {
            let services = &session.worker.process.services;
            return services.start_filter(plan.number, session, state, position).map(AttachedFilter::Script);
        }
        program::Filter::Plain(plan) => plain(plan),
        program::Filter::Trace(trace) => Box::new(trace::TraceFilter::new(trace, of_backend)),
    };
    Some(AttachedFilter::BuiltIn(filter))
}

/// Makes a filter that needs nothing else of the configuration.
fn plain(plan: &PlainFilter) -> Box<dyn Filter> {
    match plan {
        PlainFilter::GrpcWeb => Box::new(grpc_web::GrpcWebFilter::default()),
    }
}

impl Set {
    /// Attaches the filters of a proxy.
    fn attach(&mut self, session: &Session, state: &SharedStreamState, proxy: &Proxy, of_backend: bool) {
        let first = self.attached.len();
        for (index, plan) in proxy.filters.list.iter().enumerate() {
            let position = RulePosition { proxy: proxy.index, index };
            let filter = filter_of(plan, session, state, position, of_backend);
            let filter = filter.unwrap_or_else(|| AttachedFilter::BuiltIn(Box::new(PlaceholderFilter)));
            self.scripted |= filter.is_script();
            self.attached.push(FilterEntry { position, of_backend, filter });
            let context = self.context;
            self.attached.last_mut().into_iter().for_each(|own| own.filter.note(&context, Event::Attached));
        }
        let last = self.request.len() - self.last;
        self.request.splice(last..last, proxy.filters.request.iter().map(|index| first + index));
        self.response.extend(proxy.filters.response.iter().map(|index| first + index));
    }
}

/// Creates an empty set for a stream, reusing memory of the worker.
fn new(session: &Session) -> Filters {
    let worker = &session.worker;
    let context = FilterContext {
        stream: worker.requests(),
        worker: worker.id,
        http: session.is_http(),
        has_backend: false,
        print: worker.process.host.tell,
    };
    let filters = worker.take_filters();
    filters.borrow_mut().context = context;
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
        set.context.has_backend = true;
        set.tell(Event::BackendChosen(&backend.name));
        set.tell_of(Direction::Request, Event::Opened(Direction::Request), |of_backend| of_backend);
    }
    state.borrow_mut().filters = Some(filters);
    differs && session.proxy().rules.spoe.is_some()
}

/// Calls [`Filter::negotiate`] of all filters, after the rules have run over a request.
pub fn negotiate(session: &Session, filters: &Filters, state: &SharedStreamState) {
    let state = &mut *state.borrow_mut();
    let backend = state.route.backend.map(|index| session.proxy_at(index));
    let proxies = ProxyPair { frontend: session.proxy(), backend };
    filters.borrow_mut().attached.iter_mut().for_each(|own| own.filter.negotiate(&proxies, &mut state.request));
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
    let context = set.context;
    if set.seen == 0 {
        set.seen = 1;
        if direction == Direction::Response {
            set.tell_of(direction, Event::Opened(direction), |_| true);
        }
    }
    while let Some(index) = set.order(direction).get(set.seen - 1).copied() {
        match &mut set.attached[index].filter {
            AttachedFilter::Script(filter) => match filter.poll_head(cx, &context, direction) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(refused)) => {
                    set.seen = 0;
                    return Poll::Ready(Err(refused));
                }
            },
            AttachedFilter::BuiltIn(filter) => {
                let state = &mut *state.borrow_mut();
                let head = if direction == Direction::Request { &mut state.request } else { &mut state.response };
                filter.head(&context, direction, head);
            }
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
    mirror::begin_copies(set, session, state);
}

/// Processes a request's head for a service, in a stream without script filters. It is not mirrored.
pub fn service_head(filters: &Filters, state: &SharedStreamState) {
    filters.borrow_mut().head(Direction::Request, &mut state.borrow_mut().request);
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
        if set.scripted && !set.context.http {
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
