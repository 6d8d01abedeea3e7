//! What the kernel knows of a stream's two connections, for those who ask after somebody else has taken them. Must never
//! hold a connection.

use std::io;

use policy::sample::{Transport, Value};
use rt::net::{Stream, TcpInfo, Witness};

use crate::facts::Facts;
use crate::session::Session;

/// Whom to ask about one connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kernel {
    /// Nobody.
    #[default]
    Unknown,
    /// The connection.
    Ask(Witness),
    /// What was known when the stream gave it away.
    Last(Box<TcpInfo>),
}

impl Kernel {
    /// What is known now.
    fn known(&self) -> Option<TcpInfo> {
        match self {
            Self::Unknown => None,
            Self::Ask(witness) => witness.tcp_info().ok(),
            Self::Last(info) => Some(**info),
        }
    }

    /// The packet that began it, as long as it is there.
    pub fn take_saved_syn(&self, place: &mut [u8]) -> Option<io::Result<usize>> {
        if let Self::Ask(witness) = self { Some(witness.take_saved_syn(place)) } else { None }
    }

    /// The stream gives the connection away. `wanted`: somebody will still ask.
    pub fn part(&mut self, stream: &Stream, wanted: bool) {
        let last = if wanted { stream.tcp_info().ok() } else { None };
        *self = last.map_or(Self::Unknown, |info| Self::Last(Box::new(info)));
    }
}

/// A fact about one of the connections. `client`: the client's, where it is at hand.
pub fn ask(client: Option<&Stream>, facts: &Facts, fact: Transport) -> Option<Value<'static>> {
    let of_server = matches!(fact, Transport::ServerRtt | Transport::ServerRttVariance);
    let known = match client {
        _ if of_server => facts.server_kernel.known(),
        Some(client) => client.tcp_info().ok(),
        None => facts.client_kernel.known(),
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

/// The client's connection is served by a stream from now on.
pub fn meet_client(facts: &mut Facts, client: &Stream) {
    facts.client_kernel = Kernel::Ask(client.witness());
}

/// The server's connection goes to somebody else, or ends.
pub fn part_from_server(session: &Session, facts: &mut Facts, server: &Stream) {
    facts.server_kernel.part(server, session.worker.logger.asks_kernel(session.frontend));
}

/// The client's connection ends before the stream's line is written.
pub fn part_from_client(session: &Session, facts: &mut Facts, client: &Stream) {
    facts.client_kernel.part(client, session.worker.logger.asks_kernel(session.frontend));
}
