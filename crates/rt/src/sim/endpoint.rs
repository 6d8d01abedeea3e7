//! Handles of the simulated sockets of a world, in place of descriptors.
//!
//! Alternatives to system calls are cold: callers are laid out for the sockets of the system. A handle must never be
//! dropped while its world is locked: dropping it locks the world.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

use base::{Key, Moment, WallTime};

use super::node::{Endpoint, Kind};
use super::world::{SharedWorld, World, lock};
use crate::net::{Address, ReceiveSpace, TcpInfo};
use crate::source::{Events, Watch};
use crate::sys::send_messages::OutgoingMessage;

/// One simulated socket. Dropping it closes it.
pub(crate) struct SimSocket {
    world: SharedWorld,
    node: Key,
}

impl SimSocket {
    fn with<R>(&self, action: impl FnOnce(&mut World, Key) -> R) -> R {
        action(&mut lock(&self.world), self.node)
    }

    pub(crate) fn connect(world: &SharedWorld, to: &Address, source: Option<&Address>) -> io::Result<SimSocket> {
        let mut locked = lock(world);
        if let Some(code) = locked.faults.failure(to) {
            return Err(io::Error::from_raw_os_error(code));
        }
        if to.is_unix() && !locked.listening.contains_key(to) {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        let local = match (to, source) {
            (Address::Inet(to), source) => {
                let mut local = source.and_then(Address::inet).unwrap_or(*to);
                if source.is_none_or(|source| source.inet().is_none_or(|inet| inet.port() == 0)) {
                    local.set_port(locked.fresh_port());
                }
                Address::Inet(local)
            }
            _ => Address::Unnamed,
        };
        let node = locked.connect(local, to.clone());
        drop(locked);
        Ok(SimSocket { world: SharedWorld::clone(world), node })
    }

    pub(crate) fn listen(world: &SharedWorld, at: &Address, backlog: i32) -> io::Result<(SimSocket, Address)> {
        let (node, address) = lock(world).listen(at, backlog)?;
        Ok((SimSocket { world: SharedWorld::clone(world), node }, address))
    }

    /// Opens a datagram socket, bound if there is an address.
    pub(crate) fn datagram(world: &SharedWorld, at: Option<&Address>) -> io::Result<SimSocket> {
        let node = lock(world).open_datagram(at, false, false)?;
        Ok(SimSocket { world: SharedWorld::clone(world), node })
    }

    /// Opens a UDP socket. `is_shared`: others may be bound to its address. `is_v6_only`: one at all IPv6 addresses has
    /// no IPv4 peers.
    pub(crate) fn udp(world: &SharedWorld, at: SocketAddr, is_shared: bool, is_v6_only: bool) -> io::Result<SimSocket> {
        let node = lock(world).open_datagram(Some(&Address::Inet(at)), is_shared, is_v6_only)?;
        Ok(SimSocket { world: SharedWorld::clone(world), node })
    }

    pub(crate) fn signals(world: &SharedWorld) -> SimSocket {
        let node = lock(world).add_node(Kind::Signals);
        SimSocket { world: SharedWorld::clone(world), node }
    }

    pub(crate) fn alarm(world: &SharedWorld) -> SimSocket {
        let node = lock(world).add_node(Kind::Alarm(Moment::MAX));
        SimSocket { world: SharedWorld::clone(world), node }
    }

    pub(crate) fn set_alarm(&self, at: Moment) {
        self.with(|world, node| world.set_alarm(node, at));
    }

    #[cold]
    pub(crate) fn accept(&self) -> io::Result<Option<(SimSocket, Address)>> {
        let accepted = self.with(World::accept)?;
        Ok(accepted.map(|(node, from)| (SimSocket { world: SharedWorld::clone(&self.world), node }, from)))
    }

    #[cold]
    pub(crate) fn receive(&self, place: &mut [u8]) -> io::Result<Option<usize>> {
        self.with(|world, node| world.receive(node, place))
    }

    #[cold]
    pub(crate) fn has_something(&self) -> bool {
        self.with(|world, node| world.has_something(node))
    }

    #[cold]
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        self.with(|world, node| world.send(node, bytes))
    }

    #[cold]
    pub(crate) fn send_slices(&self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        self.send(&bytes)
    }

    /// Returns the number of bytes that may be sent now.
    #[cold]
    pub(crate) fn send_capacity(&self) -> usize {
        self.with(|world, node| world.send_capacity(node))
    }

    #[cold]
    pub(crate) fn unsent(&self) -> usize {
        self.with(|world, node| world.unsent(node))
    }

    #[cold]
    pub(crate) fn unacknowledged(&self) -> usize {
        self.with(|world, node| world.unacknowledged(node))
    }

    #[cold]
    pub(crate) fn clear_reset_on_close(&self) {
        self.with(World::clear_reset_on_close);
    }

    #[cold]
    pub(crate) fn shutdown_write(&self) -> io::Result<()> {
        self.with(World::shutdown_write)
    }

    #[cold]
    pub(crate) fn set_reset_on_close(&self) {
        self.with(World::set_reset_on_close);
    }

    #[cold]
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.with(World::take_error)
    }

    #[cold]
    pub(crate) fn local_address(&self) -> io::Result<Address> {
        self.with(|world, node| match world.peek_endpoint(node) {
            Some(endpoint) => Ok(endpoint.local.clone()),
            None => world.datagram_address(node),
        })
    }

    #[cold]
    pub(crate) fn peer_address(&self) -> io::Result<Address> {
        let remote = self.with(|world, node| world.peek_endpoint(node).map(|endpoint| endpoint.remote.clone()));
        remote.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    #[cold]
    pub(crate) fn connect_datagram(&self, to: &Address) -> io::Result<()> {
        self.with(|world, node| world.connect_datagram(node, to))
    }

    #[cold]
    pub(crate) fn send_datagram(&self, to: Option<&Address>, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.with(|world, node| world.send_datagram(node, to, bytes))
    }

    #[cold]
    pub(crate) fn receive_datagram(&self, place: &mut [u8]) -> io::Result<Option<(usize, Address)>> {
        self.with(|world, node| world.receive_datagram(node, place))
    }

    #[cold]
    pub(crate) fn receive_messages(&self, space: &mut ReceiveSpace) -> io::Result<Option<usize>> {
        self.with(|world, node| world.receive_messages(node, space))
    }

    #[cold]
    pub(crate) fn send_messages<'a>(
        &self,
        messages: impl Iterator<Item = OutgoingMessage<'a>>,
    ) -> io::Result<Option<usize>> {
        self.with(|world, node| world.send_messages(node, messages))
    }

    /// Steers the datagrams of the sockets that share its address.
    pub(crate) fn steer(&self, count: usize) -> io::Result<()> {
        self.with(|world, node| world.steer(node, count))
    }

    /// Returns the number of datagrams that found no space.
    pub(crate) fn udp_drops(&self) -> u64 {
        self.with(World::datagram_drops)
    }

    /// Reports the current events again.
    #[cold]
    pub(crate) fn report(&self) {
        self.with(World::trigger);
    }

    /// Takes the first pending signal whose number satisfies `wanted`.
    pub(crate) fn take_signal(&self, wanted: impl Fn(i32) -> bool) -> Option<i32> {
        self.with(|world, _| {
            let place = world.signals.iter().position(|number| wanted(*number))?;
            world.signals.remove(place)
        })
    }

    /// Watches the socket on a worker.
    #[cold]
    pub(crate) fn watch(&self, instance: u32, key: Key, watch: Watch) {
        self.with(|world, node| world.watch(node, instance, key, watch));
    }

    #[cold]
    pub(crate) fn unwatch(&self, instance: u32) {
        self.with(|world, node| world.unwatch(node.slot, instance));
    }

    /// Returns the number by which [`SimDriver::unwatch`] finds it.
    #[cold]
    pub(crate) fn number(&self) -> i32 {
        self.node.slot as i32
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.with(|world, node| match world.nodes.get(node).map(|node| &node.kind) {
            Some(Kind::Stream(_)) => world.close_stream(node),
            Some(Kind::Listener(_)) => world.close_listener(node),
            Some(Kind::Datagram(_)) => world.close_datagram(node),
            Some(Kind::Signals | Kind::Alarm(_)) => drop(world.nodes.remove(node)),
            None => {}
        });
    }
}

impl fmt::Debug for SimSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimSocket").field("node", &self.node).finish()
    }
}

/// A simulated connection for queries. It does not keep the connection open.
pub(crate) struct SimSocketView {
    world: SharedWorld,
    slot: u32,
}

impl SimSocketView {
    fn ask<R>(&self, action: impl FnOnce(&Endpoint) -> R) -> io::Result<R> {
        let world = lock(&self.world);
        let node = world.nodes.at(self.slot).map(|node| &node.kind);
        match node {
            Some(Kind::Stream(endpoint)) => Ok(action(endpoint)),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    #[cold]
    pub(crate) fn local_address(&self) -> io::Result<Address> {
        self.ask(|endpoint| endpoint.local.clone())
    }

    pub(crate) fn original_destination(&self) -> io::Result<Address> {
        let before = self.ask(|endpoint| endpoint.redirected.clone())?;
        before.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    pub(crate) fn tcp_info(&self) -> io::Result<TcpInfo> {
        self.ask(|endpoint| TcpInfo { rtt: endpoint.round_trip(), ..TcpInfo::default() })
    }
}

/// The driver of a simulated worker.
pub(crate) struct SimDriver {
    pub(crate) world: SharedWorld,
    pub(super) instance: u32,
}

impl SimDriver {
    #[cold]
    pub(crate) fn now(&self) -> Moment {
        lock(&self.world).now()
    }

    /// Reads the clock, which takes the time configured by the script.
    #[cold]
    pub(crate) fn measure(&self) -> Moment {
        lock(&self.world).measure()
    }

    #[cold]
    pub(crate) fn wall(&self) -> WallTime {
        lock(&self.world).wall()
    }

    #[cold]
    pub(crate) fn harvest(&self) -> Vec<(Key, Events)> {
        lock(&self.world).harvest(self.instance)
    }

    #[cold]
    pub(crate) fn watch(&self, socket: &SimSocket, watch: Watch, key: Key) {
        socket.watch(self.instance, key, watch);
    }

    #[cold]
    pub(crate) fn unwatch(&self, number: i32) {
        lock(&self.world).unwatch(number as u32, self.instance);
    }

    /// Returns the socket with that number, for queries.
    #[cold]
    pub(crate) fn view(&self, number: i32) -> SimSocketView {
        SimSocketView { world: SharedWorld::clone(&self.world), slot: number as u32 }
    }
}
