//! What the kernel knows of a stream's two connections, for queries after the streams were moved. Must never
//! hold a connection.

use expression::sample::{Transport, Value};
use rt::net::{SocketQuery, TcpInfo};

use crate::session::Session;
use crate::stream_state::StreamState;

/// Whom to ask about one connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kernel {
    /// None.
    #[default]
    Unknown,
    /// The connection.
    Ask(SocketQuery),
    /// What was known when the stream gave it away.
    Last(Box<TcpInfo>),
}

impl Kernel {
    /// The number of the connection's descriptor, while the stream has the connection.
    pub fn number(&self) -> Option<i32> {
        if let Self::Ask(socket) = self { socket.number() } else { None }
    }

    /// What is known now.
    fn known(&self) -> Option<TcpInfo> {
        match self {
            Self::Unknown => None,
            Self::Ask(socket) => socket.tcp_info().ok(),
            Self::Last(info) => Some(**info),
        }
    }

    /// The stream gives the connection away. `wanted`: a log line will still query it.
    fn part(&mut self, socket: SocketQuery, wanted: bool) {
        let last = if wanted { socket.tcp_info().ok() } else { None };
        *self = last.map_or(Self::Unknown, |info| Self::Last(Box::new(info)));
    }
}

/// A fact about one of the connections.
pub fn ask(session: &Session, state: &StreamState, fact: Transport) -> Option<Value<'static>> {
    let known = match fact {
        Transport::ServerRtt | Transport::ServerRttVariance => state.attempts.server_kernel.known(),
        _ => session.socket().tcp_info().ok().or_else(|| state.client_kernel.known()),
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

/// The server's connection is closed, or becomes another stream's.
pub fn part_from_server(session: &Session, state: &mut StreamState, server: SocketQuery) {
    state.attempts.server_kernel.part(server, session.log().asks_kernel());
}

/// The client's connection is closed before the stream's line is written.
pub fn part_from_client(session: &Session, state: &mut StreamState) {
    state.client_kernel.part(session.socket(), session.log().asks_kernel());
}
