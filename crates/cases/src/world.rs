//! The state shared by the peers of one run: addresses, sockets, signals between scripts, failures. It must never run a
//! step.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::case::{Case, ListenerKind, Role, ServerKind};
use crate::failure::{Failure, Result};
use crate::names::NameServer;

/// A listening address.
pub(crate) struct PeerAddress {
    /// As in the configuration.
    pub(crate) text: String,
    /// The address to connect to.
    pub(crate) address: SockAddr,
    /// The listening socket, if it is ours.
    pub(crate) socket: Option<Socket>,
    /// The subject opens it itself, so that early connections may fail.
    pub(crate) opened_by_subject: bool,
    /// Sockets that are only kept open: connections that fill a backlog, or one that reserves a port.
    _held: Vec<Socket>,
}

#[derive(Default)]
struct State {
    signals: HashMap<String, usize>,
    failures: Vec<Failure>,
    busy: usize,
}

/// The shared state of one run.
pub(crate) struct World {
    /// The run's own directory.
    pub(crate) dir: PathBuf,
    /// `weir`, `haproxy-3.5` …
    subject: String,
    /// Time limit of every wait.
    pub(crate) limit: Duration,
    /// The subject's addresses, by name.
    pub(crate) listeners: HashMap<String, PeerAddress>,
    /// The scripted name servers, by name.
    pub(crate) nameservers: HashMap<String, NameServer>,
    /// The scripted servers' addresses, by name.
    pub(crate) servers: HashMap<String, PeerAddress>,
    state: Mutex<State>,
    changed: Condvar,
}

impl World {
    /// Opens all addresses that the case's peers and the subject listen on.
    pub(crate) fn open(case: &Case, subject: &str, dir: &Path, limit: Duration) -> Result<Self> {
        let (mut servers, mut nameservers) = (HashMap::new(), HashMap::new());
        for peer in &case.peers {
            if peer.role == Role::NameServer {
                nameservers.insert(peer.name.clone(), NameServer::start()?);
            }
            if let Role::Server { kind, .. } = peer.role {
                servers.insert(peer.name.clone(), server(&peer.name, kind, dir)?);
            }
        }
        let mut listeners = HashMap::new();
        for (name, kind) in listener_names(case) {
            let place = listener(&name, kind, dir)?;
            listeners.insert(name, place);
        }
        let (dir, subject) = (dir.to_owned(), subject.to_owned());
        Ok(Self {
            dir,
            subject,
            limit,
            listeners,
            nameservers,
            servers,
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Returns the value of `${name}`.
    pub(crate) fn lookup(&self, name: &str) -> Option<String> {
        if name == "dir" {
            return Some(self.dir.display().to_string());
        }
        if name == "subject" {
            return Some(self.subject.clone());
        }
        let place = |name: &str| self.listeners.get(name).or_else(|| self.servers.get(name));
        if let Some(name) = name.strip_suffix(".port") {
            return place(name).and_then(|place| place.address.as_socket()).map(|address| address.port().to_string());
        }
        let named = || self.nameservers.get(name).map(|server| server.address.to_string());
        place(name).map(|place| place.text.clone()).or_else(named)
    }

    /// Sets the number of peers with a script.
    pub(crate) fn expect_peers(&self, count: usize) {
        self.lock().busy = count;
    }

    /// Records that a peer has finished its script, or only serves from now on.
    pub(crate) fn rest(&self) {
        self.lock().busy -= 1;
        self.changed.notify_all();
    }

    /// Whether every peer has finished, or one has failed.
    pub(crate) fn is_over(&self) -> bool {
        let state = self.lock();
        state.busy == 0 || !state.failures.is_empty()
    }

    /// Waits up to `moment` for the end; true: it was reached.
    pub(crate) fn wait_over(&self, moment: Duration) -> bool {
        let state = self.lock();
        let over = |state: &mut State| state.busy > 0 && state.failures.is_empty();
        let waited = self.changed.wait_timeout_while(state, moment, over);
        !over(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Records a failure of the case.
    pub(crate) fn fail(&self, failure: Failure) {
        self.lock().failures.push(failure);
        self.changed.notify_all();
    }

    /// Whether the case has failed.
    pub(crate) fn has_failed(&self) -> bool {
        !self.lock().failures.is_empty()
    }

    /// Returns all failures.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.lock().failures.clone()
    }

    /// Records a signal of this name.
    pub(crate) fn signal(&self, name: &str) {
        *self.lock().signals.entry(name.to_owned()).or_default() += 1;
        self.changed.notify_all();
    }

    /// Waits up to `moment` for a number of signals of this name.
    pub(crate) fn wait_signal(&self, name: &str, count: usize, moment: Duration) -> bool {
        let state = self.lock();
        let missing = |state: &mut State| state.signals.get(name).is_none_or(|seen| *seen < count);
        let waited =
            self.changed.wait_timeout_while(state, moment, |state| missing(state) && state.failures.is_empty());
        !missing(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the listeners that the case declares, and those that it only uses (`bind ${l}`), which are inherited.
fn listener_names(case: &Case) -> Vec<(String, ListenerKind)> {
    let mut names = case.listeners.clone();
    for line in &case.config {
        let used = line
            .trim()
            .strip_prefix("bind ")
            .and_then(|rest| rest.split_once("${"))
            .and_then(|(_, rest)| rest.split_once('}'));
        if let Some((name, _)) = used {
            let known = name == "dir" || name.contains('.') || names.iter().any(|(declared, _)| declared == name);
            if !known {
                names.push((name.to_owned(), ListenerKind::Inherited));
            }
        }
    }
    names
}

fn listener(name: &str, kind: ListenerKind, dir: &Path) -> Result<PeerAddress> {
    let path = dir.join(format!("{name}.listener"));
    let loopback = if matches!(kind, ListenerKind::Inet6 | ListenerKind::InheritedInet6) { inet6() } else { inet() };
    let subject_opens =
        |text: String, address| PeerAddress { text, address, socket: None, opened_by_subject: true, _held: Vec::new() };
    Ok(match kind {
        ListenerKind::Inherited | ListenerKind::InheritedInet6 => {
            inherited(listening(&SocketAddr::new(loopback, 0).into(), 128)?)?
        }
        ListenerKind::InheritedUnix => inherited(listening(&SockAddr::unix(&path)?, 128)?)?,
        ListenerKind::Inet | ListenerKind::Inet6 => {
            let (socket, address) = reserved(loopback)?;
            PeerAddress { _held: vec![socket], ..subject_opens(address.to_string(), address.into()) }
        }
        ListenerKind::Unix => subject_opens(format!("unix@{}", path.display()), SockAddr::unix(&path)?),
        ListenerKind::Abstract => {
            let (text, address) = abstract_name(name, dir)?;
            subject_opens(text, address)
        }
    })
}

fn inherited(socket: Socket) -> Result<PeerAddress> {
    let address = socket.local_addr()?;
    let text = format!("fd@{}", socket.as_raw_fd());
    Ok(PeerAddress { text, address, socket: Some(socket), opened_by_subject: false, _held: Vec::new() })
}

fn server(name: &str, kind: ServerKind, dir: &Path) -> Result<PeerAddress> {
    let path = dir.join(format!("{name}.server"));
    let mut fillers = Vec::new();
    let socket = match kind {
        ServerKind::Inet => listening(&SocketAddr::new(inet(), 0).into(), 128)?,
        ServerKind::Inet6 => listening(&SocketAddr::new(inet6(), 0).into(), 128)?,
        ServerKind::Unix => listening(&SockAddr::unix(&path)?, 128)?,
        ServerKind::Abstract => listening(&abstract_name(name, dir)?.1, 128)?,
        ServerKind::Dead => bound(&SocketAddr::new(inet(), 0).into())?,
        ServerKind::Full => {
            let socket = listening(&SocketAddr::new(inet(), 0).into(), 0)?;
            let filler = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            filler.connect(&socket.local_addr()?)?;
            fillers.push(filler);
            socket
        }
    };
    let address = socket.local_addr()?;
    let text = match kind {
        ServerKind::Unix => format!("unix@{}", path.display()),
        ServerKind::Abstract => abstract_name(name, dir)?.0,
        _ => address.as_socket().map(|address| address.to_string()).unwrap_or_default(),
    };
    socket.set_nonblocking(true)?;
    Ok(PeerAddress { text, address, socket: Some(socket), opened_by_subject: false, _held: fillers })
}

fn inet() -> IpAddr {
    Ipv4Addr::LOCALHOST.into()
}

fn inet6() -> IpAddr {
    Ipv6Addr::LOCALHOST.into()
}

fn bound(address: &SockAddr) -> Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    socket.bind(address)?;
    Ok(socket)
}

fn listening(address: &SockAddr, backlog: i32) -> Result<Socket> {
    let socket = bound(address)?;
    socket.listen(backlog)?;
    Ok(socket)
}

/// Returns an `abns@…` address: HAProxy pads the name with NUL to the length of the field.
fn abstract_name(name: &str, dir: &Path) -> Result<(String, SockAddr)> {
    const FIELD: usize = 108;
    let run = dir.file_name().map(|run| run.to_string_lossy().into_owned()).unwrap_or_default();
    let name = format!("{run}-{name}");
    let mut path = format!("\0{name}");
    path.extend(std::iter::repeat_n('\0', FIELD - path.len()));
    Ok((format!("abns@{name}"), SockAddr::unix(path)?))
}

/// Reserves a port for the subject to listen on. The socket bound to it does not listen, so that no other process gets
/// the port during the case; the subject sets `SO_REUSEADDR`, as servers do.
fn reserved(ip: IpAddr) -> Result<(Socket, SocketAddr)> {
    let any = SocketAddr::new(ip, 0).into();
    let socket = Socket::new(Domain::for_address(SocketAddr::new(ip, 0)), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&any)?;
    let address = socket.local_addr()?.as_socket().ok_or_else(|| Failure::new("a socket without an address"))?;
    Ok((socket, address))
}
