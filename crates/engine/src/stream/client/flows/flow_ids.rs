//! The QUIC connection IDs of one flow. Must never use more than [`MOST`] of them.

use quic::cid::Id;
use rt::net::Datagrams;
use wire::quic::{Header, header};

use super::connection_ids::{Chooser, ConnectionIds, Route, UsedId};

/// Maximum number of IDs. A connection uses the client's first one, those of a Retry and of the handshake, and changes now and then.
const MOST: usize = 5;

/// An ID, also one that others use for another server.
#[derive(Debug)]
struct FlowId {
    id: Id,
    _used: Option<UsedId>,
}

/// The IDs of a flow.
#[derive(Debug)]
pub(super) struct FlowIds {
    all: ConnectionIds,
    proxy: usize,
    route: Route,
    /// The oldest one first.
    known: Vec<FlowId>,
    /// The server's ID that packets have used last. Its length is that of all.
    current: Option<Id>,
}

impl FlowIds {
    pub(super) fn new(all: ConnectionIds, proxy: usize, route: Route) -> Self {
        Self { all, proxy, route, known: Vec::new(), current: None }
    }

    /// Returns the index of the flow's server.
    pub(super) fn server(&self) -> usize {
        self.route.server
    }

    /// Adds an ID, instead of the oldest one if there are too many.
    pub(super) fn learn(&mut self, chooser: Chooser, id: Id) {
        if chooser == Chooser::Server {
            self.current = Some(id);
        }
        if self.known.iter().any(|known| known.id == id) {
            return;
        }
        if self.known.len() == MOST {
            self.known.remove(0);
        }
        let used = self.all.learn(self.proxy, chooser, id, self.route);
        self.known.push(FlowId { id, _used: used });
    }

    /// Forgets all: they lead to no server any longer.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.current = None;
    }

    /// Whether datagrams have short headers with the ID that was used last.
    pub(super) fn are_current(&self, datagrams: &Datagrams<'_>) -> bool {
        let Some(current) = &self.current else { return false };
        datagrams.iter().all(|bytes| match header(bytes) {
            Some(Header::Short(rest)) => rest.starts_with(current.as_slice()),
            _ => false,
        })
    }

    /// Whether a packet of the client belongs to a connection of the flow.
    pub(super) fn contain(&self, header: &Header<'_>) -> bool {
        match header {
            Header::Long(header) => self.known.iter().any(|known| known.id.as_slice() == header.destination),
            Header::Short(rest) => self.current.is_some_and(|current| rest.starts_with(current.as_slice())),
        }
    }

    /// Learns the ID that a client has changed to. The server has chosen it in an encrypted frame.
    pub(super) fn note_request(&mut self, header: &Header<'_>) {
        let Some(length) = self.current.map(|current| current.as_slice().len()) else { return };
        let id = match header {
            Header::Long(header) => Some(header.destination),
            Header::Short(rest) => rest.get(..length),
        };
        if let Some(id) = id.filter(|id| id.len() == length).and_then(Id::new) {
            self.learn(Chooser::Server, id);
        }
    }

    /// Learns the IDs that the server chooses: the source IDs of its long headers.
    pub(super) fn note_answers(&mut self, datagrams: &Datagrams<'_>) {
        for bytes in datagrams.iter() {
            let Some(Header::Long(header)) = header(bytes) else { continue };
            // Version Negotiation repeats the client's ID.
            if header.version != 0
                && !header.source.is_empty()
                && let Some(id) = Id::new(header.source)
            {
                self.learn(Chooser::Server, id);
            }
        }
    }
}
