//! Opens the UDP sockets of an address, one for each worker that serves it. Must never receive a datagram.

use crate::takeover::InheritedSockets;
use config::spec::SocketKind;
use engine::datagram_sockets::{DatagramListening, SocketGroup};
use policy::program::{Bind, BindAddress};
use rt::net::{BindOptions, DatagramSocket, steer_by_connection_id};
use std::io;
use std::os::fd::BorrowedFd;

/// Maximum number of sockets of an address: a byte of the connection ids selects one.
const MOST_SOCKETS: usize = 256;

/// The sockets of an address and their workers, in the same order.
pub struct DatagramGroup {
    workers: Vec<usize>,
    sockets: Vec<DatagramSocket>,
    /// Why the kernel does not choose among them by connection ids.
    unsteered: Option<io::Error>,
}

impl DatagramGroup {
    /// Opens a socket for each worker that serves the address; those received from an older process are used first, all of them,
    /// so that their order is that of the kernel: a worker may serve several. Without
    /// `SO_REUSEPORT`, and for an inherited descriptor, there is one socket, which the first of the workers serves.
    ///
    /// # Errors
    /// From the socket; `InvalidInput` if the address is none of UDP.
    pub fn open(
        bind: &Bind,
        options: &BindOptions,
        threads: u32,
        inherited: &mut InheritedSockets,
    ) -> io::Result<Self> {
        let mut workers: Vec<usize> = match &bind.listening.threads {
            None => (0..threads.max(1) as usize).collect(),
            Some(chosen) => chosen.to_vec(),
        };
        let sockets = match &bind.address {
            BindAddress::Descriptor { fd, kind: SocketKind::Quic | SocketKind::Datagram, .. } => {
                workers.truncate(1);
                vec![DatagramSocket::inherit(*fd)?]
            }
            BindAddress::Quic(address) | BindAddress::Udp(address) => {
                if !options.reuse_port {
                    workers.truncate(1);
                }
                let mut sockets = inherited.datagrams(*address, options, MOST_SOCKETS)?;
                let missing = workers.len().saturating_sub(sockets.len());
                sockets.extend(match options.reuse_port {
                    true => DatagramSocket::bind_group(*address, options, missing)?,
                    false if missing > 0 => vec![DatagramSocket::bind(*address, options)?],
                    false => Vec::new(),
                });
                sockets
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let is_quic = bind.listening.quic.is_some();
        if !is_quic {
            sockets.iter().try_for_each(DatagramSocket::allow_fragments)?;
        }
        // A kernel that cannot steer distributes by addresses; the workers pass stray datagrams on.
        let unsteered = if is_quic && sockets.len() > 1 { steer_by_connection_id(&sockets).err() } else { None };
        let workers = workers.iter().cycle().copied().take(sockets.len()).collect();
        Ok(Self { workers, sockets, unsteered })
    }

    /// Returns the descriptors, in order.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.iter().filter_map(DatagramSocket::as_descriptor).collect()
    }

    /// Returns the sockets with their place in the configuration: the indexes of the frontend and of the address.
    pub fn listen(self, frontend: usize, bind: usize) -> impl Iterator<Item = DatagramListening> {
        SocketGroup::listening(frontend, bind, &self.workers, self.sockets)
    }

    /// Returns why the kernel does not choose among the sockets by connection ids.
    pub fn unsteered(&self) -> Option<&io::Error> {
        self.unsteered.as_ref()
    }
}
