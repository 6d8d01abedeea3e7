//! Spans of `filter otel`: its scopes are run at the events of a stream, and by rules. Each name refers to one open span of the
//! stream. Must never wait, nor change other fields of a request than those that carry a context.

use std::sync::Arc;

use config::spec::{OtelEvent, OtelStatus};
use expression::Expression;
use expression::sample::{self, Value};
use policy::program::{OtelCarrier, OtelFilter, OtelFinish, OtelReference, OtelScope, OtelSpan, Proxy};
use wire::otlp::{Kind, Message, SpanContext, SpanEvent, SpanHead, Status, Value as Attribute};
use wire::trace_context::{self, TraceContext};

use crate::session::Session;
use crate::stream::record::otel::new_id;
use crate::stream::request::evaluate::EvalContext;
use crate::stream_state::StreamState;
use crate::stream_state::instrumentation::{FilterSpans, Instrumentation, Open, StoredContext};
use crate::telemetry::nanoseconds;
use crate::worker::SharedStreamState;

/// Maximum length of a text, in bytes.
const LONGEST: usize = 4_096;
/// Maximum size of the attributes, events and links of one span, in bytes.
const LARGEST_SPAN: usize = 64 * 1024;
/// Maximum number of spans per stream and filter.
const MOST_SPANS: u32 = 1_024;
/// Maximum size of the baggage, in bytes (W3C Baggage, section 3.3.2).
const MOST_BAGGAGE: usize = 8_192;

/// Returns the `otel` filters of a stream, those of the frontend first.
fn filters<'s>(session: &'s Session, state: &StreamState) -> impl Iterator<Item = &'s Arc<OtelFilter>> + use<'s> {
    let frontend = session.proxy();
    let backend = state.route.backend.map(|index| session.proxy_at(index)).filter(|own| own.index != frontend.index);
    let own = |proxy: &'s Proxy| proxy.filters.otel.iter();
    own(frontend).chain(backend.into_iter().flat_map(own))
}

fn is_wanted(session: &Session, state: &StreamState) -> bool {
    let of_backend = |index| !session.proxy_at(index).filters.otel.is_empty();
    !session.proxy().filters.otel.is_empty() || state.route.backend.is_some_and(of_backend)
}

/// Runs the scopes of events.
#[inline]
pub fn fire(session: &Session, state: &StreamState, events: &[OtelEvent]) {
    if is_wanted(session, state) {
        run_events(session, state, events);
    }
}

/// Runs the scopes for the beginning of a stream.
#[inline]
pub fn begin(session: &Session, state: &StreamState) {
    use OtelEvent::{ClientSessionStart, FrontendTcpRequest, HttpBodyRequest, HttpWaitRequest, StreamStart};
    let events = [StreamStart, ClientSessionStart, FrontendTcpRequest, HttpWaitRequest, HttpBodyRequest];
    fire(session, state, &events);
}

/// Runs the scopes for a request that has got its backend.
#[inline]
pub fn route(session: &Session, state: &StreamState) {
    use OtelEvent::{BackendHttpRequest, BackendSet, BackendTcpRequest, SwitchingRulesRequest};
    let differs = state.route.backend != Some(session.frontend);
    fire(session, state, &[SwitchingRulesRequest]);
    if differs {
        fire(session, state, &[BackendSet]);
    }
    fire(session, state, &[BackendTcpRequest, BackendHttpRequest]);
}

/// Runs the scopes for a request after its rules, before it is sent.
#[inline]
pub fn prepare(session: &Session, state: &SharedStreamState) {
    use OtelEvent::{
        HttpHeadersRequest, HttpProcessRequest, ProcessServerRulesRequest, ProcessStickingRulesRequest,
        TcpRdpCookieRequest,
    };
    let events = [
        ProcessServerRulesRequest,
        HttpProcessRequest,
        TcpRdpCookieRequest,
        ProcessStickingRulesRequest,
        HttpHeadersRequest,
    ];
    fire(session, &state.borrow(), &events);
    inject(state);
}

/// Runs the scopes for a request to which a server was assigned.
#[inline]
pub fn send(session: &Session, state: &SharedStreamState) {
    fire(session, &state.borrow(), &[OtelEvent::ServerSessionStart]);
    inject(state);
}

/// Runs the scopes for a response.
#[inline]
pub fn answer(session: &Session, state: &StreamState) {
    use OtelEvent::{HttpHeadersResponse, HttpResponse, HttpWaitResponse, ProcessStoreRulesResponse, TcpResponse};
    let events = [TcpResponse, HttpWaitResponse, ProcessStoreRulesResponse, HttpResponse, HttpHeadersResponse];
    fire(session, state, &events);
}

/// Runs the scopes for the end of a stream, and ends its open spans.
#[inline]
pub fn conclude(session: &Session, state: &StreamState) {
    if is_wanted(session, state) {
        run_end(session, state);
    }
}

fn run_end(session: &Session, state: &StreamState) {
    use OtelEvent::{
        ClientSessionEnd, HttpEndRequest, HttpEndResponse, HttpReply, ServerSessionEnd, ServerUnavailable, StreamStop,
    };
    let (is_connected, is_answered) = (state.timings.connected.is_some(), state.answer.server_status.is_some());
    if state.info.has_request && is_answered {
        run_events(session, state, &[HttpEndRequest, HttpEndResponse]);
    }
    if state.info.has_request && !is_answered && state.answer.status > 0 {
        run_events(session, state, &[HttpReply]);
    }
    if state.route.backend.is_some() && !is_connected && !state.rules.denied {
        run_events(session, state, &[ServerUnavailable]);
    }
    run_events(session, state, &[ClientSessionEnd]);
    if is_connected {
        run_events(session, state, &[ServerSessionEnd]);
    }
    run_events(session, state, &[StreamStop]);
    if let Some(mut told) = state.instrumentation.take() {
        told.courses.iter_mut().for_each(|course| course.finish_those(session, |_| true));
    }
}

/// Sets the fields that carry contexts in a request.
fn inject(state: &SharedStreamState) {
    let state = &mut *state.borrow_mut();
    if let Some(told) = state.instrumentation.get_mut() {
        for (name, value) in told.fields.drain(..) {
            state.request.replace(&name, &value);
        }
    }
}

#[cold]
fn run_events(session: &Session, state: &StreamState, events: &[OtelEvent]) {
    let mut told = state.instrumentation.take().unwrap_or_default();
    for filter in filters(session, state) {
        let place = told.place(filter);
        for event in events {
            let of_response = event.is_of_response();
            let view = match () {
                () if *event == OtelEvent::StreamStop => EvalContext::log(session, state),
                () if of_response && state.answer.server_status.is_some() => {
                    EvalContext::response(session, state, &state.response)
                }
                () if of_response => EvalContext::log(session, state),
                () => EvalContext::request(session, state),
            };
            let scopes = filter.scopes.iter().filter(|scope| scope.event == Some(*event));
            for scope in scopes {
                told.courses[place].run(view, scope, of_response, &mut told.fields);
            }
        }
    }
    state.instrumentation.set(Some(told));
}

/// Runs the scopes of a group, by a rule.
pub fn group(view: &EvalContext<'_>, filter: &str, group: &str) {
    let (session, state) = (view.session, view.state);
    let Some(filter) = filters(session, state).find(|own| *own.name == *filter) else { return };
    let Some((_, scopes)) = filter.groups.iter().find(|(name, _)| **name == *group) else { return };
    let mut told = state.instrumentation.take().unwrap_or_default();
    let of_response = matches!(view.direction, sample::Direction::Response);
    let place = told.place(filter);
    for scope in scopes {
        told.courses[place].run(*view, &filter.scopes[*scope], of_response, &mut told.fields);
    }
    state.instrumentation.set(Some(told));
}

impl Instrumentation {
    fn place(&mut self, filter: &Arc<OtelFilter>) -> usize {
        if let Some(place) = self.courses.iter().position(|course| Arc::ptr_eq(&course.filter, filter)) {
            return place;
        }
        self.courses.push(FilterSpans {
            filter: Arc::clone(filter),
            is_active: rt::random() >> 1 < filter.rate,
            spans: filter.spans.iter().map(|_| None).collect(),
            contexts: Vec::new(),
            baggage: Vec::new(),
            opened: 0,
        });
        self.courses.len() - 1
    }
}

/// Passes the concatenated samples to `take`; a single integer or Boolean keeps its type.
fn render(samples: &[Expression], context: &sample::Context<'_>, take: impl FnOnce(Attribute<'_>)) {
    if let [one] = samples {
        match one.evaluate(context) {
            None => return,
            Some(Value::Int(number)) => return take(Attribute::Int(number)),
            Some(Value::Bool(flag)) => return take(Attribute::Bool(flag)),
            Some(_) => {}
        }
    }
    let text = text(samples, context);
    take(Attribute::Text(&text));
}

fn text(samples: &[Expression], context: &sample::Context<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    for sample in samples {
        match sample.evaluate(context) {
            None => {}
            Some(Value::Bool(flag)) => text.extend_from_slice(if flag { b"1" } else { b"0" }),
            Some(Value::Int(number)) => text.extend_from_slice(number.to_string().as_bytes()),
            Some(Value::Ipv4(address)) => text.extend_from_slice(address.to_string().as_bytes()),
            Some(Value::Ipv6(address)) => text.extend_from_slice(address.to_string().as_bytes()),
            Some(Value::Str(found) | Value::Method(found)) => text.extend_from_slice(found),
            Some(Value::Bin(bytes)) => trace_context::write_hex(bytes, &mut text),
        }
    }
    text.truncate(LONGEST);
    text
}

impl FilterSpans {
    /// Runs a scope: extracts contexts, opens and changes spans, then finishes others.
    fn run(
        &mut self,
        view: EvalContext<'_>,
        scope: &OtelScope,
        of_response: bool,
        fields: &mut Vec<(Box<[u8]>, Vec<u8>)>,
    ) {
        let holds = |context: &sample::Context<'_>| scope.condition.as_ref().is_none_or(|own| own.holds(context));
        if !self.is_active || !view.lend(holds) {
            return;
        }
        for carrier in &scope.extracts {
            self.extract(view.state, carrier);
        }
        for span in &scope.spans {
            if !self.open(span, of_response) {
                self.is_active &= !self.filter.hard_errors;
                continue;
            }
            view.lend(|context| self.change(span, context));
            if let Some(carrier) = &span.inject {
                self.inject(span.span, carrier, fields);
            }
        }
        for finish in &scope.finish {
            match finish {
                OtelFinish::All => self.finish_those(view.session, |_| true),
                OtelFinish::Request => self.finish_those(view.session, |open| !open.of_response),
                OtelFinish::Response => self.finish_those(view.session, |open| open.of_response),
                OtelFinish::One(OtelReference::Span(place)) => {
                    let open = self.spans.get_mut(*place).and_then(Option::take);
                    open.into_iter().for_each(|open| self.end(view.session, *place, open));
                }
                OtelFinish::One(OtelReference::Context(name)) => self.contexts.retain(|(known, _)| known != name),
            }
        }
    }

    fn find(&self, reference: &OtelReference) -> Option<StoredContext> {
        match reference {
            OtelReference::Span(place) => Some(self.spans.get(*place)?.as_ref()?.own.clone()),
            OtelReference::Context(name) => {
                self.contexts.iter().find(|(known, _)| known == name).map(|(_, known)| known.clone())
            }
        }
    }

    /// Opens a span unless it is open. Returns false if its parent does not exist, or there are too many.
    fn open(&mut self, plan: &OtelSpan, of_response: bool) -> bool {
        if self.spans.get(plan.span).is_none_or(Option::is_some) {
            return plan.span < self.spans.len();
        }
        let parent = plan.parent.as_ref().map(|parent| self.find(parent));
        if self.opened >= MOST_SPANS || parent.as_ref().is_some_and(Option::is_none) {
            return false;
        }
        self.opened += 1;
        let parent = parent.flatten();
        let own = match &parent {
            Some(parent) => TraceContext { span_id: new_id(), ..parent.context },
            None => TraceContext { trace_id: new_id(), span_id: new_id(), sampled: false },
        };
        let decided = parent.as_ref().filter(|parent| !parent.is_remote || self.filter.parent_based);
        let sampled = decided.map_or_else(|| own.is_chosen(self.filter.share), |parent| parent.context.sampled);
        let state = parent.as_ref().map_or_else(Vec::new, |parent| parent.state.clone());
        self.spans[plan.span] = Some(Open {
            own: StoredContext { context: TraceContext { sampled, ..own }, state, is_remote: false },
            is_root: plan.root || parent.is_none(),
            parent,
            of_response,
            start: nanoseconds(rt::wall()),
            rest: Vec::new(),
            status: (Status::Unset, Vec::new()),
        });
        true
    }

    /// Adds links, attributes and events to a span, and sets its status and baggage.
    fn change(&mut self, plan: &OtelSpan, context: &sample::Context<'_>) {
        let links: Vec<StoredContext> = plan.links.iter().filter_map(|link| self.find(link)).collect();
        for (key, samples) in &plan.baggage {
            let value = text(samples, context);
            add_baggage(&mut self.baggage, key, &value);
        }
        let Some(Some(open)) = self.spans.get_mut(plan.span) else { return };
        if let Some((code, samples)) = &plan.status {
            match code {
                OtelStatus::Ignore => {}
                OtelStatus::Unset => open.status = (Status::Unset, Vec::new()),
                OtelStatus::Ok => open.status = (Status::Ok, Vec::new()),
                OtelStatus::Error => open.status = (Status::Error, text(samples, context)),
            }
        }
        if !open.own.context.sampled || open.rest.len() > LARGEST_SPAN {
            return;
        }
        let mut span = Message::new(&mut open.rest);
        for link in links {
            span.span_link(SpanContext { trace_id: link.context.trace_id, span_id: link.context.span_id });
        }
        for (key, samples) in &plan.attributes {
            render(samples, context, |value| span.span_attribute(key, value));
        }
        for event in &plan.events {
            let value = text(&event.value, context);
            let own = SpanEvent { time: nanoseconds(rt::wall()), name: event.name.as_bytes() };
            span.span_event(own, [(&*event.key, Attribute::Text(&value))].into_iter());
        }
    }

    fn keep(&mut self, name: &str, known: StoredContext) {
        match self.contexts.iter_mut().find(|(own, _)| **own == *name) {
            Some((_, own)) => *own = known,
            None => self.contexts.push((name.into(), known)),
        }
    }

    /// Extracts a context from the request's fields; without valid fields, a stored one is kept.
    fn extract(&mut self, state: &StreamState, carrier: &OtelCarrier) {
        let Some([parent, kept, baggage]) = &carrier.fields else { return };
        let mut parents = state.request.all(parent);
        let found = parents.next().filter(|_| parents.next().is_none()).and_then(TraceContext::parse);
        let Some(context) = found else { return };
        let state_text = trace_context::state(state.request.all(kept)).unwrap_or_default();
        for pair in state.request.all(baggage).flat_map(|value| value.split(|byte| *byte == b',')) {
            add_pair(&mut self.baggage, pair.trim_ascii());
        }
        self.keep(&carrier.name, StoredContext { context, state: state_text, is_remote: true });
    }

    fn inject(&mut self, place: usize, carrier: &OtelCarrier, fields: &mut Vec<(Box<[u8]>, Vec<u8>)>) {
        let Some(Some(open)) = self.spans.get(place) else { return };
        let own = open.own.clone();
        if let Some([parent, kept, baggage]) = &carrier.fields {
            let values = [(parent, own.context.encode()), (kept, own.state.clone()), (baggage, self.baggage.clone())];
            let values = values.into_iter().filter(|(_, value)| !value.is_empty());
            fields.extend(values.map(|(name, value)| (name.clone(), value)));
        }
        if carrier.kept {
            self.keep(&carrier.name, own);
        }
    }

    fn finish_those(&mut self, session: &Session, is_meant: impl Fn(&Open) -> bool) {
        for place in 0..self.spans.len() {
            if let Some(open) = self.spans[place].take_if(|open| is_meant(open)) {
                self.end(session, place, open);
            }
        }
    }

    fn end(&self, session: &Session, place: usize, open: Open) {
        if !open.own.context.sampled {
            return;
        }
        let names = |context: &TraceContext| SpanContext { trace_id: context.trace_id, span_id: context.span_id };
        let head = SpanHead {
            context: names(&open.own.context),
            parent: open.parent.as_ref().map(|parent| parent.context.span_id),
            parent_is_remote: open.parent.as_ref().is_some_and(|parent| parent.is_remote),
            state: &open.own.state,
            name: self.filter.spans[place].as_bytes(),
            kind: if open.is_root { Kind::Server } else { Kind::Internal },
            start: open.start,
            end: nanoseconds(rt::wall()),
        };
        let mut out = Vec::new();
        head.write(&mut out, |span| {
            span.raw(&open.rest);
            span.span_status(open.status.0, &open.status.1);
        });
        if let Some(channel) = session.generation().channels.get(self.filter.exporter) {
            channel.push(session.worker.id, out);
        }
    }
}

/// Adds a pair to the baggage, replacing one of the same name.
fn add_baggage(baggage: &mut Vec<u8>, key: &str, value: &[u8]) {
    let mut pair = key.as_bytes().to_vec();
    pair.push(b'=');
    for byte in value {
        // Characters that need no percent-encoding in a value (W3C Baggage, section 3.3.1.3).
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\' | b'%') {
            pair.push(*byte);
        } else {
            pair.push(b'%');
            pair.extend_from_slice(&base::hex::upper(*byte));
        }
    }
    add_pair(baggage, &pair);
}

fn add_pair(baggage: &mut Vec<u8>, pair: &[u8]) {
    let Some(at) = pair.iter().position(|byte| *byte == b'=').filter(|at| *at > 0) else { return };
    let key = &pair[..=at];
    let kept: Vec<&[u8]> =
        baggage.split(|byte| *byte == b',').filter(|own| !own.is_empty() && !own.starts_with(key)).collect();
    let mut joined = kept.join(&b',');
    if !joined.is_empty() {
        joined.push(b',');
    }
    joined.extend_from_slice(pair);
    if joined.len() <= MOST_BAGGAGE {
        *baggage = joined;
    }
}
