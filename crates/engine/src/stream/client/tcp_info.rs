//! The kernel's information about a stream's two connections, also after the connections were given away. Must never hold a
//! connection.

use expression::sample::{Transport, Value};
use rt::net::SocketQuery;

use crate::session::Session;
use crate::stream_state::StreamState;

/// Returns a value about one of the connections.
pub fn ask(session: &Session, state: &StreamState, fact: Transport) -> Option<Value<'static>> {
    let known = match fact {
        Transport::ServerRtt | Transport::ServerRttVariance => state.attempts.server_kernel.known(),
        _ => session.socket().tcp_info().ok().or_else(|| state.info.client_kernel.known()),
    }?;
    let micros = |time: std::time::Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    Some(Value::Int(match fact {
        Transport::ClientRtt | Transport::ServerRtt => micros(known.rtt),
        Transport::ClientRttVariance | Transport::ServerRttVariance => micros(known.rtt_variance),
        Transport::ClientUnacked => known.unacked.into(),
        Transport::ClientSacked => known.sacked.into(),
        Transport::ClientRetransmits => known.retransmitted.into(),
        Transport::ClientFackets => known.fackets.into(),
        Transport::ClientLost => known.lost.into(),
        Transport::ClientReordering => known.reordering.into(),
        _ => return None,
    }))
}

/// Called when the server connection is closed, or is given to another stream.
pub fn part_from_server(session: &Session, state: &mut StreamState, server: SocketQuery) {
    state.attempts.server_kernel.part(server, session.log().asks_kernel());
}

/// Called when the client's connection is closed before the stream's log line is written.
pub fn part_from_client(session: &Session, state: &mut StreamState) {
    state.info.client_kernel.part(session.socket(), session.log().asks_kernel());
}
