//! The straight path: an exchange whose request has no body, and whose answer arrives whole, with its head and in one read. It is
//! sent, awaited and answered here, with no more state than that needs. An exchange that deviates continues as an [`Exchange`]
//! from the point that it has reached ([`Start`]), so that everything else has one implementation. Must never retry, fail or end
//! an exchange in any other way than with its answer.
//!
//! [`Exchange`]: super::Exchange

use std::task::{Context, Poll};

use base::buffer::Buffer;
use base::moment::Moment;
use conn::carrier::Carrier;
use conn::exchange::{Answer, AnswerHeadKind, AnswerReader, ForwardTerms, Heads, ReadOutcome};
use conn::h1::{HeadLimits, UnreadBody};
use conn::upstream::Upstream;
use policy::program::Features;
use rt::LocalBox;

use super::begun::{Begun, PartlySent, Step};
use super::forward::Start;
use super::head;
use super::plan::{self, Plan, RetryState};
use super::terms::ExchangeResult;
use crate::session::Session;
use crate::stream::client::activity::WATCH_AFTER;
use crate::stream::client::{Client, tunnel};
use crate::stream::context::RequestContext;
use crate::stream::record::tracing;
use crate::stream::reply::keeps_client;
use crate::stream::server::observe;
use crate::stream::server::server_target::Target;
use crate::stream::stages;
use crate::stream_state::{EarlyRequest, StreamState};
use crate::worker::SharedStreamState;

/// Whether an exchange may take the straight path: the request ends with its head, and nothing but the protocol and the health of
/// the server decides about the answer.
#[inline]
pub(super) fn suits(context: &RequestContext<'_>, plan: &Plan<'_>, body: &UnreadBody) -> bool {
    const SEEN: Features = Features::SPANS
        .with(Features::PERSISTENCE)
        .with(Features::RESPONSE_RULES)
        .with(Features::EARLY_LOG)
        .with(Features::ATTEMPTS);
    if plan.route.features.have(SEEN) || plan.filters.is_some() || !body.is_absent() {
        return false;
    }
    let state = &*context.state.borrow();
    let is_alone = !state.request.framing.has_body() && state.accounting.replaced_body.is_none();
    is_alone && state.cache.is_none() && !tunnel::is_asked(&state.request) && !state.rules.exhausted.get()
}

/// Gets a server and an idle link to it, sends the request, and forwards the answer.
///
/// # Errors
/// The point at which the exchange leaves the straight path.
pub(super) async fn pass(
    context: &mut RequestContext<'_>,
    plan: &Plan<'_>,
    place: &mut Option<Target>,
) -> Result<ExchangeResult, Start> {
    let mut request = plan.request(context, None, None, &RetryState::default());
    request.begin(None, place).map_err(|pending| Start::Pending(LocalBox::new(pending)))?;
    let Some(target) = place else { return Err(Start::Nothing) };
    if !matches!(target.link.carrier, Carrier::Own(_) | Carrier::Fcgi(_)) {
        return Err(Start::Placed);
    }
    let mut head = context.client.conn.take_spare().unwrap_or_else(rt::buffer);
    if plan.write_head(context, target, Some(0), &mut head).is_err() {
        // Written again, it fails again.
        return Err(Start::Placed);
    }
    context.client.conn.release();
    let mut exchange = StraightExchange::new(context, plan, Upstream::of(&mut target.link.carrier), head);
    std::future::poll_fn(|cx| exchange.poll(cx)).await.map_err(Start::Exchange)
}

/// An exchange on the straight path.
struct StraightExchange<'a> {
    session: &'a Session,
    client: &'a mut Client,
    state: &'a SharedStreamState,
    upstream: Upstream<'a>,
    /// When it began.
    since: Moment,
    /// The time at which the server's timeout expires.
    deadline: Option<Moment>,
    /// Limits of the answer's head.
    limits: HeadLimits,
    /// The client's connection may be kept.
    keep_client: bool,
    /// The server is asked to close the connection.
    close_server: bool,
    /// The request was sent.
    is_sent: bool,
    /// The unsent part of the request's head.
    head: Buffer,
    /// The answer.
    reader: AnswerReader,
}

impl<'a> StraightExchange<'a> {
    #[inline]
    fn new(context: &'a mut RequestContext<'_>, plan: &Plan<'_>, upstream: Upstream<'a>, head: Buffer) -> Self {
        let (session, since, backend) = (context.session, rt::now(), plan.route.proxy);
        let (limits, keep_client, timeout) = {
            let state = context.state.borrow();
            let orders = plan.route.features.have(Features::RULES).then(|| state.rules.orders.get());
            (
                plan::answer_limits(session, backend, &state.request),
                keeps_client(session, &state.request),
                plan::server_timeout(orders, backend),
            )
        };
        Self {
            session,
            client: &mut *context.client,
            state: &context.state,
            upstream,
            since,
            deadline: timeout.map(|limit| since + limit),
            limits,
            keep_client,
            close_server: plan.close_server,
            is_sent: false,
            head,
            reader: AnswerReader::default(),
        }
    }

    /// Advances the exchange as far as possible.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ExchangeResult, LocalBox<Begun>>> {
        if !self.is_sent {
            self.is_sent = self.send(cx);
            let head = std::mem::take(&mut self.head);
            if !self.is_sent {
                return Poll::Ready(Err(self.leave(Step::Sending(head))));
            }
        }
        match self.reader.poll_receive(cx, &mut self.upstream) {
            Poll::Ready(ReadOutcome::Bytes(read)) => {
                self.state.borrow_mut().accounting.bytes.received += read as u64;
                Poll::Ready(self.answer(cx))
            }
            // The next read returns the end again.
            Poll::Ready(ReadOutcome::Closed) => Poll::Ready(Err(self.leave_unread())),
            Poll::Pending => self.poll_event(cx).map(|()| Err(self.leave_unread())),
        }
    }

    /// Leaves the straight path.
    #[cold]
    fn leave(&mut self, step: Step) -> LocalBox<Begun> {
        LocalBox::new(Begun { since: self.since, step })
    }

    /// Leaves the straight path before anything was received.
    #[cold]
    fn leave_unread(&mut self) -> LocalBox<Begun> {
        let reader = std::mem::take(&mut self.reader);
        self.leave(Step::Awaiting(reader, None))
    }

    /// Sends the request. Returns whether the server has accepted all of it.
    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        let before = self.head.len();
        let sent = self.upstream.poll_send(cx, &mut self.head);
        self.state.borrow_mut().accounting.bytes.sent += (before - self.head.len()) as u64;
        // The exchange gets the same error again.
        matches!(sent, Poll::Ready(Ok(())))
    }

    /// Waits for an event other than an answer: the server's timeout, or an event of the client's connection.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let (now, watch) = (rt::now(), self.since + WATCH_AFTER);
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                return Poll::Ready(());
            }
            let mut next = self.deadline;
            if now >= watch || self.client.conn.is_watched() {
                if self.client.conn.poll_closed(cx).is_ready() {
                    return Poll::Ready(());
                }
            } else {
                next = Some(next.map_or(watch, |next| next.min(watch)));
            }
            self.client.timer.arm(next);
            if self.client.timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Forwards the answer, if all of it was received.
    fn answer(&mut self, cx: &mut Context<'_>) -> Result<ExchangeResult, LocalBox<Begun>> {
        let state = &mut *self.state.borrow_mut();
        let found = head::parse(self.session, &self.upstream, state, &mut self.reader, &self.limits);
        let encoded = if found == AnswerHeadKind::Final { self.encode(state) } else { None };
        let Some((mut head, keep_client, keep_server)) = encoded else {
            let reader = std::mem::take(&mut self.reader);
            return Err(self.leave(Step::Awaiting(reader, Some(found))));
        };
        let status = state.response.status();
        if state.attempts.is_observed {
            observe::answer(self.session, state, status);
        }
        stages::answer_received(self.session, state, status);
        state.answer.status = i32::from(status);
        tracing::answered(self.session, state);
        let mut body = self.reader.take_received();
        let before = head.len() + body.len();
        let written = self.client.conn.poll_write(cx, &mut head, &mut body, !keep_client);
        state.accounting.bytes.bytes_out += (before - head.len() - body.len()) as u64;
        let reusable = keep_server && !self.close_server;
        if !head.is_empty() || !body.is_empty() || !matches!(written, Poll::Ready(Ok(_))) {
            return Err(self.leave(Step::Answering(PartlySent { head, body, keep_client, reusable })));
        }
        self.client.conn.complete(None);
        Ok(ExchangeResult {
            client_goes_on: keep_client,
            client_drains: false,
            link_is_reusable: reusable,
            nothing_sent: false,
        })
    }

    /// Encodes the head of an answer that was received whole and is forwarded unchanged. Returns also whether the connections of
    /// client and server are kept. `None`: the answer leaves the straight path.
    fn encode(&self, state: &StreamState) -> Option<(Buffer, bool, bool)> {
        let is_early = state.attempts.early != EarlyRequest::Unsent;
        if state.response.status() == 101 || is_early || self.reader.has_glitches() {
            return None;
        }
        let coded = self.upstream.is_coded();
        let onward = ForwardTerms {
            for_head_alone: state.wants_head_alone(),
            tunnel: false,
            uncoded: !coded,
            served_here: false,
            ends_apart: self.upstream.ends_apart(),
            keep_client: self.keep_client && !self.session.is_leaving(),
            spelling: self.session.proxy().http.client_spelling.as_deref(),
        };
        let format = self.client.conn.head_format();
        let plan = Answer::plan(format, &state.request, &state.response, &onward);
        if plan.unchanged() != Some(self.reader.received().len() as u64) {
            return None;
        }
        let mut head = rt::buffer();
        let heads = Heads { request: &state.request, response: &state.response };
        Answer::encode_head(format, heads, &plan, &onward, &mut head).ok()?;
        Some((head, plan.keep_client, plan.keep_server))
    }
}
