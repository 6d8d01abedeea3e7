//! Tunnels opened by requests: CONNECT, and upgrades to other protocols (RFC 9110, sections 7.8 and 9.3.6). Must never
//! interpret their data.

use base::buffer::Buffer;
use conn::duplex::Duplex;
use conn::link::Link;
use policy::program::Proxy;
use wire::http::{Head, Method};

use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::{carriage, conclude, filter};
use crate::worker::{SharedStreamState, Slot};

/// Whether a request opens a tunnel if its server agrees; the data that follows is then not a body.
pub fn is_asked(request: &Head) -> bool {
    request.upgrade || request.known_method() == Method::Connect
}

/// Forwards the data of a tunnel until both sides have closed.
pub async fn carry(
    session: &Session,
    client: &mut Client,
    backend: &Proxy,
    state: SharedStreamState,
    (slot, mut link): (Slot, Link),
    (head, server_input): (Buffer, Buffer),
) {
    let input = client.conn.take_received();
    if let Ok(mut duplex) = Duplex::new(input, head, server_input) {
        filter::install_both(state.borrow().filters.as_ref(), &mut duplex);
        let limits =
            carriage::SilenceLimits::of_upgrade(session.proxy(), backend, state.borrow().rules.orders.get().timeouts);
        let outcome = carriage::carry(duplex, client, &mut link.carrier, &limits, (session, &state)).await;
        state.borrow_mut().outcome = outcome;
    }
    drop(link);
    state.borrow_mut().attempts.counts = Some(slot.release());
    conclude::conclude(session, state);
}
