//! Receives several messages of a UDP socket with one system call, each of one or more datagrams of one peer.
//!
//! Nothing here may interpret the bytes that arrived.

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::RawFd;
use std::ptr;

use super::control_data::{self, ControlInfo};

/// Maximum number of messages of a call.
pub(crate) const MESSAGES: usize = 16;
/// Space for a message in bytes: the kernel never joins more.
pub(crate) const MESSAGE_SIZE: usize = 65_536;
/// Space for the control data of a message, in words of eight bytes: destination address, ECN bits, length of datagrams.
const CONTROL_WORDS: usize = 20;

/// Space for what the kernel writes beside the bytes of the messages. Reused, since most of it is not read.
pub(crate) struct MessageHeads {
    names: [libc::sockaddr_in6; MESSAGES],
    controls: [[u64; CONTROL_WORDS]; MESSAGES],
}

impl MessageHeads {
    pub(crate) fn new() -> MessageHeads {
        // SAFETY: all bytes zero is a valid value of these plain structures.
        unsafe { mem::zeroed() }
    }
}

/// A received message; its bytes are at the beginning of its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageInfo {
    /// Index of the slot, in units of [`MESSAGE_SIZE`].
    pub(crate) slot: usize,
    pub(crate) length: usize,
    pub(crate) peer: SocketAddr,
    pub(crate) control: ControlInfo,
}

/// Receives up to [`MESSAGES`] messages into the slots of `space`, and passes each that is whole to `take`. Returns
/// their number, including those that are not; `None` if none has arrived.
///
/// # Errors
/// From the socket.
pub(crate) fn receive(
    fd: RawFd,
    space: &mut [u8],
    heads: &mut MessageHeads,
    mut take: impl FnMut(MessageInfo),
) -> io::Result<Option<usize>> {
    // SAFETY: all bytes zero is a valid value of these plain structures.
    let mut slots: [libc::iovec; MESSAGES] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut messages: [libc::mmsghdr; MESSAGES] = unsafe { mem::zeroed() };
    let mut count = 0;
    for (index, place) in space.chunks_exact_mut(MESSAGE_SIZE).take(MESSAGES).enumerate() {
        slots[index] = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
        let head = &mut messages[index].msg_hdr;
        head.msg_name = (&raw mut heads.names[index]).cast();
        head.msg_namelen = mem::size_of::<libc::sockaddr_in6>() as libc::socklen_t;
        head.msg_iov = &raw mut slots[index];
        head.msg_iovlen = 1;
        head.msg_control = (&raw mut heads.controls[index]).cast();
        head.msg_controllen = mem::size_of_val(&heads.controls[index]) as _;
        count += 1;
    }
    let (first, flags) = (messages.as_mut_ptr(), libc::MSG_DONTWAIT);
    // SAFETY: the first `count` messages point to space for a name, to a slot and to space for control data, each of the
    // given length, and none of them is used elsewhere during the call.
    let received = super::attempt(|| unsafe { super::calls::recvmmsg(fd, first, count, flags) })?;
    let Some(received) = received else { return Ok(None) };
    for (slot, message) in messages.iter().take(received).enumerate() {
        let (head, length) = (&message.msg_hdr, message.msg_len as usize);
        let is_cut = head.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0;
        if let Some(peer) = decode(&heads.names[slot], head.msg_namelen).filter(|_| !is_cut) {
            let words = &heads.controls[slot];
            let written = mem::size_of_val(words).min(head.msg_controllen as _);
            // SAFETY: the words are initialised, and `written` bytes are not more than they have.
            let control = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), written) };
            take(MessageInfo { slot, length, peer, control: control_data::read(control) });
        }
    }
    Ok(Some(received))
}

/// Receives one datagram into the first slot of `space`, without its control data; `None` if none has arrived.
///
/// # Errors
/// From the socket.
pub(crate) fn receive_one(
    fd: RawFd,
    space: &mut [u8],
    heads: &mut MessageHeads,
    take: impl FnOnce(MessageInfo),
) -> io::Result<Option<()>> {
    let name = &mut heads.names[0];
    let mut name_length = mem::size_of_val(name) as libc::socklen_t;
    let (place, length) = (space.as_mut_ptr().cast(), space.len().min(MESSAGE_SIZE));
    let pointer = ptr::from_mut(name).cast();
    // SAFETY: the pointers are to space of the given lengths, which is not used elsewhere during the call.
    let received = super::attempt(|| unsafe {
        super::calls::recvfrom(fd, place, length, libc::MSG_DONTWAIT, pointer, &raw mut name_length)
    })?;
    let Some(length) = received else { return Ok(None) };
    if let Some(peer) = decode(name, name_length) {
        take(MessageInfo { slot: 0, length, peer, control: ControlInfo::default() });
    }
    Ok(Some(()))
}

/// Decodes an internet address; an IPv4 address that is mapped into IPv6 is returned as IPv4.
pub(super) fn decode(name: &libc::sockaddr_in6, length: libc::socklen_t) -> Option<SocketAddr> {
    let (length, family) = (length as usize, libc::c_int::from(name.sin6_family));
    if family == libc::AF_INET && length >= mem::size_of::<libc::sockaddr_in>() {
        // SAFETY: an IPv4 address is shorter than an IPv6 one and has the same alignment; all bytes are initialised.
        let v4 = unsafe { ptr::from_ref(name).cast::<libc::sockaddr_in>().read() };
        let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
        return Some(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)));
    }
    if family != libc::AF_INET6 || length < mem::size_of::<libc::sockaddr_in6>() {
        return None;
    }
    let (ip, port) = (Ipv6Addr::from(name.sin6_addr.s6_addr), u16::from_be(name.sin6_port));
    match ip.to_ipv4_mapped() {
        Some(ip) => Some(SocketAddr::new(IpAddr::V4(ip), port)),
        // The flow label is of no use to a reply.
        None => Some(SocketAddrV6::new(ip, port, 0, name.sin6_scope_id).into()),
    }
}
