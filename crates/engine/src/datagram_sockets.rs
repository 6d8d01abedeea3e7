//! The UDP sockets of QUIC addresses, each served by one worker: they wait here for their workers, and copies of their
//! descriptors are passed on. Must never read a datagram.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rt::net::DatagramSocket;

/// A UDP socket of a QUIC address and its place in the configuration. One worker serves it. All sockets of an address form
/// a group, in the order of the workers.
#[derive(Debug)]
pub struct DatagramListening {
    /// Index of the frontend.
    pub frontend: usize,
    /// Index of its `bind` line.
    pub bind: usize,
    /// Its index in the group.
    pub place: usize,
    /// The workers of the group's sockets.
    pub workers: Arc<[usize]>,
    pub socket: DatagramSocket,
    /// Set when the address is closed.
    pub closed: Arc<AtomicBool>,
}

impl DatagramListening {
    /// Returns the worker that serves the socket.
    pub fn worker(&self) -> usize {
        self.workers.get(self.place).copied().unwrap_or(0)
    }

    /// Returns its place and its socket.
    pub fn split(self) -> (DatagramPlace, DatagramSocket) {
        let Self { frontend, bind, socket, closed, .. } = self;
        (DatagramPlace { frontend, bind, closed }, socket)
    }
}

/// The place of a UDP socket in the configuration.
#[derive(Debug)]
pub struct DatagramPlace {
    /// Index of the frontend.
    pub frontend: usize,
    /// Index of its `bind` line.
    pub bind: usize,
    closed: Arc<AtomicBool>,
}

impl DatagramPlace {
    /// Whether the address was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// An open socket of a QUIC address, with a copy of its descriptor that can be passed to another process.
#[derive(Debug)]
pub struct OpenDatagrams {
    /// Index of the frontend.
    pub frontend: usize,
    /// Index of its `bind` line.
    pub bind: usize,
    /// `None` in a simulation, or if the descriptors were exhausted.
    descriptor: Option<OwnedFd>,
    closed: Arc<AtomicBool>,
}

impl OpenDatagrams {
    fn of(listening: &DatagramListening) -> Self {
        let DatagramListening { frontend, bind, .. } = *listening;
        let descriptor = listening.socket.as_descriptor().and_then(|fd| fd.try_clone_to_owned().ok());
        Self { frontend, bind, descriptor, closed: Arc::clone(&listening.closed) }
    }

    /// Returns the descriptor, for passing it to another process, if there is one.
    pub fn as_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }
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
}

impl DatagramSockets {
    fn lock(&self) -> MutexGuard<'_, Holdings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds sockets, which wait for their workers.
    pub fn add(&self, sockets: Vec<DatagramListening>) {
        let open: Vec<_> = sockets.iter().map(|one| Arc::new(OpenDatagrams::of(one))).collect();
        let mut holdings = self.lock();
        holdings.waiting.extend(sockets);
        holdings.open.extend(open);
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
        holdings.open.iter().filter(|one| (one.frontend, one.bind) == (frontend, bind)).cloned().collect()
    }

    /// Marks an address as closed. Its workers close the sockets once they are woken.
    pub fn close(&self, frontend: usize, bind: usize) {
        let mut holdings = self.lock();
        let is_meant = |one: &DatagramListening| (one.frontend, one.bind) == (frontend, bind);
        holdings.waiting.retain(|one| !is_meant(one));
        holdings.open.retain(|one| {
            let is_closed = (one.frontend, one.bind) == (frontend, bind);
            if is_closed {
                one.closed.store(true, Ordering::Release);
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
        let (workers, closed): (Arc<[usize]>, _) = (workers.into(), Arc::default());
        let listen = |(place, socket)| DatagramListening {
            frontend: 3,
            bind,
            place,
            workers: Arc::clone(&workers),
            socket,
            closed: Arc::clone(&closed),
        };
        group.into_iter().enumerate().map(listen).collect()
    }

    fn places(found: &[DatagramListening]) -> Vec<(usize, usize)> {
        found.iter().map(|one| (one.bind, one.place)).collect()
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
