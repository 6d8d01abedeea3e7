//! Outgoing connections of a worker.
//!
//! Nothing here may wait for a name server: addresses are already resolved.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::set_up::{bind_to_interface, saturate, set_transparent};
use super::{Address, KeepAlive, Namespace, Socket, Stream, carrier, spares};
use crate::sim::{self, SimSocket};
use crate::source::{Readiness, Source};
use crate::sys;

/// Options of a socket that connects. The defaults leave everything to the kernel, except that small segments are sent
/// immediately.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Use MPTCP (RFC 8684) if the kernel supports it, otherwise TCP.
    pub multipath: bool,
    /// Send small segments immediately (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Bind to this address first (`source`). With port 0 the kernel chooses one late, so that connections to different
    /// destinations can share ports.
    pub source: Option<Address>,
    /// Bind to non-local addresses (`IP_TRANSPARENT`; needs a privilege).
    pub transparent: bool,
    /// Send through this network device (`SO_BINDTODEVICE`; needs a privilege).
    pub interface: Option<String>,
    /// Let the kernel probe an idle peer (`SO_KEEPALIVE`).
    pub keepalive: Option<KeepAlive>,
    /// Delay the acknowledgement of the handshake until the first bytes are sent (`TCP_QUICKACK` off).
    pub delay_acknowledgement: bool,
    /// Congestion control algorithm (`TCP_CONGESTION`); the kernel's default if it refuses it.
    pub congestion_control: Option<Box<str>>,
    /// Sign segments with this key (`TCP_MD5SIG`).
    pub md5_key: Option<Box<str>>,
    /// The network namespace to connect in.
    pub namespace: Option<Arc<Namespace>>,
    /// Maximum segment size to announce (`TCP_MAXSEG`).
    pub mss: Option<u32>,
    /// Maximum time that sent data may remain unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<Duration>,
    /// Number of unsent bytes at which the stream counts as full (`TCP_NOTSENT_LOWAT`).
    pub unsent_limit: Option<usize>,
    /// Size of the kernel's send buffer in bytes.
    pub send_buffer: Option<usize>,
    /// Size of the kernel's receive buffer in bytes.
    pub receive_buffer: Option<usize>,
    /// Closing resets the connection (`SO_LINGER` of zero).
    pub reset_on_close: bool,
    /// Send the first bytes with the SYN (`TCP_FASTOPEN_CONNECT`).
    pub fast_open: bool,
    /// Firewall mark of the packets (`SO_MARK`; needs a privilege, and is ignored without it).
    pub mark: Option<u32>,
    /// Service class of the packets (`IP_TOS`, `IPV6_TCLASS`).
    pub service_class: Option<u8>,
    /// Number of hops that packets may take (`IP_TTL`, `IPV6_UNICAST_HOPS`).
    pub hop_limit: Option<u8>,
    /// A short-lived connection ended by [`super::reset`]: it may reuse a kept socket.
    pub is_brief: bool,
    /// Check whether it is established before waiting. Worthwhile for destinations on the same
    /// machine, where it usually is.
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
            hop_limit: None,
            is_brief: false,
            looks_at_once: false,
        }
    }
}

/// A connection being established: a future of the connected [`Stream`]. Dropping it aborts the connection.
#[must_use = "a connection under way is given up when it is dropped"]
pub struct Connecting {
    stream: Option<Stream>,
    established: bool,
    /// The error, if the connection failed before anything waited for it.
    failed: Option<io::Error>,
}

/// The step at which a connection failed before anything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectStep {
    /// Creating a socket and setting its options.
    Socket,
    /// Binding it to its source address.
    Bind,
    /// Connecting.
    Connect,
}

/// Why a connection could not be started.
#[derive(Debug)]
pub struct ConnectFailure {
    /// The failed step.
    pub step: ConnectStep,
    /// The kernel's error.
    pub error: io::Error,
}

/// The local resource that was exhausted or missing.
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
    /// The source address, interface or namespace.
    Source,
}

impl ConnectFailure {
    /// Returns the missing local resource; `None`: none was missing, the connection was refused.
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

/// Starts connecting on the current worker.
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
        let connected = carrier::connect(*number);
        let step = |is_making| if is_making { Making } else { Connect };
        let own = connected.map_err(|(is_making, error)| ConnectFailure { step: step(is_making), error })?;
        return Ok(Connecting::of(Socket::Os(own.into()), true));
    }
    let plain = address.inet().filter(|_| options.is_plain());
    let fd = match plain.and_then(|inet| spares::take(inet.is_ipv6())) {
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

/// Creates a socket with its options, bound to its source address.
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
            // The first event shows both the result of the connection and what can be read by then.
            (source.read, source.write) = (Readiness::Drained, Readiness::Drained);
        }
        Connecting { stream: Some(Stream::enter(socket, source)), established, failed: None }
    }

    /// Returns the socket's number. The kernel assigns the lowest free one: at least that many others are in use.
    pub fn number(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| u64::try_from(stream.number()).unwrap_or(0))
    }

    /// Returns the stream, connected or not; the first write shows which: it waits while the connection is being
    /// established, and fails with the connection's error. Saves an iteration if connections are established
    /// immediately, as on one machine.
    ///
    /// # Errors
    /// If the future has already returned the stream.
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
            // Values that the kernel refuses leave its default in effect.
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
    // Without the privilege, packets are not marked.
    let _ = options.mark.map(|mark| set(libc::SOL_SOCKET, libc::SO_MARK, mark as i32));
    if let Some(class) = options.service_class {
        // An IPv6 socket takes both options: it may connect to an IPv4 address.
        let _ = set(libc::IPPROTO_IP, libc::IP_TOS, i32::from(class));
        let _ = set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, i32::from(class));
    }
    if let Some(hops) = options.hop_limit {
        let is_ipv6 = matches!(address, Address::Inet(address) if address.is_ipv6());
        let (level, name) = match is_ipv6 {
            true => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
            false => (libc::IPPROTO_IP, libc::IP_TTL),
        };
        set(level, name, i32::from(hops))?;
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

/// Sets the option that the kernel resets with each connection.
fn acknowledge(fd: &OwnedFd, options: &ConnectOptions) -> io::Result<()> {
    if !options.delay_acknowledgement {
        return Ok(());
    }
    sys::socket::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0)
}

impl ConnectOptions {
    /// Whether a socket with these options equals a new one once its connection is reset.
    pub fn is_plain(&self) -> bool {
        self.is_brief
            && self.nodelay
            && !(self.transparent || self.reset_on_close || self.fast_open)
            && (self.source.is_none() && self.interface.is_none() && self.namespace.is_none())
            && (self.keepalive.is_none() && self.congestion_control.is_none() && self.md5_key.is_none())
            && (self.mss.is_none() && self.user_timeout.is_none() && self.unsent_limit.is_none())
            && (self.send_buffer.is_none() && self.receive_buffer.is_none())
            && (self.mark.is_none() && self.service_class.is_none() && self.hop_limit.is_none())
    }
}

impl Stream {
    /// Starts a connection, without waiting.
    ///
    /// # Errors
    /// Immediate errors of the kernel: no descriptors, no free port, a full backlog of a UNIX socket, no route.
    pub fn connect(address: &Address, options: &ConnectOptions) -> io::Result<Connecting> {
        start(address, options).map_err(|failure| failure.error)
    }

    /// Like [`Stream::connect`], with the failed step in the error.
    ///
    /// # Errors
    /// As for [`Stream::connect`].
    pub fn try_connect(address: &Address, options: &ConnectOptions) -> Result<Connecting, ConnectFailure> {
        start(address, options)
    }
}
