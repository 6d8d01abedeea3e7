//! Socket calls. All sockets are non-blocking and closed on exec.

use std::io::{self, IoSlice};
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::address::RawAddress;
use super::{attempt, calls, check};
use crate::address::Address;

/// Maximum number of accepted connections that failed already (reset in the backlog) to skip before an error is
/// returned.
const ACCEPT_ATTEMPTS: usize = 8;

/// Creates a socket.
pub(crate) fn create(family: i32, kind: i32) -> io::Result<OwnedFd> {
    create_for(family, kind, 0)
}

/// Creates a stream socket: MPTCP if requested and supported by the kernel.
pub(crate) fn create_stream(family: i32, multipath: bool) -> io::Result<OwnedFd> {
    let by_mptcp = multipath.then(|| create_for(family, libc::SOCK_STREAM, libc::IPPROTO_MPTCP));
    by_mptcp.and_then(Result::ok).map_or_else(|| create(family, libc::SOCK_STREAM), Ok)
}

fn create_for(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(family, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the address family of an address.
pub(crate) fn family(address: &Address) -> i32 {
    match address {
        Address::Inet(address) if address.is_ipv4() => libc::AF_INET,
        Address::Inet(_) => libc::AF_INET6,
        Address::Unix(_) | Address::Abstract(_) | Address::Unnamed | Address::Carrier(_) => libc::AF_UNIX,
    }
}

pub(crate) fn bind(fd: &OwnedFd, address: &Address) -> io::Result<()> {
    let raw = RawAddress::encode(address)?;
    // SAFETY: pointer and length describe `raw`.
    check(unsafe { libc::bind(fd.as_raw_fd(), raw.pointer(), raw.length) }).map(drop)
}

pub(crate) fn listen(fd: &OwnedFd, backlog: i32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(drop)
}

/// Starts connecting; `false` if it continues in the background.
pub(crate) fn connect(fd: &OwnedFd, address: &Address) -> io::Result<bool> {
    connect_number(fd.as_raw_fd(), address)
}

/// Like [`connect`], by the descriptor's number.
pub(crate) fn connect_number(fd: RawFd, address: &Address) -> io::Result<bool> {
    let raw = RawAddress::encode(address)?;
    loop {
        // SAFETY: pointer and length describe `raw`.
        match check(unsafe { libc::connect(fd, raw.pointer(), raw.length) }) {
            Ok(_) => return Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINPROGRESS) => return Ok(false),
                Some(libc::EINTR) => {}
                _ => return Err(error),
            },
        }
    }
}

/// Whether the connection started by [`connect`] is established; takes and returns the error if it has failed.
pub(crate) fn has_connected(fd: &OwnedFd, address: &Address) -> io::Result<bool> {
    let raw = RawAddress::encode(address)?;
    // SAFETY: pointer and length describe `raw`.
    match check(unsafe { libc::connect(fd.as_raw_fd(), raw.pointer(), raw.length) }) {
        Ok(_) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EISCONN) => Ok(true),
            Some(libc::EALREADY | libc::EINTR) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Makes closing reset the connection instead of ending it in order.
pub(crate) fn set_linger_zero(fd: RawFd) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, libc::linger { l_onoff: 1, l_linger: 0 })
}

/// Reverts [`set_linger_zero`].
pub(crate) fn clear_linger(fd: RawFd) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, libc::linger { l_onoff: 0, l_linger: 0 })
}

/// Reverts [`listen`] and [`connect`]: the socket stays bound to its port, if it was.
pub(crate) fn disconnect(fd: RawFd) -> io::Result<()> {
    if crate::calls::are_named() {
        // Preloaded libraries support it rarely, and some complain.
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
    // SAFETY: pointer and length describe `nowhere`.
    check(unsafe { libc::connect(fd, &nowhere, mem::size_of_val(&nowhere) as libc::socklen_t) }).map(drop)
}

/// Takes a connection out of the backlog. Connections that were reset while they waited there are skipped.
pub(crate) fn accept(fd: RawFd) -> io::Result<Option<(OwnedFd, Address)>> {
    let mut attempts = 0;
    loop {
        let mut raw = RawAddress::room();
        let mut length = raw.length;
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: the pointers are valid for the call and `length` contains the space at the first.
        let accepted = unsafe { calls::accept4(fd, raw.pointer_mut(), &raw mut length, flags) };
        raw.length = length;
        if accepted >= 0 {
            // SAFETY: the descriptor is new and has no other owner.
            return Ok(Some((unsafe { OwnedFd::from_raw_fd(accepted as RawFd) }, raw.decode())));
        }
        let error = io::Error::last_os_error();
        attempts += 1;
        match error.raw_os_error() {
            Some(libc::EAGAIN) => return Ok(None),
            Some(libc::EINTR) => {}
            Some(libc::ECONNABORTED | libc::EPROTO | libc::EPERM) if attempts < ACCEPT_ATTEMPTS => {}
            _ => return Err(error),
        }
    }
}

/// Receives into `place`; 0 at the end of the stream.
#[inline]
pub(crate) fn receive(fd: RawFd, place: &mut [u8], flags: i32) -> io::Result<Option<usize>> {
    // SAFETY: pointer and length describe `place`, which is not used elsewhere during the call.
    attempt(|| unsafe { calls::recv(fd, place.as_mut_ptr().cast(), place.len(), flags) })
}

/// Discards up to `most` bytes that a TCP socket has received, without copying them; 0 at the end of the stream.
#[inline]
pub(crate) fn discard(fd: RawFd, most: usize) -> io::Result<Option<usize>> {
    if crate::calls::are_named() {
        // A preloaded library may not know that without space.
        let mut space = [0; 4096];
        let most = most.min(space.len());
        return receive(fd, &mut space[..most], 0);
    }
    // SAFETY: with MSG_TRUNC, TCP copies no bytes: no space is needed for them.
    attempt(|| unsafe { calls::recv(fd, std::ptr::null_mut(), most, libc::MSG_TRUNC) })
}

#[inline]
pub(crate) fn send(fd: RawFd, bytes: &[u8], more: bool) -> io::Result<Option<usize>> {
    let flags = send_flags(more);
    // SAFETY: pointer and length describe `bytes`.
    attempt(|| unsafe { calls::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Sends several slices with one call.
#[inline]
pub(crate) fn send_slices(fd: RawFd, slices: &[IoSlice<'_>], more: bool) -> io::Result<Option<usize>> {
    let message = message_of(slices, None);
    let flags = send_flags(more);
    // SAFETY: the message points to `slices`, which are valid for the call; the kernel only reads from them.
    attempt(|| unsafe { calls::sendmsg(fd, &raw const message, flags) })
}

fn send_flags(more: bool) -> i32 {
    libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 }
}

/// Maximum number of slices per call.
pub(crate) const MOST_SLICES: usize = libc::UIO_MAXIOV as usize;

pub(super) fn message_of(slices: &[IoSlice<'_>], to: Option<&RawAddress>) -> libc::msghdr {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    // `IoSlice` has the layout of `iovec`, as its documentation promises.
    message.msg_iov = slices.as_ptr().cast_mut().cast();
    message.msg_iovlen = slices.len().min(MOST_SLICES) as _;
    if let Some(to) = to {
        message.msg_name = to.pointer().cast_mut().cast();
        message.msg_namelen = to.length;
    }
    message
}

/// Sends one datagram, to `to` or to the connected peer.
pub(crate) fn send_datagram(fd: RawFd, slices: &[IoSlice<'_>], to: Option<&RawAddress>) -> io::Result<Option<usize>> {
    let message = message_of(slices, to);
    // SAFETY: the message points to `slices` and `to`, which are valid for the call; the kernel only reads from them.
    attempt(|| unsafe { libc::sendmsg(fd, &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) })
}

/// Receives one datagram into `place` and returns its sender.
pub(crate) fn receive_datagram(fd: RawFd, place: &mut [u8]) -> io::Result<Option<(usize, Address)>> {
    let mut raw = RawAddress::room();
    let mut length = raw.length;
    let pointer = raw.pointer_mut();
    // SAFETY: the pointers are valid for the call, and their lengths contain the space at each.
    let received =
        attempt(|| unsafe { libc::recvfrom(fd, place.as_mut_ptr().cast(), place.len(), 0, pointer, &mut length) })?;
    raw.length = length;
    Ok(received.map(|count| (count, raw.decode())))
}

pub(crate) fn shutdown_write(fd: RawFd) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::shutdown(fd, libc::SHUT_WR) }).map(drop)
}

pub(crate) fn local_address(fd: RawFd) -> io::Result<Address> {
    let mut raw = RawAddress::room();
    let mut length = raw.length;
    // SAFETY: the pointers are valid for the call and `length` contains the space at the first.
    check(unsafe { libc::getsockname(fd, raw.pointer_mut(), &mut length) })?;
    raw.length = length;
    Ok(raw.decode())
}

pub(crate) fn peer_address(fd: RawFd) -> io::Result<Address> {
    let mut raw = RawAddress::room();
    let mut length = raw.length;
    // SAFETY: as above.
    check(unsafe { libc::getpeername(fd, raw.pointer_mut(), &mut length) })?;
    raw.length = length;
    Ok(raw.decode())
}

/// Sets a socket option to a plain structure, mostly an `int`.
pub(crate) fn set_option<T: Copy>(fd: RawFd, level: i32, name: i32, value: T) -> io::Result<()> {
    let pointer = (&raw const value).cast();
    // SAFETY: pointer and length describe `value`.
    check(unsafe { libc::setsockopt(fd, level, name, pointer, mem::size_of::<T>() as libc::socklen_t) }).map(drop)
}

/// Sets a socket option to bytes.
pub(crate) fn set_option_bytes(fd: RawFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: pointer and length describe `value`.
    check(unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), length) }).map(drop)
}

/// Reads a socket option of type `int`.
pub(crate) fn option(fd: RawFd, level: i32, name: i32) -> io::Result<i32> {
    let mut value: libc::c_int = 0;
    let mut length = mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointers are valid for the call and `length` contains the space at the first.
    check(unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &mut length) })?;
    Ok(value)
}

/// Reads a socket option into `place`; returns the number of bytes that the kernel wrote.
pub(crate) fn option_bytes(fd: RawFd, level: i32, name: i32, place: &mut [u8]) -> io::Result<usize> {
    let mut length = place.len() as libc::socklen_t;
    // SAFETY: pointer and length describe `place`, which is not used elsewhere during the call.
    check(unsafe { libc::getsockopt(fd, level, name, place.as_mut_ptr().cast(), &mut length) })?;
    Ok((length as usize).min(place.len()))
}

/// Returns the free space of the send buffer in bytes: its limit minus the queued and in-flight bytes, as `SO_MEMINFO`
/// counts them (socket(7): the kernel's own overhead is part of both).
pub(crate) fn send_capacity(fd: RawFd) -> io::Result<usize> {
    const IN_FLIGHT: usize = 2;
    const LIMIT: usize = 3;
    const QUEUED: usize = 5;
    let variables = memory_variables(fd)?;
    Ok(variables[LIMIT].saturating_sub(variables[IN_FLIGHT].max(variables[QUEUED])) as usize)
}

/// Returns the number of received packets that the kernel dropped because the receive buffer was full.
pub(crate) fn drops(fd: RawFd) -> io::Result<u64> {
    const DROPS: usize = 8;
    Ok(u64::from(memory_variables(fd)?[DROPS]))
}

/// The kernel's `SK_MEMINFO_*`.
const MEMORY_VARIABLES: usize = 9;

fn memory_variables(fd: RawFd) -> io::Result<[u32; MEMORY_VARIABLES]> {
    let mut bytes = [0; MEMORY_VARIABLES * 4];
    option_bytes(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut bytes)?;
    let mut variables = [0; MEMORY_VARIABLES];
    for (variable, bytes) in variables.iter_mut().zip(bytes.chunks_exact(4)) {
        *variable = bytes.try_into().map_or(0, u32::from_ne_bytes);
    }
    Ok(variables)
}

/// Returns the bytes of a TCP connection that the kernel has not sent yet, because of the peer's window or of
/// congestion (`SIOCOUTQNSD`).
pub(crate) fn unsent(fd: RawFd) -> io::Result<usize> {
    /// From the kernel's `linux/sockios.h`.
    const SIOCOUTQNSD: libc::c_ulong = 0x894B;
    queued(fd, SIOCOUTQNSD)
}

/// Returns the bytes of a TCP connection that the peer's kernel has not acknowledged yet, including the FIN
/// (`SIOCOUTQ`).
pub(crate) fn unacknowledged(fd: RawFd) -> io::Result<usize> {
    queued(fd, libc::TIOCOUTQ as libc::c_ulong)
}

fn queued(fd: RawFd, request: libc::c_ulong) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: both requests write one `int`, which `count` is.
    check(unsafe { libc::ioctl(fd, request as _, &raw mut count) })?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Returns the destination of a connection before the packet filter redirected it. The kernel has separate options for
/// IPv4 and IPv6.
pub(crate) fn original_destination(fd: RawFd, v6: bool) -> io::Result<Address> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IP6T_SO_ORIGINAL_DST) } else { (libc::IPPROTO_IP, libc::SO_ORIGINAL_DST) };
    let mut raw = RawAddress::room();
    let mut length = raw.length;
    // SAFETY: the pointers are valid for the call and `length` contains the space at the first.
    check(unsafe { libc::getsockopt(fd, level, name, raw.storage_pointer(), &mut length) })?;
    raw.length = length;
    Ok(raw.decode())
}

/// The argument of `TCP_MD5SIG_EXT`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Md5Signature {
    address: libc::sockaddr_storage,
    flags: u8,
    prefix: u8,
    key_length: u16,
    interface: i32,
    key: [u8; LONGEST_MD5_KEY],
}

/// Maximum size of a key for TCP's MD5 signatures (`TCP_MD5SIG_MAXKEYLEN`).
const LONGEST_MD5_KEY: usize = 80;
/// Flag: the key applies to all addresses with the given prefix.
const MD5_PREFIX: u8 = 1;

/// Signs segments to and from every peer of the socket's family whose address begins with `prefix` bits of `peer`.
pub(crate) fn set_md5_key(fd: RawFd, peer: &Address, prefix: u8, key: &[u8]) -> io::Result<()> {
    let mut raw = RawAddress::encode(peer)?;
    // SAFETY: the storage is as large as the type, aligned for it, and initialised.
    let address = unsafe { raw.storage_pointer().cast::<libc::sockaddr_storage>().read() };
    let mut signature = Md5Signature {
        address,
        flags: MD5_PREFIX,
        prefix,
        key_length: key.len() as u16,
        interface: 0,
        key: [0; LONGEST_MD5_KEY],
    };
    let room = signature.key.get_mut(..key.len()).ok_or(io::ErrorKind::InvalidInput)?;
    room.copy_from_slice(key);
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_MD5SIG_EXT, signature)
}

/// Returns the network device that a socket is bound to, if any.
pub(crate) fn interface(fd: RawFd) -> Option<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: the pointers are valid for the call and `length` contains the space at the first.
    let result = check(unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name.as_mut_ptr().cast(), &mut length)
    });
    let written = name.get(..length as usize).filter(|_| result.is_ok())?;
    let end = written.iter().position(|byte| *byte == 0).unwrap_or(written.len());
    std::str::from_utf8(&written[..end]).ok().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Takes the pending error of a socket.
pub(crate) fn take_error(fd: RawFd) -> Option<io::Error> {
    match option(fd, libc::SOL_SOCKET, libc::SO_ERROR) {
        Ok(0) => None,
        Ok(code) => Some(io::Error::from_raw_os_error(code)),
        Err(error) => Some(error),
    }
}
