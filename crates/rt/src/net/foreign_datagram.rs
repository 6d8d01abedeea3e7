//! UDP sockets received from another process. Must never receive a datagram.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use super::DatagramSocket;
use crate::sys;

/// A bound UDP socket received from another process.
#[derive(Debug)]
pub struct ForeignDatagrams {
    fd: OwnedFd,
    /// The address that it is bound to, from the kernel.
    pub address: SocketAddr,
    /// The network device that it is bound to, if any.
    pub interface: Option<String>,
}

impl ForeignDatagrams {
    /// Takes over a descriptor.
    ///
    /// # Errors
    /// The descriptor, if it is not a bound UDP socket.
    pub fn new(fd: OwnedFd) -> Result<ForeignDatagrams, OwnedFd> {
        let kind = sys::socket::option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TYPE);
        let address = sys::socket::local_address(fd.as_raw_fd()).ok().and_then(|address| address.inet());
        match (kind, address) {
            (Ok(libc::SOCK_DGRAM), Some(address)) if address.port() > 0 => {
                let interface = sys::socket::interface(fd.as_raw_fd());
                Ok(ForeignDatagrams { fd, address, interface })
            }
            _ => Err(fd),
        }
    }

    /// Receives from it.
    ///
    /// # Errors
    /// From the socket.
    pub fn adopt(self) -> io::Result<DatagramSocket> {
        DatagramSocket::try_from(self.fd)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn bound_udp_sockets_are_told_from_others() {
        let others: [OwnedFd; 3] = [
            TcpListener::bind("127.0.0.1:0").unwrap().into(),
            UnixDatagram::unbound().unwrap().into(),
            sys::socket::create(libc::AF_INET, libc::SOCK_DGRAM).unwrap(),
        ];
        for other in others {
            let number = other.as_raw_fd();
            assert_eq!(ForeignDatagrams::new(other).unwrap_err().as_raw_fd(), number);
        }
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(address) else { continue };
            let local = socket.local_addr().unwrap();
            let found = ForeignDatagrams::new(socket.into()).unwrap();
            assert_eq!((found.address, found.interface.as_deref()), (local, None));
            assert_eq!(found.adopt().unwrap().local_address(), local);
        }
    }
}
