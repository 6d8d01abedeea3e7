//! Listening sockets, which belong to the process, and each worker's view of one.
//!
//! A listener must never decide whether a connection is welcome: the caller that meets a limit pauses it.

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

use super::connect::{bind_to_interface, saturate, set_transparent};
use super::{Address, Namespace, OwnedSocket, Socket, passing};
use crate::sim::{self, SimSocket};
use crate::source::{Events, Readiness, Source, Watch};
use crate::sys::address::RawAddress;
use crate::{current, process, sys};

/// What is set on a socket before it listens.
#[derive(Clone, Debug)]
pub struct BindOptions {
    /// By MPTCP (RFC 8684) where the kernel has it, else by TCP.
    pub multipath: bool,
    /// Connections that may wait to be accepted; the kernel's own limit applies as well.
    pub backlog: i32,
    /// IPv6 only, or IPv4 too; `None` leaves it to the system.
    pub v6only: Option<bool>,
    /// Share the port with other sockets that ask for it (`SO_REUSEPORT`): lets an old and a new process overlap.
    pub reuse_port: bool,
    /// Accepted streams send small segments at once (`TCP_NODELAY`, inherited from the listener).
    pub nodelay: bool,
    /// Accept only when data has come, or after this long (`TCP_DEFER_ACCEPT`).
    pub defer_accept: Option<Duration>,
    /// Let accepted streams' acknowledgements wait for data (`TCP_QUICKACK` 0).
    pub no_quick_ack: bool,
    /// Largest segment to announce (`TCP_MAXSEG`).
    pub mss: Option<u32>,
    /// How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub user_timeout: Option<Duration>,
    /// Accept data with the SYN from this many clients at a time (`TCP_FASTOPEN`).
    pub fast_open: Option<u32>,
    /// Listen on addresses that are not this machine's (`IP_TRANSPARENT`; needs a privilege).
    pub transparent: bool,
    /// Listen on addresses that do not exist yet (`IP_FREEBIND`).
    pub free_bind: bool,
    /// Listen in this network namespace (needs a privilege).
    pub namespace: Option<String>,
    /// Sign segments with this password (`TCP_MD5SIG`), up to 80 bytes.
    pub md5_password: Option<Vec<u8>>,
    /// Keep the first packet of accepted streams (`TCP_SAVE_SYN`): 1 from its IP header on, 2 with the one below.
    pub save_syn: Option<u8>,
    /// How accepted streams avoid congestion (`TCP_CONGESTION`).
    pub congestion_control: Option<String>,
    /// Have the kernel probe accepted streams that are idle.
    pub keep_alive: Option<KeepAlive>,
    /// Closing an accepted stream resets it (`SO_LINGER` 0).
    pub linger_zero: bool,
    /// Accept only through this network device (`SO_BINDTODEVICE`; needs a privilege).
    pub interface: Option<String>,
    /// Unsent bytes from which an accepted stream counts as full (`TCP_NOTSENT_LOWAT`).
    pub unsent_limit: Option<usize>,
    /// Bytes of the kernel's send buffer of accepted streams.
    pub send_buffer: Option<usize>,
    /// Bytes of the kernel's receive buffer of accepted streams.
    pub receive_buffer: Option<usize>,
    /// Permission bits of a UNIX socket's file; `None` leaves them to the process's mask.
    pub mode: Option<u32>,
    /// Owner of a UNIX socket's file.
    pub user: Option<u32>,
    /// Group of a UNIX socket's file.
    pub group: Option<u32>,
}

/// How the kernel probes a peer that is silent (`SO_KEEPALIVE`); `None` leaves a setting to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KeepAlive {
    /// Probes without an answer before the connection fails (`TCP_KEEPCNT`).
    pub count: Option<u32>,
    /// Seconds of silence before the first probe (`TCP_KEEPIDLE`).
    pub idle: Option<u32>,
    /// Seconds between two probes (`TCP_KEEPINTVL`).
    pub interval: Option<u32>,
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
    /// Connections that waited before the option was set on the listening socket have not inherited it.
    sets_nodelay: bool,
    pub(super) backlog: i32,
    pub(super) no_quick_ack: bool,
    namespace: Option<String>,
    /// Another process has the same socket: what is done to it here would be done to both.
    pub(super) is_shared: AtomicBool,
}

impl ListeningSocket {
    /// Opens a socket and listens. A UNIX socket is made under another name and moved over `address` when it listens,
    /// so that there is no moment without one; the kernel reports the first name to peers that ask.
    ///
    /// # Errors
    /// The socket's (`AddrInUse`, `PermissionDenied`, …) or the file system's.
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
                // Sockets of MPTCP have no such option.
                listen(&fd, options.backlog, options.no_quick_ack && !is_multipath)?;
            }
            Address::Unix(path) => bind_unix(&fd, path, options, |fd| sys::socket::listen(fd, options.backlog))?,
            Address::Abstract(_) | Address::Unnamed | Address::Carrier(_) => {
                sys::socket::bind(&fd, address)?;
                sys::socket::listen(&fd, options.backlog)?;
            }
        }
        // Port 0 becomes the one that the kernel chose; a UNIX socket keeps its final name.
        let address = if address.is_unix() { address.clone() } else { sys::socket::local_address(fd.as_raw_fd())? };
        Ok(ListeningSocket::new(Socket::Os(fd.into()), address, options))
    }

    /// Takes over a descriptor that the process was started with. One that is bound but does not listen
    /// yet starts to.
    ///
    /// # Errors
    /// `InvalidInput` when it is no stream socket, `ResourceBusy` when it was taken over already, else the socket's.
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

    /// Goes on with a socket that another process bound and listens on, under the name that is given. Options are set
    /// as far as they still can be.
    pub(super) fn adopt(fd: OwnedFd, address: &Address, options: &BindOptions) -> io::Result<ListeningSocket> {
        sys::set_nonblocking(&fd)?;
        if let Address::Inet(inet) = address {
            // One that was set by the other process and cannot be changed any more stays as it is.
            let _ = apply_to_streams(&fd, options, inet.is_ipv6());
        }
        listen(&fd, options.backlog, options.no_quick_ack && !address.is_unix())?;
        Ok(ListeningSocket::new(Socket::Os(fd.into()), address.clone(), options))
    }

    /// The descriptor, to be passed on; `None` in a simulation.
    pub fn as_descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.socket {
            Socket::Os(fd) => Some(fd.as_fd()),
            Socket::Sim(_) => None,
        }
    }

    /// The network namespace that it listens in, if that was asked for.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The network device that it accepts from, if it was bound to one.
    pub fn interface(&self) -> Option<String> {
        sys::socket::interface(self.descriptor()?)
    }

    pub(super) fn new(socket: Socket, address: Address, options: &BindOptions) -> ListeningSocket {
        let (backlog, is_shared) = (options.backlog, AtomicBool::new(false));
        let no_quick_ack = options.no_quick_ack && !address.is_unix();
        let namespace = options.namespace.clone();
        ListeningSocket { socket, address, sets_nodelay: false, backlog, no_quick_ack, namespace, is_shared }
    }

    /// Where it listens; port 0 was replaced by the port that was chosen.
    pub fn local_address(&self) -> &Address {
        &self.address
    }

    /// The descriptor's number; `None` in a simulation.
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

/// Starts to listen. The kernel then forgets what it was told of acknowledgements, so that comes behind.
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
        if let Some(value) = value {
            set(level, name, value)?;
        }
    }
    if let Some(interface) = &options.interface {
        bind_to_interface(fd, interface)?;
    }
    if options.transparent { set_transparent(fd, v6) } else { Ok(()) }
}

/// Sets what accepted streams inherit from their listener, so that it costs no call for each of them.
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
        // Of connections from any address.
        let anybody: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        sys::socket::set_md5_key(number, &Address::Inet(SocketAddr::new(anybody, 0)), 0, password)?;
    }
    if options.linger_zero {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        sys::socket::set_option(number, libc::SOL_SOCKET, libc::SO_LINGER, linger)?;
    }
    Ok(())
}

/// Binds a datagram socket; of the options those count that are not about connections.
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

/// Binds under a name of our own, sets the file's owner and mode, and moves it to its place once it is open.
fn bind_unix(
    fd: &OwnedFd,
    path: &Path,
    options: &BindOptions,
    open: impl Fn(&OwnedFd) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    // A name that is too long with its ending is bound in place: for an instant there is no listener then.
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

/// One worker's view of a listening socket. It is watched (level-triggered, one worker woken for one connection) from
/// the first wait, and while it is not paused.
pub struct Listener {
    shared: Arc<ListeningSocket>,
    key: Key,
    paused: bool,
}

impl Listener {
    /// Has the current worker watch a listening socket from now on.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(shared: Arc<ListeningSocket>) -> io::Result<Listener> {
        let mut source = Source::new();
        (source.is_listener, source.number) = (true, shared.socket.number());
        let key = current::with(|worker| worker.sources.borrow_mut().insert(source));
        let mut listener = Listener { shared, key, paused: true };
        listener.resume()?;
        Ok(listener)
    }

    /// The socket that all workers share.
    pub fn socket(&self) -> &Arc<ListeningSocket> {
        &self.shared
    }

    /// Waits for the next connection. Several may be taken with [`Listener::try_accept`] at once.
    ///
    /// # Errors
    /// The kernel's, mostly because descriptors or memory are exhausted: pause for a while, then go on.
    pub async fn accept(&mut self) -> io::Result<(OwnedSocket, Address)> {
        future::poll_fn(|context| self.poll_accept(context)).await
    }

    /// [`Listener::accept`] as a poll. Pending for ever while paused.
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

    /// Ready when a connection may wait, without taking it. Pending for ever while paused.
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
            // A socket that cannot be watched is tried: the attempt tells why.
            Some(false) if self.watch().is_err() => Poll::Ready(()),
            Some(_) => Poll::Pending,
        }
    }

    /// Takes a connection that waits; `None` when there is none, or the listener is paused.
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
                true => passing::accept(&self.shared.socket, &mut has_ended)?,
            };
            source.read = if accepted.is_some() { Readiness::Ready } else { Readiness::Drained };
            if accepted.is_some() {
                worker.patience.note_accepted();
            }
            if let Some((socket, _)) = accepted.as_ref().filter(|_| self.shared.sets_nodelay) {
                // One that has been reset meanwhile refuses; reading it will tell.
                let _ = socket.set_option(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
            }
            Ok(accepted.map(|(socket, address)| (OwnedSocket { socket }, address)))
        });
        if has_ended {
            // The driver would report its end in every turn.
            self.pause();
        }
        accepted
    }

    /// Takes it that nothing waits any more. Where something does, the driver tells again in the next turn: for whoever has
    /// taken as many as there probably were, since an attempt that finds none is dear. False: there is nothing to wait for,
    /// the socket has failed.
    pub fn rest_until_told(&mut self) -> bool {
        current::with(|worker| {
            let mut sources = worker.sources.borrow_mut();
            let Some(source) = sources.get_mut(self.key) else { return false };
            source.read = Readiness::Drained;
            !source.seen().any(Events::ERROR)
        })
    }

    /// Stops watching: connections wait in the backlog, or go to other workers.
    pub fn pause(&mut self) {
        if !std::mem::replace(&mut self.paused, true) {
            self.unwatch();
        }
    }

    /// Watches again after a pause.
    ///
    /// # Errors
    /// The driver's.
    pub fn resume(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.paused, false) {
            self.watch()?;
        }
        Ok(())
    }

    /// Whether it is paused.
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
