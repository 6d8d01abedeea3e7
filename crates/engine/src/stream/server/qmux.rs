//! Multiplexed connections to servers as they begin; over QMux after an exchange of parameters. Must never choose a server.

use config::spec::HttpReuse;
use conn::link::Link;
use conn::multiplexed::{Protocol, ServerConnection, ServerTerms};
use expression::sample::ConnectionError;
use policy::program::{Backend, Server};

use super::attempt::Attempt;
use super::connect::{Request, WaitResult};
use super::server_multiplex;
use crate::outgoing_quic;

impl Request<'_> {
    /// Starts a protocol that carries several requests on a connection that was just opened, and begins the request.
    pub(super) async fn begin_multiplexed(
        &mut self,
        backend: &Backend,
        server: &Server,
        protocol: Protocol,
        link: Link,
    ) -> Attempt {
        if protocol == Protocol::Qmux {
            return rt::boxed(self.begin_qmux(backend, server, link)).await;
        }
        let shared = !link.private && backend.http_reuse != HttpReuse::Never;
        let link = server_multiplex::open(self.session, self.proxy.index, server, shared, link);
        link.map_or(Attempt::Unable, Attempt::Connected)
    }

    /// Starts HTTP/3 by QMux on a connection that was just opened, and begins the request once the server's parameters were
    /// received. Later requests of this worker can use the connection.
    async fn begin_qmux(&mut self, backend: &Backend, server: &Server, link: Link) -> Attempt {
        let Link { carrier, answers, glitches, private, first, generation, place, pool_key } = link;
        let Some(transport) = carrier.into_transport() else { return Attempt::Unable };
        let global = &self.session.generation().program.global;
        let terms = outgoing_quic::http3_terms(global, server);
        let settings = outgoing_quic::qmux_settings(&global.quic.servers);
        let (mut connection, requests) = ServerConnection::new(transport, ServerTerms::Qmux(terms, settings));
        let own = self.state.borrow().rules.orders.get().timeouts;
        let deadline = own.connect.or(self.proxy.timeouts.connect).map(|limit| rt::now() + limit);
        match self.wait(deadline, |cx| connection.poll_ready(cx, &requests)).await {
            WaitResult::Done(true) => {}
            WaitResult::Done(false) => {
                self.note_error(ConnectionError::NONE);
                return Attempt::Refused;
            }
            WaitResult::Expired => {
                self.note_error(ConnectionError::NONE);
                return Attempt::Expired;
            }
            WaitResult::Gone => return Attempt::Gone,
        }
        let Some(carrier) = requests.begin() else { return Attempt::Refused };
        let link = Link { carrier, answers, glitches, private, first, generation, place, pool_key };
        let shared = !link.private && backend.http_reuse != HttpReuse::Never;
        let proxy = self.proxy.index;
        let fresh = server_multiplex::NewConnection { connection, requests, tally: None };
        Attempt::Connected(server_multiplex::start(self.session, proxy, server, shared, link, fresh))
    }
}
