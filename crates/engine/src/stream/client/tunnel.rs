//! Tunnels opened by requests: CONNECT, and upgrades to other protocols (RFC 9110, sections 7.8 and 9.3.6). Must never
//! interpret their data.

use base::buffer::Buffer;
use conn::duplex::Duplex;
use policy::program::Proxy;
use wire::http::{Head, Method};

use crate::stream::client::tcp_transfer;
use crate::stream::context::RequestContext;
use crate::stream::exchange::filter;
use crate::stream::server::server_target::Target;
use crate::stream_state::{Cause, Outcome, Phase};

/// The data of a server that has opened a tunnel.
#[derive(Default)]
pub struct Tunnelled {
    /// Head of its answer.
    pub head: Buffer,
    /// The bytes after it.
    pub input: Buffer,
}

/// Whether a request opens a tunnel if its server agrees; the data that follows is then not a body.
pub fn is_asked(request: &Head) -> bool {
    request.upgrade || request.known_method() == Method::Connect
}

/// Forwards the data of a tunnel until both sides have closed.
pub async fn carry(mut context: RequestContext<'_>, backend: &Proxy, target: Target, tunnelled: Tunnelled) {
    let (Target { slot, mut link }, Tunnelled { head, input: server_input }) = (target, tunnelled);
    let input = context.client.conn.take_received();
    if let Ok(mut duplex) = Duplex::new(input, head, server_input) {
        filter::install_both(context.state.borrow().filters.as_ref(), &mut duplex);
        let limits = tcp_transfer::SilenceLimits::of_upgrade(
            context.session.proxy(),
            backend,
            context.state.borrow().rules.orders.get().timeouts,
        );
        let outcome = if context.client.conn.is_session() {
            match context.client.conn.relay_to(&link.carrier) {
                Some(relay) => tcp_transfer::carry_with(&mut context, duplex, &mut link.carrier, &limits, relay).await,
                // The server has accepted it over a protocol that cannot carry its streams.
                None => Outcome::new(Cause::Proxy, Phase::Headers),
            }
        } else {
            tcp_transfer::carry(&mut context, duplex, &mut link.carrier, &limits).await
        };
        context.state.borrow_mut().outcome = outcome;
    }
    drop(link);
    context.state.borrow_mut().attempts.counts = Some(slot.release());
    context.conclude();
}
