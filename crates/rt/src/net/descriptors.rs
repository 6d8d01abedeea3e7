//! The descriptors of the process, for callers that own none of them: the kernel's information on each, and which of
//! them the current worker watches. Must never keep a descriptor open, nor change one.

use std::io;

use super::Address;
use crate::current;
use crate::driver::Driver;
use crate::source::{Events, Readiness};
use crate::sys;

/// The kind of object that a descriptor refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorKind {
    /// A socket that accepts connections.
    Listener,
    /// A stream socket, connected or not yet.
    Stream,
    /// A datagram socket.
    Datagram,
    /// One end of a pipe.
    Pipe,
    /// A file, or another kernel object such as an epoll instance.
    Other,
}

/// The kernel's information on a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorInfo {
    pub kind: DescriptorKind,
    /// The local address of a socket.
    pub local: Option<Address>,
    /// The address of a socket's peer.
    pub peer: Option<Address>,
}

/// Returns the kernel's information on a descriptor; `None`: it is not open, or this is a simulation. Costs some system
/// calls, none of which waits.
pub fn describe_descriptor(number: i32) -> Option<DescriptorInfo> {
    if !current::with(|worker| matches!(worker.driver, Driver::Epoll(_))) {
        return None;
    }
    let mode = sys::descriptor::file_mode(number)?;
    let kind = match mode & libc::S_IFMT {
        libc::S_IFSOCK => socket_kind(number).unwrap_or(DescriptorKind::Other),
        libc::S_IFIFO => DescriptorKind::Pipe,
        _ => DescriptorKind::Other,
    };
    let is_socket = mode & libc::S_IFMT == libc::S_IFSOCK;
    let address = |of: fn(i32) -> io::Result<Address>| is_socket.then(|| of(number).ok()).flatten();
    Some(DescriptorInfo { kind, local: address(sys::socket::local_address), peer: address(sys::socket::peer_address) })
}

fn socket_kind(number: i32) -> io::Result<DescriptorKind> {
    let option = |name| sys::socket::option(number, libc::SOL_SOCKET, name);
    Ok(match option(libc::SO_TYPE)? {
        libc::SOCK_DGRAM => DescriptorKind::Datagram,
        _ if option(libc::SO_ACCEPTCONN)? != 0 => DescriptorKind::Listener,
        _ => DescriptorKind::Stream,
    })
}

/// Returns the upper bound of descriptor numbers (`RLIMIT_NOFILE`).
pub fn descriptor_limit() -> i32 {
    let limit = crate::process::descriptor_limit().map_or(1024, |(soft, _)| soft);
    i32::try_from(limit).unwrap_or(i32::MAX)
}

/// A descriptor that a worker watches, and its recorded readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedDescriptor {
    /// Its number.
    pub number: i32,
    /// Its index among the sources of the worker, for [`watched_descriptors`].
    pub place: u32,
    /// Whether a read, and a write, is worth a system call.
    pub ready: (bool, bool),
    /// Whether an event has reported it as readable, and as writable, since it was last drained.
    pub reported: (bool, bool),
    /// Whether a task waits to read, and to write.
    pub waiting: (bool, bool),
    /// The peer has closed its direction.
    pub read_closed: bool,
    /// Both directions are closed.
    pub hangup: bool,
    /// An error is pending.
    pub error: bool,
}

/// Returns the descriptors that the current worker watches, starting at an index, after examining at most `most`
/// indices; and the index to continue from. In a simulation the numbers are those of simulated sockets.
pub fn watched_descriptors(from: u32, most: u32) -> (Vec<WatchedDescriptor>, Option<u32>) {
    current::with(|worker| {
        let sources = worker.sources.borrow();
        let end = from.saturating_add(most).min(u32::try_from(sources.places()).unwrap_or(u32::MAX));
        let watched = (from..end).filter_map(|place| {
            let source = sources.at(place).filter(|source| source.watched)?;
            let seen = source.seen();
            Some(WatchedDescriptor {
                number: source.number,
                place,
                ready: (source.may_read(), source.may_write()),
                reported: (source.read == Readiness::Ready, source.write == Readiness::Ready),
                waiting: source.waiters(),
                read_closed: seen.any(Events::READ_CLOSED),
                hangup: seen.any(Events::HANGUP),
                error: seen.any(Events::ERROR),
            })
        });
        (watched.collect(), (end < u32::try_from(sources.places()).unwrap_or(u32::MAX)).then_some(end))
    })
}
