//! Reverse HTTP: requests for a server that opens its connections itself (`server ... rhttp@`). A connection is one worker's; where
//! a request's worker has none, another one gives it one of its own once no request is under way on that. Must never open one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use conn::link::Link;
use conn::pool_key::PoolKey;
use policy::program::Server;
use rt::WorkerId;

use crate::stream::attaching::named;
use crate::stream::attempt::Attempt;
use crate::stream::connect::{Refusal, Request, Waited};
use crate::stream::metrics::ServerEvent;
use crate::stream_state::{Cause, Phase};
use crate::worker::Worker;

/// How long a worker is waited for that has a connection, before all are asked again.
const PATIENCE: Duration = Duration::from_millis(50);

/// A question to another worker.
#[derive(Default)]
struct Question {
    answer: Mutex<(Option<bool>, Option<Waker>)>,
    /// Nobody waits for the answer any more.
    dropped: AtomicBool,
}

impl Question {
    fn answer(&self, has: bool) {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.0 = Some(has);
        let waker = answer.1.take();
        drop(answer);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Says that nobody waits any more when it is dropped.
struct Asked(Arc<Question>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.dropped.store(true, Ordering::Relaxed);
    }
}

impl Request<'_> {
    /// A share of a connection that the server has opened, whatever `http-reuse` says.
    ///
    /// # Errors
    /// There is none, or none in time: nobody here can do anything about that, so that nothing is tried again.
    pub(super) async fn reversed_link(&mut self, server: &Server) -> Result<Attempt, Refusal> {
        let mut name = Vec::new();
        let is_named = server.connecting.name.as_ref().is_some_and(|named| self.evaluate_name(named, &mut name));
        let name = if is_named { named(&name) } else { Vec::new() };
        let own = self.state.borrow().orders.get().timeouts.connect;
        let limit = own.or(self.proxy.timeouts.connect);
        let deadline = limit.map(|limit| rt::now() + limit);
        let mut is_promised = false;
        loop {
            if let Some(link) = self.share(server, &name) {
                self.count(server, ServerEvent::Reuse);
                return Ok(Attempt::Connected(link));
            }
            let is_over = deadline.is_some_and(|deadline| rt::now() >= deadline);
            let is_found = !is_over && ask_others(&self.session.worker, server.serial, &name).await;
            // One that is on its way to a worker is nobody's.
            let may_come = is_found || is_promised || self.session.worker.process.moving.are_there();
            is_promised = is_found;
            if is_over || !may_come {
                self.count(server, ServerEvent::Failure);
                let cause = if is_over { Cause::ServerTimeout } else { Cause::Server };
                return Err(Refusal::new(cause, Phase::Connect, 503));
            }
            let again = rt::now() + PATIENCE;
            let until = deadline.map_or(again, |deadline| deadline.min(again));
            let worker = std::rc::Rc::clone(&self.session.worker);
            let mut begun = false;
            let arrived = self.wait(Some(until), |cx| {
                if std::mem::replace(&mut begun, true) && !worker.arrivals.is_waiting(cx) {
                    return Poll::Ready(());
                }
                worker.arrivals.wait(cx);
                Poll::Pending
            });
            if matches!(arrived.await, Waited::Gone) {
                return Err(Refusal::new(Cause::Client, Phase::Connect, -1));
            }
        }
    }

    /// A share of a connection that this worker has.
    fn share(&self, server: &Server, name: &[u8]) -> Option<Link> {
        let worker = &self.session.worker;
        worker.links.take(&worker.process.pool, server.serial, (false, &|| false), key(name))
    }
}

fn key(name: &[u8]) -> PoolKey<'_> {
    if name.is_empty() { PoolKey::COMMON } else { PoolKey::new(name) }
}

/// Asks the other workers, one after the other, for a connection without requests, and then for any. True: one will come, or
/// may. They are asked by their mailboxes, which never wait for long.
async fn ask_others(worker: &Worker, server: usize, name: &[u8]) -> bool {
    let (own, workers) = (worker.id, worker.process.workers());
    for idle in [true, false] {
        for step in 1..workers {
            if ask((own + step) % workers, (server, name), (own, idle)).await {
                return true;
            }
        }
    }
    false
}

async fn ask(other: usize, (server, name): (usize, &[u8]), to: (usize, bool)) -> bool {
    let asked = Asked(Arc::default());
    let (question, name) = (Arc::clone(&asked.0), name.to_vec());
    let look = move |worker: &std::rc::Rc<Worker>| {
        let is_wanted = !question.dropped.load(Ordering::Relaxed);
        let pool = &worker.process.pool;
        question.answer(is_wanted && worker.links.lend(pool, server, key(&name), to));
    };
    rt::post(other as WorkerId, Box::new(move || crate::on_worker(look)));
    std::future::poll_fn(|cx| {
        let mut answer = asked.0.answer.lock().unwrap_or_else(PoisonError::into_inner);
        match answer.0 {
            Some(has) => Poll::Ready(has),
            None => {
                answer.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}
