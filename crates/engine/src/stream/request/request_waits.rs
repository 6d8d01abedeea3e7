//! Waits of a request before a server is chosen: for memory, and for a slot among the uploads of its client. Must never choose
//! a server.

use policy::program::Proxy;
use rt::Stage;

use crate::session::Session;
use crate::stream::client::client_limit::{self, Limit, Member, QueuedStream, Scope};
use crate::stream::record::metrics::{self, ServerEvent};
use crate::stream::server::connect::{PendingRequest, Request, WaitResult};
use crate::stream::server::server_target::Refusal;
use crate::stream_state::{Cause, Phase};

/// Whether other clients leave free slots for an upload of an address with `own` uploads on this worker; the other workers are
/// assumed to have the same number.
fn has_room(session: &Session, proxy: &Proxy, limit: Limit, own: usize) -> bool {
    let used = session.worker.proxy_state(proxy.index).counts(None).beconn;
    limit.leaves_room(used as usize, own.saturating_mul(session.worker.process.workers()))
}

impl Request<'_> {
    /// Waits until there is memory for a server connection, for at most the time that a request may be queued.
    pub(in crate::stream) async fn wait_for_memory(&mut self) -> Result<(), Refusal> {
        if let Some(body) = &mut self.body {
            body.shrink();
        }
        let own = self.state.borrow().rules.orders.get().timeouts;
        let deadline = own.queue.or(self.proxy.timeouts.queued()).map(|limit| rt::now() + limit);
        match self.wait(deadline, |cx| rt::poll_memory(cx, Stage::Underway)).await {
            WaitResult::Done(()) => Ok(()),
            WaitResult::Expired => {
                metrics::step(&self.session.worker, self.proxy, None, ServerEvent::Failure);
                Err(Refusal::new(Cause::Resource, Phase::Connect, 503))
            }
            WaitResult::Gone => Err(Refusal::new(Cause::Client, Phase::Connect, -1)),
        }
    }

    /// Takes a slot among the uploads of an address to the backend, if all of its servers have a `maxconn`.
    pub(in crate::stream) fn enter_crowd(&mut self) -> Result<(), PendingRequest> {
        let Some(client) = self.state.borrow().client(self.session) else { return Ok(()) };
        let uploads = Member::of(Scope::Uploads(self.proxy.index), client);
        if uploads.open() == 0 {
            self.client.keep(Box::new(uploads.begin()));
            return Ok(());
        }
        let workers = self.session.worker.process.workers();
        let limit = self.proxy.backend.as_ref().and_then(|backend| client_limit::uploads_at_once(backend, workers));
        let (session, proxy, own) = (self.session, self.proxy, uploads.open());
        let has_room = |limit| has_room(session, proxy, limit, own);
        match limit.map_or_else(|| Ok(uploads.begin()), |limit| uploads.begin_or_wait(limit, move || has_room(limit))) {
            Ok(place) => {
                self.client.keep(Box::new(place));
                Ok(())
            }
            Err(wait) => Err(PendingRequest::Crowded(wait())),
        }
    }

    /// Waits until other uploads of the client have ended, for at most the time that a request may be queued.
    pub(in crate::stream) async fn wait_for_turn(&mut self, turn: QueuedStream) -> Result<(), Refusal> {
        if let Some(body) = &mut self.body {
            body.shrink();
        }
        let own = self.state.borrow().rules.orders.get().timeouts;
        let deadline = own.queue.or(self.proxy.timeouts.queued()).map(|limit| rt::now() + limit);
        let (session, proxy, mut look) = (self.session, self.proxy, rt::Timer::new());
        let has_room = |turn: &QueuedStream| has_room(session, proxy, turn.limit(), turn.own());
        match self.wait(deadline, |cx| turn.poll_place(cx, &mut look, has_room)).await {
            WaitResult::Done(place) => {
                self.client.keep(Box::new(place));
                Ok(())
            }
            WaitResult::Expired => {
                metrics::step(&self.session.worker, self.proxy, None, ServerEvent::Failure);
                Err(Refusal::new(Cause::ServerTimeout, Phase::Queue, 503))
            }
            WaitResult::Gone => Err(Refusal::new(Cause::Client, Phase::Queue, -1)),
        }
    }
}
