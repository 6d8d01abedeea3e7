//! Reverse HTTP: requests for a server that opens its connections itself (`server ... rhttp@`). Each connection belongs to one
//! worker; a request whose worker has none waits until another worker passes one on. Must never open a connection.

use std::rc::Rc;

use conn::link::Link;
use conn::worker_links::ShareTerms;
use policy::program::Server;

use crate::session::attached_server::key_of_name;
use crate::stream::record::metrics::ServerEvent;
use crate::stream::server::attempt::Attempt;
use crate::stream::server::connect::{Request, WaitResult};
use crate::stream::server::private_connections;
use crate::stream::server::server_target::Refusal;
use crate::stream_state::{Cause, Phase};
use crate::worker::attachments::Kind;
use crate::worker::connection_waiter::Waiting;

impl Request<'_> {
    /// Returns a stream of a connection that the server has opened, regardless of `http-reuse`.
    ///
    /// # Errors
    /// There is no connection, or none in time. None can be opened from here, so the attempt is not repeated.
    pub(super) async fn reversed_link(&mut self, server: &Server) -> Result<Attempt, Refusal> {
        let mut name = Vec::new();
        let is_named = server.connecting.name.as_ref().is_some_and(|named| self.evaluate_name(named, &mut name));
        let name = if is_named { key_of_name(&name) } else { Vec::new() };
        let kind = Kind::new(server.serial, &name);
        let worker = Rc::clone(&self.session.worker);
        if !worker.arrivals.are_there(&kind)
            && let Some(link) = self.share(&kind)
        {
            self.count(server, ServerEvent::Reuse);
            return Ok(Attempt::Connected(link));
        }
        let own = self.state.borrow().rules.orders.get().timeouts.connect;
        let limit = own.or(self.proxy.timeouts.connect);
        let deadline = limit.map(|limit| rt::now() + limit);
        let waiting = Waiting::join(&worker, kind.clone());
        loop {
            if waiting.is_first()
                && let Some(link) = self.share(&kind)
            {
                self.count(server, ServerEvent::Reuse);
                return Ok(Attempt::Connected(link));
            }
            if !waiting.announce() {
                self.count(server, ServerEvent::Failure);
                return Err(Refusal::new(Cause::Server, Phase::Connect, 503));
            }
            match self.wait(deadline, |cx| waiting.poll(cx)).await {
                WaitResult::Done(()) => {}
                WaitResult::Expired => {
                    self.count(server, ServerEvent::Failure);
                    return Err(Refusal::new(Cause::ServerTimeout, Phase::Connect, 503));
                }
                WaitResult::Gone => return Err(Refusal::new(Cause::Client, Phase::Connect, -1)),
            }
        }
    }

    /// Takes a stream of one of this worker's connections.
    fn share(&self, kind: &Kind) -> Option<Link> {
        let worker = &self.session.worker;
        let link = worker.links.take(
            &worker.process.pool,
            kind.server,
            ShareTerms { proven: false, may_share: &|is_early| !is_early },
            kind.key(),
        )?;
        if private_connections::authenticates(&self.state.borrow()) {
            // No connection can be opened for an authenticated client: this one is closed after the request.
            link.carrier.retire();
        }
        Some(link)
    }
}
