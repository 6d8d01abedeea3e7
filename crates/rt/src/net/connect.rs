//! Connections that a worker starts.
//!
//! Nothing here may wait for a name server: addresses are numbers by now.

use std::ffi::CString;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{Address, Socket, Stream};
use crate::sim::{self, SimSocket};
use crate::source::{Readiness, Source};
use crate::sys;

/// What is set on a socket before it connects. Defaults leave everything to the kernel, except that small segments
/// are sent at once.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Send small segments at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Bind to this address first (`source`). With port 0 the kernel chooses one late, so that ports can be shared by
    /// connections to different destinations.
    pub source: Option<Address>,
    /// Bind to addresses that are not this machine's (`IP_TRANSPARENT`; needs a privilege).
    pub transparent: bool,
    /// Leave by this network device (`SO_BINDTODEVICE`; needs a privilege).
    pub interface: Option<String>,
    /// Let the kernel probe an idle peer (`SO_KEEPALIVE`).
    pub keepalive: bool,
    /// Largest segment to announce (`TCP_MAXSEG`).
    pub mss: Option<u32>,
    /// How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<Duration>,
    /// Bytes of the kernel's send buffer.
    pub send_buffer: Option<usize>,
    /// Bytes of the kernel's receive buffer.
    pub receive_buffer: Option<usize>,
    /// Send the first bytes with the SYN (`TCP_FASTOPEN_CONNECT`).
    pub fast_open: bool,
    /// Firewall mark of the packets (`SO_MARK`; needs a privilege).
    pub mark: Option<u32>,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            nodelay: true,
            source: None,
            transparent: false,
            interface: None,
            keepalive: false,
            mss: None,
            user_timeout: None,
            send_buffer: None,
            receive_buffer: None,
            fast_open: false,
            mark: None,
        }
    }
}

/// A connection under way: a future of the connected [`Stream`]. Dropping it gives up.
#[must_use = "a connection under way is given up when it is dropped"]
pub struct Connecting {
    stream: Option<Stream>,
    established: bool,
}

/// Starts to connect on the current worker.
pub(super) fn start(address: &Address, options: &ConnectOptions) -> io::Result<Connecting> {
    if let Some(world) = sim::current_world() {
        let socket = SimSocket::connect(&world, address, options.source.as_ref())?;
        return Ok(Connecting::of(Socket::Sim(socket), false));
    }
    let fd = sys::socket::create(sys::socket::family(address), libc::SOCK_STREAM)?;
    if !address.is_unix() {
        apply(&fd, options, matches!(address, Address::Inet(address) if address.is_ipv6()))?;
    }
    let established = sys::socket::connect(&fd, address)?;
    Ok(Connecting::of(Socket::Os(fd), established))
}

impl Connecting {
    fn of(socket: Socket, established: bool) -> Connecting {
        let mut source = Source::new();
        if !established {
            // The first event tells both how the connection ended and what can be read by then.
            (source.read, source.write) = (Readiness::Drained, Readiness::Drained);
        }
        Connecting { stream: Some(Stream::enter(socket, source)), established }
    }

    /// The stream as it is, connected or not: the first write tells. It waits while the connection is under way, and
    /// fails as the connection failed. Saves a turn where connections are established at once, as on one machine.
    ///
    /// # Errors
    /// When the future has given the stream away already.
    pub fn into_stream(mut self) -> io::Result<Stream> {
        let mut stream = self.stream.take().ok_or_else(given_away)?;
        stream.expect_anything();
        Ok(stream)
    }
}

fn given_away() -> io::Error {
    io::Error::other("the connection was given away already")
}

impl Future for Connecting {
    type Output = io::Result<Stream>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        let Connecting { stream: Some(stream), established } = &mut *self else {
            return Poll::Ready(Err(given_away()));
        };
        if !*established {
            if stream.poll_writable(context).is_pending() {
                return Poll::Pending;
            }
            if stream.has_failed() {
                let error = stream.take_error().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into());
                self.stream = None;
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(self.stream.take().ok_or_else(given_away))
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").field("stream", &self.stream).finish()
    }
}

fn apply(fd: &OwnedFd, options: &ConnectOptions, v6: bool) -> io::Result<()> {
    let set = |level, name, value: i32| sys::socket::set_option(fd.as_raw_fd(), level, name, value);
    if options.nodelay {
        set(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    }
    if options.keepalive {
        set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    }
    if let Some(timeout) = options.user_timeout {
        set(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, saturate(timeout.as_millis()))?;
    }
    if options.fast_open {
        set(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1)?;
    }
    for (value, level, name) in [
        (options.mss.map(saturate), libc::IPPROTO_TCP, libc::TCP_MAXSEG),
        (options.send_buffer.map(saturate), libc::SOL_SOCKET, libc::SO_SNDBUF),
        (options.receive_buffer.map(saturate), libc::SOL_SOCKET, libc::SO_RCVBUF),
        (options.mark.map(|mark| mark as i32), libc::SOL_SOCKET, libc::SO_MARK),
    ] {
        if let Some(value) = value {
            set(level, name, value)?;
        }
    }
    if let Some(interface) = &options.interface {
        bind_to_interface(fd, interface)?;
    }
    if options.transparent {
        set_transparent(fd, v6)?;
    }
    if let Some(source) = &options.source {
        set(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        if matches!(source, Address::Inet(address) if address.port() == 0) {
            set(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        }
        sys::socket::bind(fd, source)?;
    }
    Ok(())
}

/// A number as the `int` that socket options want.
pub(super) fn saturate<T: TryInto<i32>>(value: T) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

pub(super) fn bind_to_interface(fd: &OwnedFd, interface: &str) -> io::Result<()> {
    let name = CString::new(interface).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let name = name.as_bytes_with_nul();
    sys::socket::set_option_bytes(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name)
}

pub(super) fn set_transparent(fd: &OwnedFd, v6: bool) -> io::Result<()> {
    let (level, name) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT) } else { (libc::IPPROTO_IP, libc::IP_TRANSPARENT) };
    sys::socket::set_option(fd.as_raw_fd(), level, name, 1)
}
