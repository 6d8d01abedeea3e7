//! QUIC that is passed through (`option quic-passthrough`): the flow that a datagram belongs to, by its connection ID. Must never
//! send a datagram, nor change one.

use std::cell::RefCell;
use std::rc::Rc;

use config::spec::ServerIdPlace;
use policy::program::{Proxy, QuicPassthrough};
use wire::quic::{Header, PacketType, header};

use super::connection_ids::{Chooser, ConnectionIds, Home, Route};
use super::flow::Flow;
use super::flow_ids::FlowIds;
use super::flow_table::{FlowKey, FlowPlace, FlowTable};
use super::held_hellos::HeldHellos;

/// Minimum length of the destination ID of a client's first packets (RFC 9000, section 7.2).
const LEAST_FIRST_ID: usize = 8;

/// State of the QUIC connections of a socket.
pub(super) struct Passthrough {
    /// The number of the listener.
    listener: u64,
    ids: ConnectionIds,
    pub(super) held: RefCell<HeldHellos>,
}

/// Where a datagram of a client goes.
pub(super) enum Destination {
    Flow(FlowPlace, Rc<Flow>),
    /// Another flow begins: on that server if it is known.
    New(Option<usize>),
    /// A connection begins, and its ClientHello is needed first.
    Hello,
}

impl Passthrough {
    pub(super) fn new(listener: u64, ids: ConnectionIds) -> Self {
        Self { listener, ids, held: RefCell::default() }
    }

    /// Returns where a datagram goes. The client's address finds its flow first; a connection ID that belongs to another one leads
    /// there, and an ID that begins a connection to a new one.
    pub(super) fn destination(
        &self,
        table: &FlowTable<Rc<Flow>>,
        key: &FlowKey,
        datagram: &[u8],
        proxy: &Proxy,
        settings: QuicPassthrough,
    ) -> Destination {
        let known = table.find(key).map(|(place, flow)| (place, Rc::clone(flow)));
        let Some(header) = header(datagram) else {
            return known.map_or(Destination::New(None), |(place, flow)| Destination::Flow(place, flow));
        };
        let known = match known {
            // Without IDs it began before a reload.
            Some((place, flow)) if flow.ids.get().is_none_or(|ids| ids.borrow_mut().recognise(&header)) => {
                return Destination::Flow(place, flow);
            }
            other => other,
        };
        if let Some((chooser, id, route)) = self.ids.find(proxy.index, &header) {
            if let Some(flow) = self.flow_of(table, key, route) {
                return Destination::Flow(route.home.place, flow);
            }
            // Another ID of the connection, or another connection to the same server.
            if let Some((place, flow)) = known
                && let Some(ids) = flow.ids.get().filter(|ids| ids.borrow().server() == route.server)
            {
                ids.borrow_mut().learn_new(chooser, id);
                return Destination::Flow(place, Rc::clone(&flow));
            }
            return Destination::New(Some(route.server));
        }
        match known {
            _ if begins_connection(&header) => Destination::Hello,
            Some((place, flow)) => {
                // The ID of another server: the client has the address of an earlier one, or several connections.
                let server = settings.server_id.and_then(|place| server_by_id(proxy, place, &header));
                if server.is_some_and(|server| flow.ids.get().is_some_and(|ids| ids.borrow().server() != server)) {
                    return Destination::New(server);
                }
                // An ID without the server's identity is none of its own.
                if settings.server_id.is_none() || server.is_some() {
                    note_request(&flow, &header);
                }
                Destination::Flow(place, flow)
            }
            None if self.held.borrow().has(key) => Destination::Hello,
            None => Destination::New(settings.server_id.and_then(|place| server_by_id(proxy, place, &header))),
        }
    }

    /// Returns the flow of a route if it is the client's: a client may have several connections from one port.
    fn flow_of(&self, table: &FlowTable<Rc<Flow>>, key: &FlowKey, route: Route) -> Option<Rc<Flow>> {
        let flow = table.get(route.home.place).filter(|_| route.home.listener == self.listener)?;
        ((flow.client, flow.local) == (key.peer, key.local)).then(|| Rc::clone(flow))
    }

    /// Gives a flow that has begun with a datagram its connection IDs.
    pub(super) fn attach(&self, flow: &Flow, place: FlowPlace, first: &[u8]) {
        let Some(server) = flow.state.borrow().route.server else { return };
        let proxy = flow.session.proxy().index;
        let home = Home { listener: self.listener, place };
        let mut ids = FlowIds::new(self.ids.clone(), proxy, Route { server, home });
        if let Some(header) = header(first) {
            match (self.ids.find(proxy, &header), &header) {
                (Some((chooser, id, _)), _) => ids.learn(chooser, id),
                (None, Header::Long(long)) if begins_connection(&header) => {
                    if let Some(id) = quic::cid::Id::new(long.destination) {
                        ids.learn(Chooser::Client, id);
                    }
                }
                _ => {}
            }
        }
        let _ = flow.ids.set(Box::new(RefCell::new(ids)));
    }
}

/// Learns the ID of a datagram that belongs to a flow.
fn note_request(flow: &Flow, header: &Header<'_>) {
    if let Some(ids) = flow.ids.get() {
        ids.borrow_mut().note_request(header);
    }
}

/// Learns the ID of a datagram that might have begun a connection, and belongs to that of a flow.
pub(super) fn note_continued(flow: &Flow, datagram: &[u8]) {
    if let Some(header) = header(datagram) {
        note_request(flow, &header);
    }
}

/// Whether a packet may be the first one of a connection.
fn begins_connection(header: &Header<'_>) -> bool {
    let Header::Long(header) = header else { return false };
    let is_first = matches!(header.packet_type(), Some(PacketType::Initial | PacketType::ZeroRtt));
    is_first && header.destination.len() >= LEAST_FIRST_ID
}

/// Returns the server whose `id` is in the destination ID of a packet.
fn server_by_id(proxy: &Proxy, place: ServerIdPlace, header: &Header<'_>) -> Option<usize> {
    let id = match header {
        Header::Long(header) => header.destination,
        Header::Short(rest) => rest,
    };
    let begin = usize::from(place.offset);
    let bytes = id.get(begin..begin + usize::from(place.length))?;
    let number = bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    let servers = &proxy.backend.as_ref()?.servers;
    servers.iter().find(|server| server.id == number).map(|server| server.index)
}
