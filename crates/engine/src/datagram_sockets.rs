//! The UDP sockets of QUIC addresses, each served by one worker: they wait here for their workers, and copies of their
//! descriptors are passed on. Must never read a datagram.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rt::net::{DatagramSocket, steered_index};

use crate::datagram_queue::{DatagramQueue, HandshakeReport, Order};
use crate::succession::message::Parcel;

/// The sockets of a QUIC address, in the order of the workers, as other workers and processes see them.
#[derive(Debug)]
pub struct SocketGroup {
    members: Box<[GroupMember]>,
    /// The line that has the address, as [`BindPlace::packed`]: a reload in place may assign it to another one.
    owner: AtomicU64,
    /// Set when the address is closed.
    is_closed: AtomicBool,
}

/// A `bind` line: the index of its frontend, and its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindPlace {
    pub frontend: usize,
    pub bind: usize,
}

impl BindPlace {
    /// Returns it in 64 bits.
    const fn packed(self) -> u64 {
        (self.frontend as u64) << 32 | self.bind as u64 & 0xffff_ffff
    }
}

/// A socket of a group.
#[derive(Debug)]
struct GroupMember {
    /// The worker that serves it.
    worker: usize,
    /// The same in every process that has the socket; `None` in a simulation.
    identity: Option<u64>,
    queue: DatagramQueue,
    /// Number of younger processes that receive from the socket: if there are any, this one does not.
    takers: AtomicUsize,
    /// It has connections.
    is_busy: AtomicBool,
}

impl SocketGroup {
    /// Returns the sockets of an address for its workers, which are as many.
    pub fn listening(
        frontend: usize,
        bind: usize,
        workers: &[usize],
        sockets: Vec<DatagramSocket>,
    ) -> impl Iterator<Item = DatagramListening> + use<> {
        let member = |(socket, worker): (&DatagramSocket, &usize)| GroupMember {
            worker: *worker,
            identity: socket.identity(),
            queue: DatagramQueue::default(),
            takers: AtomicUsize::new(0),
            is_busy: AtomicBool::new(false),
        };
        let members = sockets.iter().zip(workers).map(member).collect();
        let owner = AtomicU64::new(BindPlace { frontend, bind }.packed());
        let group = Arc::new(Self { members, owner, is_closed: AtomicBool::new(false) });
        let listening = move |(place, socket)| DatagramListening { place, group: Arc::clone(&group), socket };
        sockets.into_iter().enumerate().map(listening)
    }

    /// Returns the line that has the address.
    pub fn owner(&self) -> BindPlace {
        let owner = self.owner.load(Ordering::Acquire);
        BindPlace { frontend: (owner >> 32) as usize, bind: (owner & 0xffff_ffff) as usize }
    }

    /// Returns the identity of the group: that of its first socket.
    pub fn identity(&self) -> Option<u64> {
        self.members.first()?.identity
    }

    /// Returns the number of its sockets.
    pub fn sockets(&self) -> usize {
        self.members.len()
    }

    /// Returns the queue of a socket.
    pub fn queue(&self, place: usize) -> Option<&DatagramQueue> {
        self.members.get(place).map(|member| &member.queue)
    }
}

/// A socket that a younger process receives from, until this is released. Dropping it leaves the socket to that process: the tasks
/// of a process that ends are dropped one after the other.
#[derive(Debug)]
pub struct SocketClaim {
    group: Arc<SocketGroup>,
    place: usize,
}

impl SocketClaim {
    /// Lets this process receive from the socket again, if no other younger process does.
    pub fn release(self) {
        if let Some(member) = self.group.members.get(self.place) {
            member.takers.fetch_sub(1, Ordering::AcqRel);
            member.queue.wake();
        }
    }
}

/// A UDP socket of a QUIC address and its place in the configuration. One worker serves it. All sockets of an address form
/// a group, in the order of the workers.
#[derive(Debug)]
pub struct DatagramListening {
    /// Its index in the group.
    pub place: usize,
    pub group: Arc<SocketGroup>,
    pub socket: DatagramSocket,
}

impl DatagramListening {
    /// Returns the worker that serves the socket.
    pub fn worker(&self) -> usize {
        self.group.members.get(self.place).map_or(0, |member| member.worker)
    }

    /// Returns its place and its socket.
    pub fn split(self) -> (DatagramPlace, DatagramSocket) {
        let Self { place, group, socket } = self;
        (DatagramPlace { place, group }, socket)
    }
}

/// The place of a UDP socket in the configuration.
#[derive(Debug)]
pub struct DatagramPlace {
    /// Its index in the group.
    pub place: usize,
    pub group: Arc<SocketGroup>,
}

impl DatagramPlace {
    /// The line that has the address now.
    pub fn owner(&self) -> BindPlace {
        self.group.owner()
    }

    /// Whether the address was closed.
    pub fn is_closed(&self) -> bool {
        self.group.is_closed.load(Ordering::Acquire)
    }

    /// Whether a younger process receives from the socket in the place of this one.
    pub fn is_taken(&self) -> bool {
        self.group.members.get(self.place).is_some_and(|member| member.takers.load(Ordering::Acquire) > 0)
    }

    /// Notes whether the socket has connections. Returns whether any socket of the group has: until none has, all of them are
    /// read, because the kernel may choose any for a datagram.
    pub fn note_connections(&self, has_some: bool) -> bool {
        let members = &self.group.members;
        if let Some(own) = members.get(self.place)
            && own.is_busy.load(Ordering::Acquire) != has_some
        {
            own.is_busy.store(has_some, Ordering::Release);
            if !has_some {
                members.iter().for_each(|member| member.queue.wake());
            }
        }
        members.iter().any(|member| member.is_busy.load(Ordering::Acquire))
    }

    /// Returns the queue of datagrams that were received elsewhere.
    pub fn queue(&self) -> Option<&DatagramQueue> {
        self.group.queue(self.place)
    }
}

impl Drop for DatagramPlace {
    fn drop(&mut self) {
        self.queue().into_iter().for_each(DatagramQueue::close);
        self.note_connections(false);
    }
}

/// An open socket of a QUIC address, with a copy of its descriptor that can be passed to another process.
#[derive(Debug)]
pub struct OpenDatagrams {
    /// `None` in a simulation, or if the descriptors were exhausted.
    descriptor: Option<OwnedFd>,
    group: Arc<SocketGroup>,
}

impl OpenDatagrams {
    fn of(listening: &DatagramListening) -> Self {
        let descriptor = listening.socket.as_descriptor().and_then(|fd| fd.try_clone_to_owned().ok());
        Self { descriptor, group: Arc::clone(&listening.group) }
    }

    /// Returns the line that has the address.
    pub fn owner(&self) -> BindPlace {
        self.group.owner()
    }

    /// Returns the descriptor, for passing it to another process, if there is one.
    pub fn as_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }
}

/// A QUIC address that moves from one `bind` line to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocation {
    pub from: BindPlace,
    pub to: BindPlace,
}

/// All sockets of QUIC addresses.
#[derive(Debug, Default)]
pub struct DatagramSockets(Mutex<Holdings>);

#[derive(Debug, Default)]
struct Holdings {
    /// Sockets that their workers have not taken yet.
    waiting: Vec<DatagramListening>,
    /// The sockets that are open, in the order of their groups.
    open: Vec<Arc<OpenDatagrams>>,
    /// The groups whose sockets are in use, those of closed addresses included: they have connections.
    groups: Vec<Weak<SocketGroup>>,
}

impl DatagramSockets {
    fn lock(&self) -> MutexGuard<'_, Holdings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds sockets, which wait for their workers.
    pub fn add(&self, sockets: Vec<DatagramListening>) {
        let open: Vec<_> = sockets.iter().map(|one| Arc::new(OpenDatagrams::of(one))).collect();
        let mut holdings = self.lock();
        holdings.groups.retain(|group| group.strong_count() > 0);
        let groups = sockets.iter().filter(|one| one.place == 0).map(|one| Arc::downgrade(&one.group));
        holdings.groups.extend(groups);
        holdings.waiting.extend(sockets);
        holdings.open.extend(open);
    }

    /// Returns the groups in use.
    fn groups(&self) -> Vec<Arc<SocketGroup>> {
        self.lock().groups.iter().filter_map(Weak::upgrade).collect()
    }

    fn group(&self, identity: u64) -> Option<Arc<SocketGroup>> {
        let is_meant = |group: &Arc<SocketGroup>| group.identity() == Some(identity);
        self.lock().groups.iter().filter_map(Weak::upgrade).find(is_meant)
    }

    /// Returns the identities of the open sockets.
    pub fn identities(&self) -> Vec<u64> {
        let mut groups: Vec<Arc<SocketGroup>> = Vec::new();
        for one in self.open() {
            if !groups.iter().any(|group| Arc::ptr_eq(group, &one.group)) {
                groups.push(Arc::clone(&one.group));
            }
        }
        groups.iter().flat_map(|group| group.members.iter().filter_map(|member| member.identity)).collect()
    }

    /// Passes a datagram from another process to the worker that it names. It is dropped if there is no such worker.
    pub fn deliver(&self, parcel: &Parcel<'_>) {
        if let Some(group) = self.group(parcel.group)
            && let Some(queue) = group.queue(usize::from(parcel.worker))
        {
            queue.push(&parcel.datagram);
        }
    }

    /// Passes a datagram that begins a connection, from another process, to the worker that the kernel would choose.
    pub fn steer(&self, parcel: &Parcel<'_>) {
        if let Some(group) = self.group(parcel.group)
            && let Some(queue) = group.queue(steered_index(parcel.datagram.bytes, group.sockets()))
        {
            queue.push(&parcel.datagram);
        }
    }

    /// Makes the listeners of these sockets stop receiving, until what is added to `taken` is released, and report the
    /// handshakes in progress. Sockets that `taken` has are asked again.
    pub fn give(&self, identities: &[u64], report: &Arc<HandshakeReport>, taken: &mut Vec<SocketClaim>) {
        for group in self.groups() {
            for (place, member) in group.members.iter().enumerate() {
                if !member.identity.is_some_and(|identity| identities.contains(&identity)) {
                    continue;
                }
                if !taken.iter().any(|one| Arc::ptr_eq(&one.group, &group) && one.place == place) {
                    member.takers.fetch_add(1, Ordering::AcqRel);
                    taken.push(SocketClaim { group: Arc::clone(&group), place });
                }
                member.queue.order(Order::Report(report.part()));
            }
        }
    }

    /// Returns the sockets that wait for a worker.
    pub fn take(&self, worker: usize) -> Vec<DatagramListening> {
        self.lock().waiting.extract_if(.., |one| one.worker() == worker).collect()
    }

    /// Returns the open sockets.
    pub fn open(&self) -> Vec<Arc<OpenDatagrams>> {
        self.lock().open.clone()
    }

    /// Returns the open sockets of an address, in the order of their group.
    pub fn at(&self, frontend: usize, bind: usize) -> Vec<Arc<OpenDatagrams>> {
        let holdings = self.lock();
        holdings.open.iter().filter(|one| one.owner() == BindPlace { frontend, bind }).cloned().collect()
    }

    /// Assigns addresses to other frontends, all at once. Their connections go on; those that begin from now on are the new
    /// frontends'.
    pub fn relocate(&self, moves: &[Relocation]) {
        let holdings = self.lock();
        let groups = holdings.open.iter().filter_map(|one| {
            let to = moves.iter().find(|one_move| one_move.from == one.owner())?.to;
            Some((Arc::clone(&one.group), to))
        });
        // An address may move to the place of another one that moves as well.
        let groups: Vec<_> = groups.collect();
        for (group, to) in groups {
            group.owner.store(to.packed(), Ordering::Release);
        }
    }

    /// Marks an address as closed. Its workers close the sockets once they are woken.
    pub fn close(&self, frontend: usize, bind: usize) {
        let mut holdings = self.lock();
        holdings.waiting.retain(|one| one.group.owner() != BindPlace { frontend, bind });
        holdings.open.retain(|one| {
            let is_closed = one.owner() == BindPlace { frontend, bind };
            if is_closed {
                one.group.is_closed.store(true, Ordering::Release);
            }
            !is_closed
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use rt::net::BindOptions;

    use super::*;

    fn listening(bind: usize, workers: &[usize]) -> Vec<DatagramListening> {
        let address = "127.0.0.1:0".parse().unwrap();
        let group = DatagramSocket::bind_group(address, &BindOptions::default(), workers.len()).unwrap();
        SocketGroup::listening(3, bind, workers, group).collect()
    }

    fn places(found: &[DatagramListening]) -> Vec<(usize, usize)> {
        found.iter().map(|one| (one.group.owner().bind, one.place)).collect()
    }

    #[test]
    fn each_worker_takes_its_sockets_once() {
        let sockets = DatagramSockets::default();
        sockets.add(listening(0, &[1, 0]));
        sockets.add(listening(1, &[0]));
        assert_eq!(places(&sockets.take(0)), [(0, 1), (1, 0)]);
        assert_eq!(places(&sockets.take(1)), [(0, 0)]);
        assert_eq!((sockets.take(0).len(), sockets.take(1).len(), sockets.open().len()), (0, 0, 3));
    }

    #[test]
    fn copies_keep_the_order_of_the_group() {
        let sockets = DatagramSockets::default();
        let (first, second) = (listening(0, &[0, 1]), listening(1, &[0]));
        let address = first[0].socket.local_address();
        assert_ne!(second[0].socket.local_address(), address);
        sockets.add(first);
        sockets.add(second);
        let copies = sockets.at(3, 0);
        assert_eq!(copies.len(), 2);
        for copy in &copies {
            let copy = UdpSocket::from(copy.as_descriptor().unwrap().try_clone_to_owned().unwrap());
            assert_eq!(copy.local_addr().unwrap(), address);
        }
        assert_eq!((sockets.at(3, 1).len(), sockets.at(3, 2).len(), sockets.at(0, 0).len()), (1, 0, 0));
    }

    /// A claim that is dropped leaves the socket to the younger process.
    #[test]
    fn a_socket_is_received_from_again_once_its_claim_is_released() {
        let sockets = DatagramSockets::default();
        sockets.add(listening(0, &[0]));
        let places: Vec<_> = sockets.take(0).into_iter().map(|one| one.split().0).collect();
        let are_taken = || places.iter().map(DatagramPlace::is_taken).collect::<Vec<_>>();
        let give = || {
            let mut claims = Vec::new();
            sockets.give(&sockets.identities(), &Arc::default(), &mut claims);
            claims
        };
        let claims = give();
        assert_eq!((claims.len(), are_taken()), (1, vec![true]));
        claims.into_iter().for_each(SocketClaim::release);
        assert_eq!(are_taken(), [false]);
        drop(give());
        assert_eq!(are_taken(), [true]);
    }

    /// Two addresses change places, and each is closed under its new one.
    #[test]
    fn addresses_change_their_places_at_once() {
        let sockets = DatagramSockets::default();
        sockets.add(listening(0, &[0, 1]));
        sockets.add(listening(1, &[0]));
        let taken = sockets.take(0);
        let [from, to] = [0, 1].map(|bind| BindPlace { frontend: 3, bind });
        sockets.relocate(&[Relocation { from, to }, Relocation { from: to, to: from }]);
        assert_eq!((sockets.at(3, 0).len(), sockets.at(3, 1).len()), (1, 2));
        assert_eq!((places(&taken), places(&sockets.take(1))), (vec![(1, 0), (0, 0)], vec![(1, 1)]));
        sockets.close(3, 0);
        let closed = taken.into_iter().map(|one| one.split().0.is_closed());
        assert_eq!(closed.collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_closed_address_is_told_to_its_workers_and_not_passed_on() {
        let sockets = DatagramSockets::default();
        sockets.add(listening(0, &[0, 1]));
        sockets.add(listening(1, &[0, 1]));
        let taken = sockets.take(0);
        sockets.close(3, 0);
        assert_eq!(taken.into_iter().map(|one| one.split().0.is_closed()).collect::<Vec<_>>(), [true, false]);
        // The other worker has not taken its socket of that address.
        assert_eq!(places(&sockets.take(1)), [(1, 1)]);
        assert_eq!((sockets.at(3, 0).len(), sockets.at(3, 1).len()), (0, 2));
    }
}
