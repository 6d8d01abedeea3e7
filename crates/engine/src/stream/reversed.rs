//! Reverse HTTP: requests for a server that opens its connections itself (`server ... rhttp@`). Must never open one.

use conn::pool_key::PoolKey;
use policy::program::Server;

use crate::stream::attaching::named;
use crate::stream::attempt::Attempt;
use crate::stream::connect::{Refusal, Request};
use crate::stream::metrics::ServerEvent;
use crate::stream_state::{Cause, Phase};

impl Request<'_> {
    /// A share of a connection that the server has opened, whatever `http-reuse` says.
    ///
    /// # Errors
    /// There is none: nobody here can do anything about that, so that nothing is tried again.
    pub(super) fn reversed_link(&mut self, server: &Server) -> Result<Attempt, Refusal> {
        let mut name = Vec::new();
        let is_named = server.connecting.name.as_ref().is_some_and(|named| self.evaluate_name(named, &mut name));
        let name = named(&name);
        let key = if is_named { PoolKey::new(&name) } else { PoolKey::COMMON };
        let worker = &self.session.worker;
        match worker.links.take(&worker.process.pool, server.serial, (false, &|| false), key) {
            Some(link) => {
                self.count(server, ServerEvent::Reuse);
                Ok(Attempt::Connected(link))
            }
            None => {
                self.count(server, ServerEvent::Failure);
                Err(Refusal::new(Cause::Server, Phase::Connect, 503))
            }
        }
    }
}
