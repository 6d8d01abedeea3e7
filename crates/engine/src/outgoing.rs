//! Common properties of the connections to each server: socket options, source ports, namespaces. Computed once, shared by all
//! workers. Must never know a request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::AppendOnlyVec;
use conn::dial::Security;
use conn::link::IdleLimits;
use conn::ports::SourcePorts;
use policy::program::{Connecting, Global, LinkTls, Namespace, Program, Proxy, Server, ServerAddress};
use rt::net::{Address, ConnectOptions, KeepAlive};

/// Connection properties by serial number of the server.
#[derive(Debug)]
pub struct Outgoing {
    ways: AppendOnlyVec<ServerRoute>,
    /// The routes that were made last.
    recent: Mutex<Recent>,
    /// Network namespaces that clients can be in, by name.
    namespaces: BTreeMap<Box<str>, Arc<rt::net::Namespace>>,
}

/// Connection options and address of a server.
#[derive(Debug, Default)]
struct ServerRoute {
    route: Arc<Route>,
    moved: ChangedAddress,
}

/// Routes that other servers with the same parameters have as well.
#[derive(Debug, Default)]
struct Recent(Vec<SharedRoute>);

/// A route, and the parameters that it was made of.
#[derive(Debug)]
struct SharedRoute {
    connecting: Arc<Connecting>,
    reset_on_close: bool,
    route: Arc<Route>,
}

impl Recent {
    /// Number of routes that are remembered.
    const MOST: usize = 8;

    /// Returns the route to a server: the same for all servers with equal parameters, unless connections come from ports or from a
    /// namespace of their own. `global` is the same for all configurations of a process, as far as routes depend on it.
    fn route(&mut self, proxy: &Proxy, server: &Server, global: &Global) -> Arc<Route> {
        let (connecting, reset_on_close) = (&server.connecting, proxy.options.nolinger);
        if connecting.source.is_some() || connecting.namespace.is_some() {
            return Arc::new(route(proxy, server, global));
        }
        let is_same =
            |known: &&SharedRoute| Arc::ptr_eq(&known.connecting, connecting) && known.reset_on_close == reset_on_close;
        if let Some(known) = self.0.iter().find(is_same) {
            return Arc::clone(&known.route);
        }
        let made = Arc::new(route(proxy, server, global));
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push(SharedRoute { connecting: Arc::clone(connecting), reset_on_close, route: Arc::clone(&made) });
        made
    }
}

/// Address of a server that was changed at run time.
#[derive(Debug, Default)]
struct ChangedAddress {
    /// Avoids the lock for servers that never moved.
    is_set: AtomicBool,
    address: Mutex<Option<ServerAddress>>,
}

impl ChangedAddress {
    fn address(&self) -> Option<ServerAddress> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, address: ServerAddress) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        self.is_set.store(true, Ordering::Release);
    }
}

/// Connection options of one server.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// Socket options of every connection.
    pub options: ConnectOptions,
    /// Ports of the source port range.
    pub ports: Option<Arc<SourcePorts>>,
    /// Its namespace does not exist: connections must not be made in another one.
    pub blocked: bool,
}

impl Outgoing {
    /// Creates the properties for all servers of a program.
    pub fn new(program: &Program) -> Self {
        let mut ways: Vec<ServerRoute> = (0..program.servers).map(|_| ServerRoute::default()).collect();
        let mut recent = Recent::default();
        for proxy in &program.proxies {
            for server in proxy.servers() {
                ways[server.serial].route = recent.route(proxy, server, &program.global);
            }
        }
        let opened = program.namespaces.iter().filter_map(|name| {
            let namespace = rt::net::Namespace::open(name).ok()?;
            Some((name.clone(), Arc::new(namespace)))
        });
        Self { ways: ways.into(), recent: Mutex::new(recent), namespaces: opened.collect() }
    }

    /// Adds a server, whose serial number has to be the next one. Returns false otherwise.
    pub fn add(&self, proxy: &Proxy, server: &Server, global: &Global) -> bool {
        let route = self.recent.lock().unwrap_or_else(PoisonError::into_inner).route(proxy, server, global);
        self.ways.push(|_| ServerRoute { route, moved: ChangedAddress::default() }) == Ok(server.serial)
    }

    /// Whether clients can be in another namespace than the process.
    pub fn has_namespaces(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// Returns a namespace of the configuration by name, with its name.
    pub fn namespace(&self, name: &str) -> Option<(&str, &Arc<rt::net::Namespace>)> {
        self.namespaces.get_key_value(name).map(|(name, namespace)| (&**name, namespace))
    }

    /// Returns the current address of a server.
    pub fn address<'s>(&self, server: &'s Server) -> Cow<'s, ServerAddress> {
        let moved = self.ways.get(server.serial).and_then(|way| way.moved.address());
        moved.map_or(Cow::Borrowed(&server.address), Cow::Owned)
    }

    /// Whether a server is reached by a UNIX socket, which refuses connections immediately.
    pub fn is_behind_unix_socket(&self, server: &Server) -> bool {
        let address = self.address(server);
        matches!(*address, ServerAddress::Unix(_) | ServerAddress::Abstract(_) | ServerAddress::Carrier(_))
    }

    /// Changes the address of a server. The caller then closes the connections to it.
    pub fn set_address(&self, server: &Server, address: ServerAddress) {
        if let Some(way) = self.ways.get(server.serial) {
            way.moved.set(address);
        }
    }

    /// Returns the connection options of the server with that serial number.
    pub fn route(&self, serial: usize) -> Option<&Route> {
        self.ways.get(serial).map(|way| &*way.route)
    }
}

/// Returns the address to connect to if it does not depend on the client. `None`: there is none, or it is not resolved yet.
pub fn fixed_address(address: &ServerAddress) -> Option<Address> {
    Some(match address {
        ServerAddress::Inet { ip, port } => Address::Inet((*ip, port.resolve(0)).into()),
        ServerAddress::Unix(path) => Address::Unix(path.clone()),
        ServerAddress::Abstract(name) => Address::Abstract(name.clone()),
        ServerAddress::Carrier(number) => Address::Carrier(*number),
        ServerAddress::Unresolved { .. } | ServerAddress::Reversed => return None,
    })
}

fn route(proxy: &Proxy, server: &Server, global: &Global) -> Route {
    let connecting = &server.connecting;
    let buffers = global.server_buffers;
    let source = connecting.source.as_ref();
    let ports = source.and_then(|source| source.ports).map(|(first, last)| SourcePorts::new(first, last));
    let (namespace, blocked) = match &connecting.namespace {
        Some(Namespace::Named(name)) => match rt::net::Namespace::open(name) {
            Ok(namespace) => (Some(Arc::new(namespace)), false),
            Err(_) => (None, true),
        },
        Some(Namespace::Told) | None => (None, false),
    };
    let options = ConnectOptions {
        receive_buffer: buffers.receive.map(|bytes| bytes as usize),
        send_buffer: buffers.send.map(|bytes| bytes as usize),
        unsent_limit: buffers.unsent.map(|bytes| bytes as usize),
        delay_acknowledgement: connecting.smart,
        keepalive: connecting.keepalive.map(|keepalive| KeepAlive {
            count: keepalive.count,
            idle: keepalive.idle,
            interval: keepalive.interval,
        }),
        namespace,
        reset_on_close: proxy.options.nolinger,
        ..plain(connecting)
    };
    Route { options, ports, blocked }
}

/// Returns the options of connections from and to single addresses, in the process's own namespace.
pub fn plain(connecting: &Connecting) -> ConnectOptions {
    let source = connecting.source.as_ref();
    ConnectOptions {
        source: source.filter(|source| source.binds()).map(|source| source.address.into()),
        interface: source.and_then(|source| source.interface.as_deref()).map(str::to_owned),
        user_timeout: connecting.user_timeout,
        md5_key: connecting.md5_password.clone(),
        congestion_control: connecting.congestion_control.clone(),
        multipath: connecting.multipath,
        ..ConnectOptions::default()
    }
}

/// Returns the TLS settings of a connection that carries no requests, for [`conn::dial`].
pub fn security(tls: Option<&LinkTls>) -> Option<Security<'_>> {
    tls.map(|tls| Security { client: &tls.client, name: tls.name.as_deref() })
}

/// Returns the limits of a server's idle connections.
pub fn idle_limits(server: &Server) -> IdleLimits {
    // A delay of zero keeps no idle connections.
    let most = if server.pool_purge_delay.is_zero() { Some(0) } else { server.pool_max_conn };
    IdleLimits { most: most.map_or(usize::MAX, |most| most as usize), unshared: server.pool_low_conn as usize }
}
