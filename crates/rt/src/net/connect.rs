//! Connections that a worker starts.
//!
//! Nothing here may wait for a name server: addresses are numbers by now.

use std::ffi::CString;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{Address, KeepAlive, Namespace, Socket, Stream, passing, spares};
use crate::sim::{self, SimSocket};
use crate::source::{Readiness, Source};
use crate::sys;

/// What is set on a socket before it connects. Defaults leave everything to the kernel, except that small segments
/// are sent at once.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// By MPTCP (RFC 8684) where the kernel has it, else by TCP.
    pub multipath: bool,
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
    pub keepalive: Option<KeepAlive>,
    /// Leave the acknowledgement of the handshake to the first bytes that are sent (`TCP_QUICKACK`).
    pub delay_acknowledgement: bool,
    /// Congestion control (`TCP_CONGESTION`); where the kernel refuses it, its default stays.
    pub congestion_control: Option<Box<str>>,
    /// Sign segments with this key (`TCP_MD5SIG`).
    pub md5_key: Option<Box<str>>,
    /// The network namespace to connect in.
    pub namespace: Option<Arc<Namespace>>,
    /// Largest segment to announce (`TCP_MAXSEG`).
    pub mss: Option<u32>,
    /// How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<Duration>,
    /// Unsent bytes from which the stream counts as full (`TCP_NOTSENT_LOWAT`).
    pub unsent_limit: Option<usize>,
    /// Bytes of the kernel's send buffer.
    pub send_buffer: Option<usize>,
    /// Bytes of the kernel's receive buffer.
    pub receive_buffer: Option<usize>,
    /// Closing resets the connection (`SO_LINGER` of zero).
    pub reset_on_close: bool,
    /// Send the first bytes with the SYN (`TCP_FASTOPEN_CONNECT`).
    pub fast_open: bool,
    /// Firewall mark of the packets (`SO_MARK`; needs a privilege, and is left out without it).
    pub mark: Option<u32>,
    /// Service class of the packets (`IP_TOS`, `IPV6_TCLASS`).
    pub service_class: Option<u8>,
    /// The connection is a short one, which [`super::reset`] ends: it may be made by a socket that was kept.
    pub is_brief: bool,
    /// Look whether it is established before anything waits for it. Pays on one machine, where it is so at once.
    pub looks_at_once: bool,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            multipath: false,
            nodelay: true,
            source: None,
            transparent: false,
            interface: None,
            keepalive: None,
            delay_acknowledgement: false,
            congestion_control: None,
            md5_key: None,
            namespace: None,
            mss: None,
            user_timeout: None,
            unsent_limit: None,
            send_buffer: None,
            receive_buffer: None,
            reset_on_close: false,
            fast_open: false,
            mark: None,
            service_class: None,
            is_brief: false,
            looks_at_once: false,
        }
    }
}

/// A connection under way: a future of the connected [`Stream`]. Dropping it gives up.
#[must_use = "a connection under way is given up when it is dropped"]
pub struct Connecting {
    stream: Option<Stream>,
    established: bool,
    /// Why it failed, where that was seen before anything waited.
    failed: Option<io::Error>,
}

/// What was being done when a connection failed before anything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectStep {
    /// Making a socket and setting its options.
    Socket,
    /// Binding it to where it connects from.
    Bind,
    /// Connecting itself.
    Connect,
}

/// Why a connection could not be started.
#[derive(Debug)]
pub struct ConnectFailure {
    /// What was being done.
    pub step: ConnectStep,
    /// What the kernel said.
    pub error: io::Error,
}

/// What this machine had none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// Descriptors of the process.
    Descriptors,
    /// Descriptors of the whole system.
    SystemDescriptors,
    /// Memory.
    Memory,
    /// Ports to connect from.
    Ports,
    /// The address, the interface or the namespace to connect from.
    Source,
}

impl ConnectFailure {
    /// What was missing; `None`: nothing here was, the connection was refused.
    pub fn shortage(&self) -> Option<Shortage> {
        Some(match (self.error.raw_os_error(), self.step) {
            (Some(libc::EMFILE), _) => Shortage::Descriptors,
            (Some(libc::ENFILE), _) => Shortage::SystemDescriptors,
            (Some(libc::ENOBUFS | libc::ENOMEM), _) => Shortage::Memory,
            (_, ConnectStep::Bind | ConnectStep::Socket) => Shortage::Source,
            (Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL), ConnectStep::Connect) => Shortage::Ports,
            (_, ConnectStep::Connect) => return None,
        })
    }

    fn at(step: ConnectStep) -> impl Fn(io::Error) -> ConnectFailure {
        move |error| ConnectFailure { step, error }
    }
}

/// Starts to connect on the current worker.
pub(super) fn start(address: &Address, options: &ConnectOptions) -> Result<Connecting, ConnectFailure> {
    use ConnectStep::{Connect, Socket as Making};
    if let Some(world) = sim::current_world() {
        let socket = SimSocket::connect(&world, address, options.source.as_ref());
        let socket = socket.map_err(ConnectFailure::at(Connect))?;
        if options.reset_on_close {
            socket.set_reset_on_close();
        }
        return Ok(Connecting::of(Socket::Sim(Box::new(socket)), false));
    }
    if let Address::Carrier(number) = address {
        let connected = passing::connect(*number);
        let step = |is_making| if is_making { Making } else { Connect };
        let own = connected.map_err(|(is_making, error)| ConnectFailure { step: step(is_making), error })?;
        return Ok(Connecting::of(Socket::Os(own.into()), true));
    }
    let fd = match spares::take(address, options) {
        Some(kept) => {
            acknowledge(&kept, options).map_err(ConnectFailure::at(Making))?;
            kept
        }
        None => prepare(address, options)?,
    };
    let mut established = sys::socket::connect(&fd, address).map_err(ConnectFailure::at(Connect))?;
    let mut failed = None;
    if !established && options.looks_at_once {
        match sys::socket::has_connected(&fd, address) {
            Ok(done) => established = done,
            Err(error) => failed = Some(error),
        }
    }
    Ok(Connecting { failed, ..Connecting::of(Socket::Os(fd.into()), established) })
}

/// A fresh socket with its options, bound where it is to be.
fn prepare(address: &Address, options: &ConnectOptions) -> Result<OwnedFd, ConnectFailure> {
    use ConnectStep::{Bind, Socket as Making};
    let family = sys::socket::family(address);
    let create = || sys::socket::create_stream(family, options.multipath && !address.is_unix());
    let fd = match &options.namespace {
        Some(namespace) => namespace.within(create),
        None => create(),
    };
    let fd = fd.map_err(ConnectFailure::at(Making))?;
    if !address.is_unix() {
        apply(&fd, address, options).map_err(ConnectFailure::at(Making))?;
        if let Some(source) = &options.source {
            bind(&fd, source).map_err(ConnectFailure::at(Bind))?;
        }
    }
    if options.reset_on_close {
        sys::socket::set_linger_zero(fd.as_raw_fd()).map_err(ConnectFailure::at(Making))?;
    }
    Ok(fd)
}

impl Connecting {
    fn of(socket: Socket, established: bool) -> Connecting {
        let mut source = Source::new();
        if !established {
            // The first event tells both how the connection ended and what can be read by then.
            (source.read, source.write) = (Readiness::Drained, Readiness::Drained);
        }
        Connecting { stream: Some(Stream::enter(socket, source)), established, failed: None }
    }

    /// The socket's number. The kernel gives the lowest one that is free: at least so many others are in use.
    pub fn number(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| u64::try_from(stream.number()).unwrap_or(0))
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
        if let Some(error) = self.failed.take() {
            self.stream = None;
            return Poll::Ready(Err(error));
        }
        let Connecting { stream: Some(stream), established, .. } = &mut *self else {
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

fn bind(fd: &OwnedFd, source: &Address) -> io::Result<()> {
    let set = |level, name| sys::socket::set_option(fd.as_raw_fd(), level, name, 1);
    set(libc::SOL_SOCKET, libc::SO_REUSEADDR)?;
    if matches!(source, Address::Inet(address) if address.port() == 0) {
        set(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT)?;
    }
    sys::socket::bind(fd, source)
}

fn apply(fd: &OwnedFd, address: &Address, options: &ConnectOptions) -> io::Result<()> {
    let set = |level, name, value: i32| sys::socket::set_option(fd.as_raw_fd(), level, name, value);
    if options.nodelay {
        set(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    }
    if let Some(probes) = options.keepalive {
        set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        for (value, name) in [
            (probes.count, libc::TCP_KEEPCNT),
            (probes.idle, libc::TCP_KEEPIDLE),
            (probes.interval, libc::TCP_KEEPINTVL),
        ] {
            // What the kernel does not take leaves its own choice in force.
            value.map(|value| set(libc::IPPROTO_TCP, name, saturate(value)));
        }
    }
    if !options.multipath {
        acknowledge(fd, options)?;
    }
    if let Some(name) = &options.congestion_control {
        let _ = sys::socket::set_option_bytes(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes());
    }
    if let Some(timeout) = options.user_timeout {
        set(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, saturate(timeout.as_millis()))?;
    }
    if options.fast_open {
        set(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1)?;
    }
    for (value, level, name) in [
        (options.mss.map(saturate), libc::IPPROTO_TCP, libc::TCP_MAXSEG),
        (options.unsent_limit.map(saturate), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
        (options.send_buffer.map(saturate), libc::SOL_SOCKET, libc::SO_SNDBUF),
        (options.receive_buffer.map(saturate), libc::SOL_SOCKET, libc::SO_RCVBUF),
    ] {
        if let Some(value) = value {
            set(level, name, value)?;
        }
    }
    // What the kernel does not permit leaves the packets as they are.
    let _ = options.mark.map(|mark| set(libc::SOL_SOCKET, libc::SO_MARK, mark as i32));
    if let Some(class) = options.service_class {
        // A socket of IPv6 has both: it may lead to IPv4.
        let _ = set(libc::IPPROTO_IP, libc::IP_TOS, i32::from(class));
        let _ = set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, i32::from(class));
    }
    if let Some(interface) = &options.interface {
        bind_to_interface(fd, interface)?;
    }
    if options.transparent {
        set_transparent(fd, matches!(address, Address::Inet(address) if address.is_ipv6()))?;
    }
    if let Some(key) = &options.md5_key {
        let bits = if matches!(address, Address::Inet(address) if address.is_ipv6()) { 128 } else { 32 };
        sys::socket::set_md5_key(fd.as_raw_fd(), address, bits, key.as_bytes())?;
    }
    Ok(())
}

/// What the kernel forgets with each connection.
fn acknowledge(fd: &OwnedFd, options: &ConnectOptions) -> io::Result<()> {
    if !options.delay_acknowledgement {
        return Ok(());
    }
    sys::socket::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0)
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
