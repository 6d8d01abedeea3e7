//! TEMPORARY until branch udp is merged.
use super::listener::bind_datagram;
use super::{Address, BindOptions, Namespace};
use crate::{process, sys};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// A UDP socket.
#[derive(Debug)]
pub struct DatagramSocket {
    fd: OwnedFd,
    local: SocketAddr,
}
impl DatagramSocket {
    /// Opens.
    pub fn bind(address: SocketAddr, options: &BindOptions) -> io::Result<DatagramSocket> {
        let place = Address::Inet(address);
        let fd = match &options.namespace {
            Some(name) => Namespace::open(name)?.run(|| bind_datagram(&place, options))??,
            None => bind_datagram(&place, options)?,
        };
        DatagramSocket::try_from(fd)
    }
    /// Opens a group.
    pub fn bind_group(address: SocketAddr, options: &BindOptions, count: usize) -> io::Result<Vec<DatagramSocket>> {
        let shared = BindOptions { reuse_port: true, ..options.clone() };
        let mut group: Vec<DatagramSocket> = Vec::with_capacity(count);
        for _ in 0..count {
            let at = group.first().map_or(address, DatagramSocket::local_address);
            group.push(DatagramSocket::bind(at, &shared)?);
        }
        Ok(group)
    }
    /// Inherits.
    pub fn inherit(fd: RawFd) -> io::Result<DatagramSocket> {
        let kind = sys::socket::option(fd, libc::SOL_SOCKET, libc::SO_TYPE)?;
        if kind != libc::SOCK_DGRAM {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a UDP socket"));
        }
        DatagramSocket::try_from(process::take(fd)?)
    }
    /// Address.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }
    /// Descriptor.
    pub fn as_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }
}
impl TryFrom<OwnedFd> for DatagramSocket {
    type Error = io::Error;
    fn try_from(fd: OwnedFd) -> io::Result<DatagramSocket> {
        sys::set_nonblocking(&fd)?;
        let local = sys::socket::local_address(fd.as_raw_fd())?.inet();
        let local = local.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(DatagramSocket { fd, local })
    }
}
/// Steers.
pub fn steer_by_connection_id(_: &[DatagramSocket]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
