//! Sends several messages of a UDP socket with one system call, each with a destination, a source and ECN bits of its
//! own, and of one or more datagrams.
//!
//! Nothing here may decide which datagrams are sent together.

use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

use super::address::RawAddress;
use super::batch::UDP_SEGMENT;
use super::control_data::ControlData;
use crate::address::Address;

/// Maximum number of messages of a call.
pub(crate) const MESSAGES: usize = 32;

/// How the messages of a socket name their destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The socket is one of IPv4.
    Inet4,
    /// The socket is one of IPv6: IPv4 destinations are mapped.
    Inet6,
    /// The socket is connected: not at all.
    Connected,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingMessage<'a> {
    pub(crate) destination: SocketAddr,
    pub(crate) source: Option<IpAddr>,
    pub(crate) ecn: u8,
    pub(crate) bytes: &'a [u8],
    /// Length of each datagram, except of the last one; `None`: the bytes are one datagram.
    pub(crate) segment: Option<u16>,
}

/// A message as the kernel reads it.
struct Part {
    address: RawAddress,
    control: ControlData,
    slice: libc::iovec,
}

impl OutgoingMessage<'_> {
    /// Whether it needs no control data.
    fn is_plain(&self) -> bool {
        self.source.is_none() && self.ecn == 0 && self.segment.is_none()
    }

    /// Returns the destination as a socket names it.
    fn named(&self, naming: Naming) -> SocketAddr {
        let (ip, port) = (self.destination.ip().to_canonical(), self.destination.port());
        // An IPv6 socket has IPv4 peers under mapped addresses.
        match (ip, naming == Naming::Inet6) {
            (IpAddr::V4(v4), true) => SocketAddr::new(v4.to_ipv6_mapped().into(), port),
            (IpAddr::V4(_), false) => SocketAddr::new(ip, port),
            (IpAddr::V6(_), _) => self.destination,
        }
    }
}

impl Part {
    fn of(message: &OutgoingMessage<'_>, naming: Naming) -> io::Result<Part> {
        let destination = message.named(naming);
        let mut control = ControlData::new();
        if let Some(source) = message.source {
            control.push_source(source);
        }
        if message.ecn != 0 {
            control.push_ecn(message.ecn, message.destination.ip().to_canonical().is_ipv4());
        }
        if let Some(length) = message.segment {
            control.push(libc::IPPROTO_UDP, UDP_SEGMENT, &length.to_ne_bytes());
        }
        let bytes = message.bytes;
        let slice = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        Ok(Part { address: RawAddress::encode(&Address::Inet(destination))?, control, slice })
    }
}

/// Sends the first of `messages`, up to [`MESSAGES`]; returns how many the kernel accepted, `None` if it is full.
///
/// # Errors
/// From the kernel, about the first message.
pub(crate) fn send<'a>(
    fd: RawFd,
    naming: Naming,
    mut messages: impl Iterator<Item = OutgoingMessage<'a>>,
) -> io::Result<Option<usize>> {
    let (first, second) = (messages.next(), messages.next());
    if let (Some(message), None) = (&first, &second)
        && message.is_plain()
    {
        return send_one(fd, naming, message);
    }
    let messages = first.into_iter().chain(second).chain(messages);
    let mut parts = [const { MaybeUninit::<Part>::uninit() }; MESSAGES];
    let mut heads = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MESSAGES];
    let mut count = 0;
    for ((message, part), head) in messages.zip(&mut parts).zip(&mut heads) {
        let part = part.write(Part::of(&message, naming)?);
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let mut entry: libc::mmsghdr = unsafe { mem::zeroed() };
        if naming != Naming::Connected {
            entry.msg_hdr.msg_name = part.address.storage_pointer();
            entry.msg_hdr.msg_namelen = part.address.length;
        }
        entry.msg_hdr.msg_iov = &raw mut part.slice;
        entry.msg_hdr.msg_iovlen = 1;
        let control = part.control.bytes();
        if !control.is_empty() {
            entry.msg_hdr.msg_control = control.as_ptr().cast_mut().cast();
            entry.msg_hdr.msg_controllen = control.len() as _;
        }
        head.write(entry);
        count += 1;
    }
    let (first, flags) = (heads.as_mut_ptr().cast(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
    // SAFETY: the first `count` heads are written, and each points to a name, a slice and control data that are valid for
    // the call. The kernel only reads from them, and writes the numbers of bytes sent into the heads.
    super::attempt(|| unsafe { super::calls::sendmmsg(fd, first, count, flags) })
}

/// Sends one datagram without control data, which costs the kernel less.
fn send_one(fd: RawFd, naming: Naming, message: &OutgoingMessage<'_>) -> io::Result<Option<usize>> {
    let (bytes, flags) = (message.bytes, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
    let (first, length) = (bytes.as_ptr().cast(), bytes.len());
    let sent = if naming == Naming::Connected {
        // SAFETY: pointer and length describe `bytes`.
        super::attempt(|| unsafe { super::calls::send(fd, first, length, flags) })
    } else {
        let name = RawAddress::encode(&Address::Inet(message.named(naming)))?;
        // SAFETY: pointers and lengths describe `bytes` and `name`.
        super::attempt(|| unsafe { super::calls::sendto(fd, first, length, flags, name.pointer(), name.length) })
    };
    Ok(sent?.map(|_| 1))
}
