//! Sends messages to an SPOE agent and receives its answer: load balancing, queueing, connection, retries. Must never decide the
//! contents of the messages, nor the processing timeout.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::spec::RetryOn;
use conn::spop::{ConnectionEnd, SendRejection};
use live::trace::events;
use live::{Assignment, Local, Observation, PickContext, Priority, ProxyState};
use policy::program::{Proxy, Redispatch, Server, SpoeAgent};
use wire::spop::{Notify, Status};

use super::Failure;
use super::links::{Destination, pause};
use crate::check::trace;
use crate::generation::Generation;
use crate::service::ejections;
use crate::stream::record::metrics::{self, ServerEvent};
use crate::worker::{Slot, Worker};

/// Maximum delay before the same server is tried again.
const TURNAROUND: Duration = Duration::from_secs(1);

/// Messages for an agent, with their context.
pub(super) struct Question {
    pub(super) worker: Rc<Worker>,
    pub(super) generation: Arc<Generation>,
    pub(super) agent: Arc<SpoeAgent>,
    pub(super) notify: Notify,
    /// Hash for load balancing.
    pub(super) hash: Option<u32>,
}

/// Sends messages, and waits for the answering actions. Dropping the future abandons them.
pub(super) async fn ask(question: Question) -> Result<Vec<u8>, Failure> {
    let Question { worker, generation, agent, notify, hash } = &question;
    let proxy = generation.proxy(agent.backend);
    let Some(backend) = &proxy.backend else { return Err(Failure::Resource) };
    metrics::backend(worker, proxy);
    worker.proxy_state(proxy.index).note_request(rt::now());
    let (mut exclude, mut retries, mut kept) = (None, 0, None);
    loop {
        let slot = match kept.take() {
            Some(slot) => slot,
            None => choose(worker, proxy, *hash, exclude).await?,
        };
        let Some(server) = backend.servers.get(slot.server()) else { return Err(Failure::Resource) };
        let to = Destination { generation, agent, proxy, server };
        let waiting = Waiting { worker, proxy, server };
        let answer = exchange(worker, to, notify).await;
        std::mem::forget(waiting);
        match answer {
            Ok(payload) => {
                ejections::observe(worker, proxy, server.index, || Observation { took: None, failed: false });
                slot.release();
                return Ok(payload);
            }
            Err(ExchangeError::Sent(ended)) => {
                ejections::observe(worker, proxy, server.index, || ejections::FAILED);
                metrics::step(worker, proxy, Some(server), ServerEvent::BadAnswer);
                if ended.by_agent {
                    metrics::step(worker, proxy, Some(server), ServerEvent::AgentLeft);
                }
                return Err(Failure::Protocol(ended.status));
            }
            Err(ExchangeError::Refused(failure)) => return Err(failure),
            Err(ExchangeError::Unconnected { status, greeted_wrong }) => {
                ejections::observe(worker, proxy, server.index, || ejections::FAILED);
                retries += 1;
                if retries > backend.retries
                    || !backend.limits.retry_on.contains(RetryOn::CONN_FAILURE)
                    || !worker.proxy_state(proxy.index).may_retry(rt::now())
                {
                    metrics::step(worker, proxy, Some(server), ServerEvent::Failure);
                    return Err(Failure::Protocol(status));
                }
                if goes_elsewhere(backend.recogniser.is_some(), backend.servers.len(), backend.redispatch)
                    || backend.redispatch.applies(retries, backend.retries) && backend.servers.len() > 1
                {
                    metrics::step(worker, proxy, Some(server), ServerEvent::Redispatch);
                    exclude = Some(server.index);
                } else if greeted_wrong {
                    // The same server would send the same HELLO again: a retry would only delay the stream.
                    metrics::step(worker, proxy, Some(server), ServerEvent::Failure);
                    return Err(Failure::Protocol(status));
                } else {
                    metrics::step(worker, proxy, Some(server), ServerEvent::Retry);
                    kept = Some(slot);
                    // As in HAProxy: over a UNIX socket, retries follow at once.
                    if !worker.process.outgoing.is_behind_unix_socket(server) {
                        pause(proxy.timeouts.connect.map_or(TURNAROUND, |limit| limit.min(TURNAROUND))).await;
                    }
                }
            }
        }
    }
}

/// A running exchange with a server. Dropping it counts an abandoned message.
struct Waiting<'a> {
    worker: &'a Worker,
    proxy: &'a Proxy,
    server: &'a Server,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        metrics::step(self.worker, self.proxy, Some(self.server), ServerEvent::AgentAbandoned);
    }
}

/// Whether the first retry goes to another server at once.
fn goes_elsewhere(is_tied: bool, servers: usize, redispatch: Redispatch) -> bool {
    !is_tied && servers > 1 && redispatch != Redispatch::Never
}

/// Reason of a failed exchange with a server.
enum ExchangeError {
    /// No connection; `greeted_wrong`: the server accepted it, but its HELLO was not valid.
    Unconnected { status: Status, greeted_wrong: bool },
    /// The messages were sent, and no answer is received.
    Sent(ConnectionEnd),
    /// The messages were not sent, and are not retried.
    Refused(Failure),
}

/// Chooses a server by load balancing, and waits in its queue.
async fn choose(
    worker: &Rc<Worker>,
    proxy: &Proxy,
    hash: Option<u32>,
    exclude: Option<usize>,
) -> Result<Slot, Failure> {
    let state = worker.proxy_state(proxy.index);
    let priority = Priority { class: 0, offset: 0, now: rt::now() };
    let context = PickContext { hash, random: rt::random(), exclude, priority, ..PickContext::default() };
    let (slot, balanced) = match ProxyState::assign_with(state.clone(), &context) {
        Assignment::Slot(slot) => (slot, true),
        Assignment::Queued(mut ticket) => {
            let (waiting, at_server) = state.queued(ticket.server());
            let server = ticket.server().and_then(|server| proxy.server(server));
            let sessions = state.counts(None).beconn;
            metrics::queued(worker, proxy, server.map(|server| (server, at_server)), true, waiting, sessions);
            let mut timer = rt::Timer::new();
            timer.arm(proxy.timeouts.queued().map(|limit| rt::now() + limit));
            let granted = std::future::poll_fn(|cx| match ticket.poll_granted(cx) {
                std::task::Poll::Ready(slot) => std::task::Poll::Ready(Some(slot)),
                std::task::Poll::Pending => timer.poll_expired(cx).map(|()| None),
            });
            let Some(slot) = granted.await else {
                metrics::step(worker, proxy, server, ServerEvent::Failure);
                return Err(Failure::Timeout);
            };
            (slot, false)
        }
        Assignment::Unavailable | Assignment::QueueFull => {
            metrics::step(worker, proxy, None, ServerEvent::Failure);
            return Err(Failure::Protocol(Status::IO));
        }
    };
    note(worker, proxy, &slot, balanced);
    Ok(slot)
}

fn note(worker: &Rc<Worker>, proxy: &Proxy, slot: &live::ServerSlot<Local>, balanced: bool) {
    if let Some(server) = proxy.server(slot.server()) {
        metrics::server(worker, proxy, server, slot.entered(), balanced);
    }
}

/// Sends the messages to a server, and waits for its answer.
async fn exchange(worker: &Rc<Worker>, to: Destination<'_>, notify: &Notify) -> Result<Vec<u8>, ExchangeError> {
    loop {
        let claim = worker.agents.claim(worker, to);
        let opened = std::future::poll_fn(|cx| claim.poll_open(cx)).await;
        opened.map_err(|status| ExchangeError::Unconnected { status, greeted_wrong: claim.was_connected() })?;
        match claim.send(notify) {
            Ok(mut ticket) => {
                trace(worker, to.proxy, to.server, &events::SPOP_TX_NOTIFY, String::new);
                let answer = std::future::poll_fn(|cx| ticket.poll(cx)).await;
                let event = if answer.is_ok() { &events::SPOP_RX_ACK } else { &events::SPOP_STRM_ERR };
                trace(worker, to.proxy, to.server, event, String::new);
                return answer.map_err(ExchangeError::Sent);
            }
            Err(SendRejection::TooBig) => return Err(ExchangeError::Refused(Failure::TooBig)),
            // Other requests took the connection's capacity; the next connection that is opened has capacity for this one.
            Err(SendRejection::Full) => rt::yield_now().await,
        }
    }
}
