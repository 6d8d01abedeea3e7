//! The simulated network as a script sees it. Must never wait for virtual time.

use std::collections::BTreeSet;
use std::time::Duration;

use base::Key;

use super::faults::Link;
use super::node::{CapturedDatagram, Kind};
use super::path::{DatagramFaults, DatagramPath, Direction};
use super::world::{SharedWorld, World, lock};
use crate::net::Address;

fn put<T: Ord + Clone>(set: &mut BTreeSet<T>, value: &T, on: bool) {
    if on {
        set.insert(value.clone());
    } else {
        set.remove(value);
    }
}

/// The simulated network, for the script to configure and inspect. Clones refer to the same network.
#[derive(Clone)]
pub struct Network {
    pub(super) world: SharedWorld,
}

impl Network {
    /// Sets the link of connections opened from now on to services without a link of their own.
    pub fn set_default_link(&self, link: Link) {
        lock(&self.world).faults.link = link;
    }

    /// Sets the link of connections opened to `service` from now on.
    pub fn set_link(&self, service: &Address, link: Link) {
        lock(&self.world).faults.links.insert(service.clone(), link);
    }

    /// Makes code with transports above the sockets use one that moves the boundaries of reads and writes
    /// ([`shuffles_records`]).
    pub fn shuffle_records(&self) {
        lock(&self.world).faults.records = true;
    }

    /// Refuses connections to `service` even if there is a listener, or stops refusing.
    pub fn refuse(&self, service: &Address, on: bool) {
        put(&mut lock(&self.world).faults.refused, service, on);
    }

    /// Makes accepting at `listener` fail with this error of the kernel (`EMFILE`, `ENOBUFS`, …) while connections
    /// wait; `None` ends that.
    pub fn fail_accepts(&self, listener: &Address, code: Option<i32>) {
        lock(&self.world).faults.accept_errors.entry(listener.clone()).or_default().code = code;
    }

    /// Returns the number of attempts to accept at `listener` that failed this way.
    pub fn failed_accepts(&self, listener: &Address) -> u64 {
        lock(&self.world).faults.accept_errors.get(listener).map_or(0, |error| error.met)
    }

    /// Sends connections to `service` to the listener at `to` instead, like a packet filter's REDIRECT.
    pub fn redirect(&self, service: &Address, to: &Address) {
        lock(&self.world).faults.redirections.insert(service.clone(), to.clone());
    }

    /// Makes connecting to `service` fail with this error of the kernel (`EMFILE`, `EADDRNOTAVAIL` …); `None` ends
    /// that.
    pub fn fail_to_connect(&self, service: &Address, code: Option<i32>) {
        let failing = &mut lock(&self.world).faults.failing;
        match code {
            Some(code) => drop(failing.insert(service.clone(), code)),
            None => drop(failing.remove(service)),
        }
    }

    /// Drops everything to and from `service`: connections are never answered, bytes of open ones arrive only after the
    /// end of the fault, datagrams are lost.
    pub fn black_hole(&self, service: &Address, on: bool) {
        put(&mut lock(&self.world).faults.black_holes, service, on);
    }

    /// Resets every open connection to `service`, at both ends. Returns their number.
    pub fn reset(&self, service: &Address) -> usize {
        let mut world = lock(&self.world);
        let ends = world.open_ends(service);
        for key in &ends {
            world.fail(*key, libc::ECONNRESET);
        }
        ends.len() / 2
    }

    /// Returns the number of open ends of connections to `service`: two per open connection.
    pub fn open_ends(&self, service: &Address) -> usize {
        lock(&self.world).open_ends(service).len()
    }

    /// Returns the number of open ends of all connections.
    pub fn all_open_ends(&self) -> usize {
        lock(&self.world).nodes.iter().filter(|(_, node)| matches!(node.kind, Kind::Stream(_))).count()
    }

    /// Takes the datagrams sent since the last call, in sending order.
    pub fn take_datagrams(&self) -> Vec<CapturedDatagram> {
        std::mem::take(&mut lock(&self.world).datagrams)
    }

    /// Sets the path of datagrams in all directions without a path of their own. Until then, and for datagrams without a
    /// path, the link determines the delay.
    pub fn set_datagram_path(&self, path: DatagramPath) {
        lock(&self.world).paths.set(Direction::Any, path);
    }

    /// Sets the path of datagrams to an address from now on. It has precedence over that from their sender.
    pub fn set_path_to(&self, address: &Address, path: DatagramPath) {
        lock(&self.world).paths.set(Direction::To(address.clone()), path);
    }

    /// Sets the path of datagrams from an address, as their sender sees it, from now on.
    pub fn set_path_from(&self, address: &Address, path: DatagramPath) {
        lock(&self.world).paths.set(Direction::From(address.clone()), path);
    }

    /// Moves a socket to another address, as an address translator does that has forgotten its entry: from now on what
    /// the socket sends comes from `outside`, and what is sent there reaches it. What is sent to its former address is
    /// lost, in transit as well.
    pub fn rebind(&self, socket: &Address, outside: &Address) {
        lock(&self.world).paths.rebind(socket.clone(), outside.clone());
    }

    /// Fills the send buffer of the UDP socket that is bound to an address, so that sending waits, or empties it.
    pub fn fill_send_buffer(&self, socket: &Address, on: bool) {
        let mut world = lock(&self.world);
        world.paths.set_full(socket, on);
        world.report_datagrams(socket);
    }

    /// Makes a report about an earlier datagram arrive at the sender after a number of messages to an address: the call for the next
    /// one returns it, and sends nothing.
    pub fn reject_after(&self, destination: &Address, messages: usize) {
        lock(&self.world).paths.reject_after(destination.clone(), messages);
    }

    /// Returns the numbers of datagrams that paths have dropped or changed.
    pub fn datagram_faults(&self) -> DatagramFaults {
        lock(&self.world).paths.counts
    }

    /// Makes work take time, which it does not by default: the virtual clock advances by `period` whenever a task
    /// measures its running time ([`crate::slice_is_over`], [`crate::measure`]).
    pub fn set_cost_of_work(&self, period: Duration) {
        lock(&self.world).cost_of_measuring = period;
    }

    /// Returns the virtual time since the simulation began.
    pub fn elapsed(&self) -> Duration {
        lock(&self.world).elapsed()
    }

    /// Returns a hash of all events: equal runs with equal seeds have equal fingerprints.
    pub fn fingerprint(&self) -> u64 {
        lock(&self.world).fingerprint()
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl World {
    fn open_ends(&self, service: &Address) -> Vec<Key> {
        let of_service = |kind: &Kind| matches!(kind, Kind::Stream(endpoint) if endpoint.service == *service);
        self.nodes.iter().filter(|(_, node)| of_service(&node.kind)).map(|(key, _)| key).collect()
    }
}
