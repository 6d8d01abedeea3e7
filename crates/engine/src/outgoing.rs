//! What connections to each server have in common: socket options, source ports, namespaces. Worked out once, shared by
//! all workers. Must never know a request.

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

/// By a server's serial number.
#[derive(Debug)]
pub struct Outgoing {
    ways: AppendOnlyVec<Way>,
    /// The namespaces that clients may be in, by name.
    namespaces: BTreeMap<Box<str>, Arc<rt::net::Namespace>>,
}

/// The way to a server, and where that is.
#[derive(Debug, Default)]
struct Way {
    route: Route,
    moved: Moved,
}

/// The address of a server that was changed at run time.
#[derive(Debug, Default)]
struct Moved {
    /// Spares those that never move the lock.
    is_set: AtomicBool,
    address: Mutex<Option<ServerAddress>>,
}

impl Moved {
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

/// The way to one server.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// What every connection is made with.
    pub options: ConnectOptions,
    /// The ports of its source's range.
    pub ports: Option<Arc<SourcePorts>>,
    /// Its namespace is gone: nothing may go out into another one.
    pub blocked: bool,
}

impl Outgoing {
    /// For all servers of a program.
    pub fn new(program: &Program) -> Self {
        let mut ways: Vec<Way> = (0..program.servers).map(|_| Way::default()).collect();
        for proxy in &program.proxies {
            for server in proxy.servers() {
                ways[server.serial].route = route(proxy, server, &program.global);
            }
        }
        let opened = program.namespaces.iter().filter_map(|name| {
            let namespace = rt::net::Namespace::open(name).ok()?;
            Some((name.clone(), Arc::new(namespace)))
        });
        Self { ways: ways.into(), namespaces: opened.collect() }
    }

    /// Another server, which the runtime API adds: its serial number is the next one. False: it is not.
    pub fn add(&self, proxy: &Proxy, server: &Server, global: &Global) -> bool {
        self.ways.push(|_| Way { route: route(proxy, server, global), moved: Moved::default() }) == Ok(server.serial)
    }

    /// Whether clients may be in any namespace but the process's own.
    pub fn has_namespaces(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// The namespace of that name, where the configuration knows one, with its name.
    pub fn namespace(&self, name: &str) -> Option<(&str, &Arc<rt::net::Namespace>)> {
        self.namespaces.get_key_value(name).map(|(name, namespace)| (&**name, namespace))
    }

    /// Where a server is now.
    pub fn address<'s>(&self, server: &'s Server) -> Cow<'s, ServerAddress> {
        let moved = self.ways.get(server.serial).and_then(|way| way.moved.address());
        moved.map_or(Cow::Borrowed(&server.address), Cow::Owned)
    }

    /// Whether a server is reached by a UNIX socket: where that refuses, it is known at once.
    pub fn is_behind_unix_socket(&self, server: &Server) -> bool {
        let address = self.address(server);
        matches!(*address, ServerAddress::Unix(_) | ServerAddress::Abstract(_) | ServerAddress::Carrier(_))
    }

    /// A server is somewhere else from now on. The caller closes the links to it afterwards.
    pub fn set_address(&self, server: &Server, address: ServerAddress) {
        if let Some(way) = self.ways.get(server.serial) {
            way.moved.set(address);
        }
    }

    /// The way to the server with that number.
    pub fn route(&self, serial: usize) -> Option<&Route> {
        self.ways.get(serial).map(|way| &way.route)
    }
}

/// What is connected to where no client has a say in it. `None`: there is no address, or not yet.
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

/// What is said of a way that leads to one address, from one, in the process's own namespace.
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

/// How a connection that carries no request is secured, as [`conn::dial`] takes it.
pub fn security(tls: Option<&LinkTls>) -> Option<Security<'_>> {
    tls.map(|tls| Security { client: &tls.client, name: tls.name.as_deref() })
}

/// What a server's idle links are allowed.
pub fn idle_limits(server: &Server) -> IdleLimits {
    // A delay of nothing keeps no idle connection.
    let most = if server.pool_purge_delay.is_zero() { Some(0) } else { server.pool_max_conn };
    IdleLimits { most: most.map_or(usize::MAX, |most| most as usize), unshared: server.pool_low_conn as usize }
}
