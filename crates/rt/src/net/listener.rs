//! Listening sockets, which belong to the process, and each worker's view of one.
//!
//! A listener must never decide whether to admit a connection: the caller that reaches a limit pauses it.

use std::fmt;
use std::fs::{self, Permissions};
use std::future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Key;

use super::set_up::{bind_to_interface, saturate, set_transparent};
use super::{Address, KeepAlive, Namespace, OwnedSocket, Socket, carrier};
use crate::sim::{self, SimSocket};
use crate::source::{Events, Readiness, Source, Watch};
use crate::sys::address::RawAddress;
use crate::{calls, current, process, sys};

/// Options of a socket that listens.
#[derive(Clone, Debug)]
pub struct BindOptions {
    /// Use MPTCP (RFC 8684) if the kernel supports it, otherwise TCP.
    pub multipath: bool,
    /// Maximum number of connections that wait to be accepted; the kernel's own limit applies as well.
    pub backlog: i32,
    /// IPv6 only, or IPv4 too; `None`: the system's default.
    pub v6only: Option<bool>,
    /// Share the port with other sockets that set this option (`SO_REUSEPORT`): lets an old and a new process overlap.
    pub reuse_port: bool,
    /// Accepted streams send small segments immediately (`TCP_NODELAY`, inherited from the listener).
    pub nodelay: bool,
    /// Accept only when data has arrived, or after this time (`TCP_DEFER_ACCEPT`).
    pub defer_accept: Option<Duration>,
    /// Delay acknowledgements of accepted streams until there is data to send (`TCP_QUICKACK` 0).
    pub no_quick_ack: bool,
    /// Maximum segment size to announce (`TCP_MAXSEG`).
    pub mss: Option<u32>,
    /// Maximum time that sent data may remain unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<Duration>,
    /// Accept data with the SYN from this many clients at a time (`TCP_FASTOPEN`).
    pub fast_open: Option<u32>,
    /// Listen on non-local addresses (`IP_TRANSPARENT`; needs a privilege).
    pub transparent: bool,
    /// Listen on addresses that do not exist yet (`IP_FREEBIND`).
    pub free_bind: bool,
    /// Listen in this network namespace (needs a privilege).
    pub namespace: Option<String>,
    /// Sign segments with this password (`TCP_MD5SIG`), up to 80 bytes.
    pub md5_password: Option<Vec<u8>>,
    /// Keep the first packet of accepted streams (`TCP_SAVE_SYN`): 1 from its IP header on, 2 with the one below.
    pub save_syn: Option<u8>,
    /// Congestion control algorithm of accepted streams (`TCP_CONGESTION`).
    pub congestion_control: Option<String>,
    /// Keepalive probes of idle accepted streams.
    pub keep_alive: Option<KeepAlive>,
    /// Closing an accepted stream resets it (`SO_LINGER` 0).
    pub linger_zero: bool,
    /// Accept only through this network device (`SO_BINDTODEVICE`; needs a privilege).
    pub interface: Option<String>,
    /// Number of unsent bytes at which an accepted stream counts as full (`TCP_NOTSENT_LOWAT`).
    pub unsent_limit: Option<usize>,
    /// Size of the kernel's send buffer of accepted streams in bytes.
    pub send_buffer: Option<usize>,
    /// Size of the kernel's receive buffer of accepted streams in bytes.
    pub receive_buffer: Option<usize>,
    /// Permission bits of a UNIX socket's file; `None`: by the process's umask.
    pub mode: Option<u32>,
    /// Owner of a UNIX socket's file.
    pub user: Option<u32>,
    /// Group of a UNIX socket's file.
    pub group: Option<u32>,
}

impl Default for BindOptions {
    fn default() -> BindOptions {
        BindOptions {
            multipath: false,
            backlog: 1024,
            v6only: None,
            reuse_port: false,
            nodelay: true,
            defer_accept: None,
            no_quick_ack: false,
            mss: None,
            user_timeout: None,
            fast_open: None,
            transparent: false,
            free_bind: false,
            namespace: None,
            md5_password: None,
            save_syn: None,
            congestion_control: None,
            keep_alive: None,
            linger_zero: false,
            interface: None,
            unsent_limit: None,
            send_buffer: None,
            receive_buffer: None,
            mode: None,
            user: None,
            group: None,
        }
    }
}

/// A listening socket of the process: opened before the workers start, shared by them in an `Arc`.
pub struct ListeningSocket {
    pub(super) socket: Socket,
    pub(super) address: Address,
    /// Connections accepted from the backlog that arrived before the option was set on the listening socket have not
    /// inherited it.
    sets_nodelay: bool,
    pub(super) backlog: i32,
    pub(super) no_quick_ack: bool,
    namespace: Option<String>,
    /// Another process has the same socket: operations on it here would affect both.
    pub(super) is_shared: AtomicBool,
}

impl ListeningSocket {
    /// Opens a socket and listens. A UNIX socket is created under a temporary name and renamed to `address` when it
    /// listens, so that there is a listener at any time; the kernel reports the temporary name to peers that query it.
    ///
    /// # Errors
    /// From the socket (`AddrInUse`, `PermissionDenied`, …) or the file system.
    pub fn bind(address: &Address, options: &BindOptions) -> io::Result<ListeningSocket> {
        if let Some(world) = sim::current_world() {
            let (socket, address) = SimSocket::listen(&world, address, options.backlog)?;
            if options.linger_zero {
                socket.set_reset_on_close();
            }
            return Ok(ListeningSocket::new(Socket::Sim(Box::new(socket)), address, options));
        }
        match &options.namespace {
            Some(name) => Namespace::open(name)?.run(|| ListeningSocket::open(address, options))?,
            None => ListeningSocket::open(address, options),
        }
    }

    fn open(address: &Address, options: &BindOptions) -> io::Result<ListeningSocket> {
        let is_multipath = options.multipath && matches!(address, Address::Inet(_));
        let fd = sys::socket::create_stream(sys::socket::family(address), is_multipath)?;
        match address {
            Address::Inet(inet) => {
                apply(&fd, options, inet.is_ipv6())?;
                apply_to_streams(&fd, options, inet.is_ipv6())?;
                sys::socket::bind(&fd, address)?;
                // MPTCP sockets do not support the option.
                listen(&fd, options.backlog, options.no_quick_ack && !is_multipath)?;
            }
            Address::Unix(path) => bind_unix(&fd, path, options, |fd| sys::socket::listen(fd, options.backlog))?,
            Address::Abstract(_) | Address::Unnamed | Address::Carrier(_) => {
                sys::socket::bind(&fd, address)?;
                sys::socket::listen(&fd, options.backlog)?;
            }
        }
        // Port 0 is replaced by the port that the kernel chose; a UNIX socket keeps its final name.
        let address = if address.is_unix() { address.clone() } else { sys::socket::local_address(fd.as_raw_fd())? };
        Ok(ListeningSocket::new(Socket::Os(fd.into()), address, options))
    }

    /// Takes over an inherited descriptor. If it is bound but does not listen yet, it starts to.
    ///
    /// # Errors
    /// `InvalidInput` if it is not a stream socket, `ResourceBusy` if it was already taken over, otherwise from the
    /// socket.
    pub fn inherit(fd: RawFd, options: &BindOptions) -> io::Result<ListeningSocket> {
        let kind = sys::socket::option(fd, libc::SOL_SOCKET, libc::SO_TYPE)?;
        if kind != libc::SOCK_STREAM {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a stream socket"));
        }
        let fd = process::take(fd)?;
        sys::set_nonblocking(&fd)?;
        if sys::socket::option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ACCEPTCONN)? == 0 {
            sys::socket::listen(&fd, options.backlog)?;
        }
        let address = sys::socket::local_address(fd.as_raw_fd())?;
        let sets_nodelay = !address.is_unix() && options.nodelay;
        if sets_nodelay {
            sys::socket::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        }
        if let Address::Inet(inet) = &address {
            apply_to_streams(&fd, options, inet.is_ipv6())?;
            if options.no_quick_ack {
                sys::socket::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0)?;
            }
        }
        let is_shared = AtomicBool::new(true);
        Ok(ListeningSocket { sets_nodelay, is_shared, ..ListeningSocket::new(Socket::Os(fd.into()), address, options) })
    }

    /// Takes over a socket that another process bound and listens on, under the given name. Sets the options that can
    /// still be changed.
    pub(super) fn adopt(fd: OwnedFd, address: &Address, options: &BindOptions) -> io::Result<ListeningSocket> {
        sys::set_nonblocking(&fd)?;
        if let Address::Inet(inet) = address {
            // An option set by the other process that cannot be changed keeps its value.
            let _ = apply_to_streams(&fd, options, inet.is_ipv6());
        }
        listen(&fd, options.backlog, options.no_quick_ack && !address.is_unix())?;
        Ok(ListeningSocket::new(Socket::Os(fd.into()), address.clone(), options))
    }

    /// Returns the descriptor, for passing it to another process; `None` in a simulation.
    pub fn as_descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.socket {
            Socket::Os(fd) => Some(fd.as_fd()),
            Socket::Sim(_) => None,
        }
    }

    /// Whether other sockets may have its port as well (`SO_REUSEPORT`).
    pub fn shares_port(&self) -> bool {
        self.descriptor()
            .is_none_or(|fd| sys::socket::option(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT).is_ok_and(|on| on > 0))
    }

    /// Returns the network namespace that it listens in, if one was configured.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the network device that it is bound to, if any.
    pub fn interface(&self) -> Option<String> {
        sys::socket::interface(self.descriptor()?)
    }

    pub(super) fn new(socket: Socket, address: Address, options: &BindOptions) -> ListeningSocket {
        let (backlog, is_shared) = (options.backlog, AtomicBool::new(false));
        let no_quick_ack = options.no_quick_ack && !address.is_unix();
        let namespace = options.namespace.clone();
        ListeningSocket { socket, address, sets_nodelay: false, backlog, no_quick_ack, namespace, is_shared }
    }

    /// Returns the address that it listens on; port 0 is replaced by the chosen port.
    pub fn local_address(&self) -> &Address {
        &self.address
    }

    /// Returns the descriptor's number; `None` in a simulation.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.socket.descriptor()
    }
}

impl fmt::Debug for ListeningSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, descriptor) = (&self.address, self.descriptor());
        f.debug_struct("ListeningSocket").field("address", address).field("descriptor", &descriptor).finish()
    }
}

/// Starts listening. This resets the socket's acknowledgement mode, so that is set afterwards.
pub(super) fn listen(fd: &OwnedFd, backlog: i32, no_quick_ack: bool) -> io::Result<()> {
    sys::socket::listen(fd, backlog)?;
    if no_quick_ack {
        sys::socket::set_option(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0)?;
    }
    Ok(())
}

fn apply(fd: &OwnedFd, options: &BindOptions, v6: bool) -> io::Result<()> {
    let set = |level, name, value: i32| sys::socket::set_option(fd.as_raw_fd(), level, name, value);
    let flag = |on: bool| on.then_some(1);
    let v6only = options.v6only.filter(|_| v6).map(i32::from);
    let millis = |time: Duration| saturate(time.as_millis());
    let seconds = |time: Duration| saturate(time.as_secs().max(1));
    for (value, level, name) in [
        (Some(1), libc::SOL_SOCKET, libc::SO_REUSEADDR),
        (flag(options.reuse_port), libc::SOL_SOCKET, libc::SO_REUSEPORT),
        (v6only, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
        (flag(options.nodelay), libc::IPPROTO_TCP, libc::TCP_NODELAY),
        (options.defer_accept.map(seconds), libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
        (options.mss.map(saturate), libc::IPPROTO_TCP, libc::TCP_MAXSEG),
        (options.user_timeout.map(millis), libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
        (options.fast_open.map(saturate), libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
        (flag(options.free_bind), libc::IPPROTO_IP, libc::IP_FREEBIND),
        (options.unsent_limit.map(saturate), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
        (options.send_buffer.map(saturate), libc::SOL_SOCKET, libc::SO_SNDBUF),
        (options.receive_buffer.map(saturate), libc::SOL_SOCKET, libc::SO_RCVBUF),
    ] {
        let Some(value) = value else { continue };
        match set(level, name, value) {
            // Preloaded libraries have sockets of their own. See `shares_port`.
            Err(_) if name == libc::SO_REUSEPORT && calls::are_named() => {}
            done => done?,
        }
    }
    if let Some(interface) = &options.interface {
        bind_to_interface(fd, interface)?;
    }
    if options.transparent { set_transparent(fd, v6) } else { Ok(()) }
}

/// Sets the options that accepted streams inherit from their listener, which saves a system call for each of them.
fn apply_to_streams(fd: &OwnedFd, options: &BindOptions, v6: bool) -> io::Result<()> {
    let number = fd.as_raw_fd();
    let set = |level, name, value: u32| sys::socket::set_option(number, level, name, saturate(value));
    if let Some(KeepAlive { count, idle, interval }) = options.keep_alive {
        set(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        for (value, name) in [(count, libc::TCP_KEEPCNT), (idle, libc::TCP_KEEPIDLE), (interval, libc::TCP_KEEPINTVL)] {
            if let Some(value) = value {
                set(libc::IPPROTO_TCP, name, value)?;
            }
        }
    }
    if let Some(mode) = options.save_syn {
        set(libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, u32::from(mode))?;
    }
    if let Some(algorithm) = &options.congestion_control {
        sys::socket::set_option_bytes(number, libc::IPPROTO_TCP, libc::TCP_CONGESTION, algorithm.as_bytes())?;
    }
    if let Some(password) = &options.md5_password {
        // Applies to connections from any address.
        let anybody: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        sys::socket::set_md5_key(number, &Address::Inet(SocketAddr::new(anybody, 0)), 0, password)?;
    }
    if options.linger_zero {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        sys::socket::set_option(number, libc::SOL_SOCKET, libc::SO_LINGER, linger)?;
    }
    Ok(())
}

/// Binds a datagram socket, with the options that are not about connections.
pub(super) fn bind_datagram(address: &Address, options: &BindOptions) -> io::Result<OwnedFd> {
    let fd = sys::socket::create(sys::socket::family(address), libc::SOCK_DGRAM)?;
    match address {
        Address::Inet(inet) => {
            let BindOptions { v6only, reuse_port, receive_buffer, transparent, interface, .. } = options.clone();
            let only = BindOptions {
                v6only,
                reuse_port,
                receive_buffer,
                transparent,
                interface,
                nodelay: false,
                ..BindOptions::default()
            };
            apply(&fd, &only, inet.is_ipv6())?;
            sys::socket::bind(&fd, address)?;
        }
        Address::Unix(path) => bind_unix(&fd, path, options, |_| Ok(()))?,
        Address::Abstract(_) | Address::Unnamed | Address::Carrier(_) => sys::socket::bind(&fd, address)?,
    }
    Ok(fd)
}

/// Binds under a temporary name, sets the file's owner and mode, and renames it once it is open.
fn bind_unix(
    fd: &OwnedFd,
    path: &Path,
    options: &BindOptions,
    open: impl Fn(&OwnedFd) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    // If the temporary name is too long, the final one is bound directly: there is briefly no listener then.
    let fits = RawAddress::encode(&Address::Unix(PathBuf::from(&name))).is_ok();
    let temporary = if fits { PathBuf::from(name) } else { path.to_owned() };
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let prepare = || {
        sys::socket::bind(fd, &Address::Unix(temporary.clone()))?;
        if options.user.is_some() || options.group.is_some() {
            chown(&temporary, options.user, options.group)?;
        }
        if let Some(mode) = options.mode {
            fs::set_permissions(&temporary, Permissions::from_mode(mode))?;
        }
        open(fd)?;
        fs::rename(&temporary, path)
    };
    prepare().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// One worker's view of a listening socket. It is watched (level-triggered, one worker woken per connection) from the
/// first wait, unless it is paused.
pub struct Listener {
    shared: Arc<ListeningSocket>,
    key: Key,
    paused: bool,
}

impl Listener {
    /// Watches a listening socket on the current worker.
    ///
    /// # Errors
    /// From the driver.
    pub fn new(shared: Arc<ListeningSocket>) -> io::Result<Listener> {
        let mut source = Source::new();
        (source.is_level, source.number) = (true, shared.socket.number());
        let key = current::with(|worker| worker.sources.borrow_mut().insert(source));
        let mut listener = Listener { shared, key, paused: true };
        listener.resume()?;
        Ok(listener)
    }

    /// Returns the socket that all workers share.
    pub fn socket(&self) -> &Arc<ListeningSocket> {
        &self.shared
    }

    /// Waits for the next connection. More may be taken with [`Listener::try_accept`] without waiting.
    ///
    /// # Errors
    /// From the kernel, mostly because descriptors or memory are exhausted: pause for a while, then resume.
    pub async fn accept(&mut self) -> io::Result<(OwnedSocket, Address)> {
        future::poll_fn(|context| self.poll_accept(context)).await
    }

    /// The poll form of [`Listener::accept`]. Pending forever while paused.
    ///
    /// # Errors
    /// As for [`Listener::accept`].
    pub fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<(OwnedSocket, Address)>> {
        current::with(|worker| {
            if !worker.may_spend(context) {
                return Poll::Pending;
            }
            if let Some(accepted) = self.try_accept()? {
                return Poll::Ready(Ok(accepted));
            }
            let watched = match worker.sources.borrow_mut().get_mut(self.key) {
                Some(source) => {
                    source.wait_to_read(context);
                    source.watched
                }
                None => true,
            };
            if !watched && !self.paused {
                self.watch()?;
            }
            Poll::Pending
        })
    }

    /// Ready when a connection may be waiting, without taking it. Pending forever while paused.
    pub fn poll_acceptable(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.paused {
            return Poll::Pending;
        }
        let watched = current::with(|worker| {
            let mut sources = worker.sources.borrow_mut();
            let source = sources.get_mut(self.key)?;
            source.unheeded = 0;
            if source.read != Readiness::Drained || source.seen().any(Events::ERROR) {
                return None;
            }
            source.wait_to_read(context);
            Some(source.watched)
        });
        match watched {
            None => Poll::Ready(()),
            // If the socket cannot be watched, an attempt to accept reports the error.
            Some(false) if self.watch().is_err() => Poll::Ready(()),
            Some(_) => Poll::Pending,
        }
    }

    /// Takes a waiting connection; `None` if there is none, or the listener is paused.
    ///
    /// # Errors
    /// As for [`Listener::accept`].
    pub fn try_accept(&mut self) -> io::Result<Option<(OwnedSocket, Address)>> {
        if self.paused {
            return Ok(None);
        }
        let is_carrier = self.shared.is_carrier();
        let mut has_ended = false;
        let accepted = current::with(|worker| {
            let mut sources = worker.sources.borrow_mut();
            let Some(source) = sources.get_mut(self.key) else { return Ok(None) };
            source.unheeded = 0;
            if source.watched && source.read == Readiness::Drained && !source.seen().any(Events::ERROR) {
                return Ok(None);
            }
            let accepted = match is_carrier {
                false => self.shared.socket.accept()?,
                true => carrier::accept(&self.shared.socket, &mut has_ended)?,
            };
            source.read = if accepted.is_some() { Readiness::Ready } else { Readiness::Drained };
            if accepted.is_some() {
                worker.patience.note_accepted();
            }
            if let Some((socket, _)) = accepted.as_ref().filter(|_| self.shared.sets_nodelay) {
                // Fails if the connection has been reset already; the next read reports that.
                let _ = socket.set_option(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
            }
            Ok(accepted.map(|(socket, address)| (OwnedSocket { socket }, address)))
        });
        if has_ended {
            // The driver would report its end in every iteration.
            self.pause();
        }
        accepted
    }

    /// Assumes that no further connection is waiting; otherwise the driver reports it in the next iteration. For
    /// callers that have taken as many as were expected, since an attempt that finds none is costly. False: the socket
    /// has failed, and there is nothing to wait for.
    pub fn rest_until_told(&mut self) -> bool {
        current::with(|worker| {
            let mut sources = worker.sources.borrow_mut();
            let Some(source) = sources.get_mut(self.key) else { return false };
            source.read = Readiness::Drained;
            !source.seen().any(Events::ERROR)
        })
    }

    /// Stops watching: connections wait in the backlog, or are accepted by other workers.
    pub fn pause(&mut self) {
        if !std::mem::replace(&mut self.paused, true) {
            self.unwatch();
        }
    }

    /// Resumes watching after a pause.
    ///
    /// # Errors
    /// From the driver.
    pub fn resume(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.paused, false) {
            self.watch()?;
        }
        Ok(())
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    fn watch(&self) -> io::Result<()> {
        current::with(|worker| {
            worker.driver.watch(&self.shared.socket, Watch::Listener, self.key)?;
            if let Some(source) = worker.sources.borrow_mut().get_mut(self.key) {
                source.note_watched(self.shared.socket.number());
                source.unheeded = 0;
                source.read = Readiness::Unknown;
            }
            Ok(())
        })
    }

    fn unwatch(&self) {
        current::try_with(|worker| {
            if let Some(source) = worker.sources.borrow_mut().get_mut(self.key)
                && std::mem::replace(&mut source.watched, false)
            {
                worker.driver.unwatch(&self.shared.socket);
            }
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.unwatch();
        let _source = current::try_with(|worker| worker.sources.borrow_mut().remove(self.key));
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("socket", &self.shared).field("paused", &self.paused).finish()
    }
}
