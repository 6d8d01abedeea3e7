//! Opening UDP sockets: their options and addresses. Must never send or receive.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::DatagramSocket;
use super::kept;
use super::transmit::MOST_SEGMENTS;
use crate::net::set_up::{bind_to_interface, saturate, set_transparent};
use crate::net::{Address, BindOptions, ConnectOptions, Namespace, Socket};
use crate::sim::{self, SimSocket};
use crate::sys::control_data::UDP_GRO;
use crate::sys::socket::{self as calls, set_option};
use crate::{process, sys};

impl DatagramSocket {
    /// Opens a socket at an address. Of the options those apply that are not about connections: `v6only`, `reuse_port`,
    /// `transparent`, `free_bind`, `namespace`, `interface`, and the sizes of buffers.
    ///
    /// # Errors
    /// From the socket (`AddrInUse`, `PermissionDenied`, …).
    pub fn bind(address: SocketAddr, options: &BindOptions) -> io::Result<DatagramSocket> {
        if let Some(world) = sim::current_world() {
            let socket = SimSocket::udp(&world, address, options.reuse_port, options.v6only == Some(true))?;
            return DatagramSocket::of(Socket::Sim(Box::new(socket)));
        }
        let fd = match &options.namespace {
            Some(name) => Namespace::open(name)?.run(|| open(address, options))??,
            None => open(address, options)?,
        };
        DatagramSocket::of(Socket::Os(fd.into()))
    }

    /// Opens a socket for one peer: only its datagrams are received, and errors that it reports are returned. The destinations
    /// of transmits are not read. Of the options those apply that are not about streams: `source`, `transparent`,
    /// `interface`, `namespace`, and the sizes of buffers. `most_segments` is that of another socket of this host
    /// ([`DatagramSocket::most_segments`]), since to ask the kernel costs a system call.
    ///
    /// # Errors
    /// From the socket (`AddrInUse`, `PermissionDenied`, …).
    pub fn connect(peer: SocketAddr, options: &ConnectOptions, most_segments: usize) -> io::Result<DatagramSocket> {
        let source = options.source.as_ref().and_then(Address::inet);
        let any: IpAddr = if peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let local = source.unwrap_or(SocketAddr::new(any, 0));
        if let Some(world) = sim::current_world() {
            let socket = SimSocket::udp(&world, local, false, false)?;
            socket.connect_datagram(&Address::Inet(peer))?;
            return Ok(DatagramSocket::connected(Socket::Sim(Box::new(socket)), local, most_segments));
        }
        let is_reusable = is_plain(options);
        if is_reusable && let Some(kept) = kept::take(peer.is_ipv6()) {
            let number = kept.descriptor.as_raw_fd();
            let socket = DatagramSocket::connected(Socket::Os(kept.descriptor), local, most_segments);
            let socket = socket.reusable(kept.source);
            calls::connect_number(number, &Address::Inet(peer))?;
            return Ok(socket);
        }
        let open = || open_connected(peer, source, options);
        let fd = match &options.namespace {
            Some(namespace) => namespace.within(open)?,
            None => open()?,
        };
        let socket = DatagramSocket::connected(Socket::Os(fd.into()), local, most_segments);
        Ok(if is_reusable { socket.reusable(None) } else { socket })
    }

    /// Lets the system fragment datagrams that are longer than the path permits. Otherwise they are lost.
    ///
    /// # Errors
    /// From the socket.
    pub fn allow_fragments(&self) -> io::Result<()> {
        let Socket::Os(fd) = &*self.socket else { return Ok(()) };
        if self.local_address().is_ipv6() {
            let value = libc::IPV6_PMTUDISC_WANT;
            set_option(fd.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, value)?;
        }
        set_option(fd.as_raw_fd(), libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_WANT)
    }

    /// Makes the kernel report no ECN bits of received datagrams, and no destination addresses if the socket has only one.
    pub fn forgo_information(&self) {
        let Socket::Os(fd) = &*self.socket else { return };
        let address = self.local_address();
        let mut options = vec![(libc::IPPROTO_IP, libc::IP_RECVTOS)];
        if address.is_ipv6() {
            options.push((libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS));
        }
        if !address.ip().is_unspecified() {
            options.push(match address.is_ipv6() {
                true => (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
                false => (libc::IPPROTO_IP, libc::IP_PKTINFO),
            });
        }
        for (level, name) in options {
            // If it is refused, more is reported.
            let _ = set_option(fd.as_raw_fd(), level, name, 0);
        }
    }

    /// Opens `count` sockets at the same address and port, which share the datagrams that arrive there. For port 0 one
    /// unused port is chosen for all.
    ///
    /// # Errors
    /// As for [`DatagramSocket::bind`].
    pub fn bind_group(address: SocketAddr, options: &BindOptions, count: usize) -> io::Result<Vec<DatagramSocket>> {
        let shared = BindOptions { reuse_port: true, ..options.clone() };
        let mut group: Vec<DatagramSocket> = Vec::with_capacity(count);
        for _ in 0..count {
            let at = group.first().map_or(address, DatagramSocket::local_address);
            group.push(DatagramSocket::bind(at, &shared)?);
        }
        Ok(group)
    }

    /// Takes over an inherited descriptor.
    ///
    /// # Errors
    /// `InvalidInput` if it is not a UDP socket, `ResourceBusy` if it was already taken over, otherwise from the socket.
    pub fn inherit(fd: RawFd) -> io::Result<DatagramSocket> {
        check(fd)?;
        DatagramSocket::try_from(process::take(fd)?)
    }

    fn of(socket: Socket) -> io::Result<DatagramSocket> {
        let Some(local) = socket.local_address()?.inet() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an internet socket"));
        };
        let most_segments = match &socket {
            Socket::Os(fd) if !sys::batch::knows_segments(fd) => 1,
            _ => MOST_SEGMENTS,
        };
        Ok(DatagramSocket::new(socket, local, most_segments))
    }
}

/// Takes over a bound UDP socket that another process has opened.
impl TryFrom<OwnedFd> for DatagramSocket {
    type Error = io::Error;

    fn try_from(fd: OwnedFd) -> io::Result<DatagramSocket> {
        let is_v6 = check(fd.as_raw_fd())?;
        sys::set_nonblocking(&fd)?;
        request_information(&fd, is_v6)?;
        DatagramSocket::of(Socket::Os(fd.into()))
    }
}

/// Whether a UDP socket is one of IPv6.
///
/// # Errors
/// `InvalidInput`: it is another kind of socket; otherwise from the system.
fn check(fd: RawFd) -> io::Result<bool> {
    let kind = calls::option(fd, libc::SOL_SOCKET, libc::SO_TYPE)?;
    let family = calls::option(fd, libc::SOL_SOCKET, libc::SO_DOMAIN)?;
    match (kind, family) {
        (libc::SOCK_DGRAM, libc::AF_INET) => Ok(false),
        (libc::SOCK_DGRAM, libc::AF_INET6) => Ok(true),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a UDP socket")),
    }
}

fn open(address: SocketAddr, options: &BindOptions) -> io::Result<OwnedFd> {
    let (place, is_v6) = (Address::Inet(address), address.is_ipv6());
    let fd = calls::create(calls::family(&place), libc::SOCK_DGRAM)?;
    let set = |level, name, value: i32| set_option(fd.as_raw_fd(), level, name, value);
    for (value, level, name) in [
        (options.v6only.filter(|_| is_v6).map(i32::from), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
        (options.free_bind.then_some(1), libc::IPPROTO_IP, libc::IP_FREEBIND),
        (options.send_buffer.map(saturate), libc::SOL_SOCKET, libc::SO_SNDBUF),
        (options.receive_buffer.map(saturate), libc::SOL_SOCKET, libc::SO_RCVBUF),
    ] {
        if let Some(value) = value {
            set(level, name, value)?;
        }
    }
    if let Some(interface) = &options.interface {
        bind_to_interface(&fd, interface)?;
    }
    if options.transparent {
        set_transparent(&fd, is_v6)?;
    }
    request_information(&fd, is_v6)?;
    // The kernel's choice of a port may fall on one that is shared by other sockets, unless the socket is bound alone.
    let is_chosen = address.port() == 0;
    if options.reuse_port && !is_chosen {
        set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    calls::bind(&fd, &place)?;
    if options.reuse_port && is_chosen {
        set(libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    Ok(fd)
}

/// Whether a socket with these options equals a new one once it is disconnected.
fn is_plain(options: &ConnectOptions) -> bool {
    let are_default = options.send_buffer.is_none() && options.receive_buffer.is_none();
    are_default
        && !options.transparent
        && options.source.is_none()
        && options.interface.is_none()
        && options.namespace.is_none()
}

/// Opens a socket that is connected to a peer.
fn open_connected(peer: SocketAddr, source: Option<SocketAddr>, options: &ConnectOptions) -> io::Result<OwnedFd> {
    let (place, is_v6) = (Address::Inet(peer), peer.is_ipv6());
    let fd = calls::create(calls::family(&place), libc::SOCK_DGRAM)?;
    let buffers = [(options.send_buffer, libc::SO_SNDBUF), (options.receive_buffer, libc::SO_RCVBUF)];
    for (bytes, name) in buffers {
        if let Some(bytes) = bytes {
            set_option(fd.as_raw_fd(), libc::SOL_SOCKET, name, saturate(bytes))?;
        }
    }
    if let Some(interface) = &options.interface {
        bind_to_interface(&fd, interface)?;
    }
    if options.transparent {
        set_transparent(&fd, is_v6)?;
    }
    if let Some(source) = source {
        calls::bind(&fd, &Address::Inet(source))?;
    }
    calls::connect(&fd, &place)?;
    Ok(fd)
}

/// Makes the kernel report the destination address and the ECN bits of received datagrams and join them, and never
/// fragment those that are sent. A kernel may lack all of these but the first, and ECN is optional in QUIC.
fn request_information(fd: &OwnedFd, is_v6: bool) -> io::Result<()> {
    let set = |level, name, value: i32| set_option(fd.as_raw_fd(), level, name, value);
    if is_v6 {
        set(libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        let _ = set(libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1);
        let _ = set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE);
    } else {
        set(libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
    }
    // Of IPv6 sockets as well: they may have IPv4 peers.
    let _ = set(libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
    let _ = set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE);
    let _ = set(libc::IPPROTO_UDP, UDP_GRO, 1);
    Ok(())
}
