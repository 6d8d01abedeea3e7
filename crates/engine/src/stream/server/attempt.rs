//! One attempt to connect to a chosen server: source address, destination address, and the preamble of the connection
//! (PROXY header, SOCKS4, TLS). Must never choose a server, nor decide whether to retry.

use conn::transport::{self, Opening};
use std::borrow::Cow;
use std::future::Future as _;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use base::Moment;
use base::buffer::Buffer;
use config::spec::{LogLevel, Mode};
use conn::carrier::Carrier;
use conn::link::Link;
use conn::pool_key::{OwnedPoolKey, PoolKey};
use conn::ports::{SourcePort, SourcePorts};
use expression::Expression;
use expression::sample::{ConnectionError, LinkFacts};
use policy::program::{
    MuxProtocol, Namespace, Server, ServerAddress, ServerPort, ServerTls, Source, TransparentSource,
};
use rt::net::{Address, ConnectFailure, ConnectOptions, Shortage};
use tls::{Connection, ServerIdentity, asked_name};
use wire::http::Head;
use wire::proxy_protocol::kind;

use crate::connection_preamble::{self, Greeting};
use crate::handshake::{are_too_many, tls_error};
use crate::outgoing::{Route, fixed_address};
use crate::stream::record::metrics::{self, Handshake};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::server::connect::{Request, WaitResult};

/// The handshake that a new connection needs.
struct Wanted<'a> {
    server: &'a Server,
    tls: &'a ServerTls,
    /// Name of the server for the handshake, if an expression gives it.
    sni: Option<Box<str>>,
    /// Protocol that replaces the server's usual one (`ws`).
    special: Option<MuxProtocol>,
}

/// Result of an attempt.
pub enum Attempt {
    /// The connection is established.
    Connected(Link),
    /// The server, or a proxy in front of it, refused the connection.
    Refused,
    /// A timeout expired.
    Expired,
    /// The client disconnected during the attempt.
    Gone,
    /// Nothing was sent: a local resource is exhausted.
    Unable,
}

/// Maximum number of ports of a range that are tried in one attempt: some may be in use by other sockets.
const PORTS_AT_MOST: usize = 16;

/// Requirements of a request on its connection to a server; empty if all connections to the server are alike.
#[derive(Default)]
pub struct Plan {
    /// Destination address, if it depends on the client.
    destination: Option<SocketAddr>,
    /// Source address, if it depends on the client.
    source: Option<SocketAddr>,
    /// Both addresses and the other distinguishing values as bytes, followed by the PROXY header.
    bytes: Option<Buffer>,
    /// Offset of the PROXY header in `bytes`.
    header_at: usize,
    /// Server name that its TLS handshake sends (SNI).
    pub(super) sni: Option<Box<str>>,
    /// Generation of the server for which the plan was made.
    pub(super) generation: u32,
}

impl Plan {
    /// Returns the key that an idle connection has to match.
    pub fn pool_key(&self) -> PoolKey<'_> {
        self.bytes.as_ref().map_or(PoolKey::COMMON, |bytes| PoolKey::new(bytes.data()))
    }

    /// Returns the key to store with the connection, whose source port is `port`.
    pub(super) fn keep(self, port: Option<SourcePort>) -> Option<Box<OwnedPoolKey>> {
        self.pool_key().keep(port)
    }
}

/// A connection attempt that is in progress.
pub struct ConnectAttempt {
    pub connecting: Opening,
    /// Key of the connection in the pool.
    pub pool_key: Option<Box<OwnedPoolKey>>,
    /// Generation of the server for which the connection is made.
    pub generation: u32,
    /// Server name that its TLS handshake sends (SNI).
    pub sni: Option<Box<str>>,
    destination: Address,
    header_at: usize,
}

/// Returns the name that the TLS handshake with a server asks for.
pub(super) fn server_identity(sni: Option<&str>, destination: &Address) -> ServerIdentity {
    asked_name(sni, destination.inet().map(|address| address.ip()))
}

impl ConnectAttempt {
    /// Creates the client side of TLS for a second attempt, which offers HTTP/1.1 alone if the server's `alpn` contains
    /// h2 or h3. `None`: it contains one of these, but not HTTP/1.1.
    pub fn begin_tls(&self, tls: &ServerTls) -> Option<Connection> {
        let offers = |protocol: &[u8]| tls.client.offers(protocol);
        let alpn = (offers(b"h2") || offers(b"h3")).then(|| [b"http/1.1".to_vec()]);
        if alpn.is_some() && !offers(b"http/1.1") {
            return None;
        }
        let asked = server_identity(self.sni.as_deref(), &self.destination);
        Connection::of_client(&tls.client, asked, alpn.as_ref().map(<[_; 1]>::as_slice)).ok()
    }

    /// Returns the writer of the PROXY header that precedes TLS.
    pub fn greeting(&self) -> Greeting {
        Greeting::through(&self.destination, false, false)
    }

    /// Returns the PROXY header of the connection.
    pub fn header(&self) -> &[u8] {
        let bytes = self.pool_key.as_ref().map_or(&[][..], |kept| kept.bytes());
        bytes.get(self.header_at..).unwrap_or_default()
    }
}

/// The PROXY header does not fit in the buffer.
pub struct HeaderTooLong;

impl Request<'_> {
    /// Determines the connection to `server` that this request needs.
    pub(super) fn plan(&mut self, server: &Server) -> Result<Plan, HeaderTooLong> {
        let shared = &self.session.worker.process;
        let generation = shared.pool.generation(server.serial);
        let orders = self.state.borrow().rules.orders.get();
        let tls = server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic());
        let sni = tls.and_then(|tls| self.evaluate_sni(tls.sni.as_ref()?));
        let mut name = Vec::new();
        let is_named = server.connecting.name.as_ref().is_some_and(|named| self.evaluate_name(named, &mut name));
        if !server.connecting.varies && !orders.marks_server() {
            if !is_named {
                return Ok(Plan { generation, sni, ..Plan::default() });
            }
            // Encoded like the name of a health check's connection.
            let mut bytes = rt::buffer();
            if !(bytes.push(b"n") && bytes.push(&name)) {
                return Err(HeaderTooLong);
            }
            let header_at = bytes.len();
            return Ok(Plan { bytes: Some(bytes), header_at, generation, sni, ..Plan::default() });
        }
        let address = shared.outgoing.address(server);
        let mut bytes = rt::buffer();
        let destination = self.followed(&address);
        let source = server.connecting.source.as_ref().and_then(|source| self.presented(source));
        let namespace = self.namespace().map_or("", |(name, _)| name);
        let told = if server.connecting.namespace == Some(Namespace::Told) { namespace } else { "" };
        // Each variable-length value has a length prefix, so that different plans never have the same bytes.
        let noted = [destination, source].into_iter().all(|address| note(address, &mut bytes))
            && bytes.push(&told.len().to_be_bytes())
            && bytes.push(told.as_bytes())
            && orders.server_mark.is_none_or(|mark| bytes.push(b"m") && bytes.push(&mark.to_be_bytes()))
            && orders.server_class.is_none_or(|class| bytes.push(&[b'c', class]))
            && (!is_named || (bytes.push(b"n") && bytes.push(&name.len().to_be_bytes()) && bytes.push(&name)));
        let header_at = bytes.len();
        let written = match &server.connecting.header {
            Some(header) => self.write_header(header, &mut bytes),
            None => Ok(()),
        };
        if !noted || written.is_err() {
            return Err(HeaderTooLong);
        }
        Ok(Plan { destination, source, bytes: Some(bytes), header_at, generation, sni })
    }

    /// Evaluates `pool-conn-name`: the name of this request's connection. Returns false if there is none.
    pub(super) fn evaluate_name(&self, named: &Expression, name: &mut Vec<u8>) -> bool {
        let state = self.state.borrow();
        EvalContext::request(self.session, &state).lend(|context| {
            let text = named.evaluate(context).and_then(|value| context.as_text(value));
            text.map(|text| name.extend_from_slice(text)).is_some()
        })
    }

    /// Evaluates `sni`: the server name for the handshake of this request's connection. `None`: there is none.
    fn evaluate_sni(&self, sni: &Expression) -> Option<Box<str>> {
        let mut name = Vec::new();
        let is_there = self.evaluate_name(sni, &mut name);
        String::from_utf8(name).ok().filter(|name| is_there && !name.is_empty()).map(String::into_boxed_str)
    }

    /// Resolves the wildcard address and the port offset of a server. `None`: the server's address is fixed.
    fn followed(&mut self, address: &ServerAddress) -> Option<SocketAddr> {
        let ServerAddress::Inet { ip, port } = address else { return None };
        if !ip.is_unspecified() && matches!(port, ServerPort::Exact(_)) {
            return None;
        }
        let destination = self.state.borrow().destination(self.session);
        let ip = if ip.is_unspecified() { destination.map_or(*ip, |client| client.ip()) } else { *ip };
        let port = match *port {
            ServerPort::Exact(port) => port,
            offset => offset.resolve(destination.map_or(0, |client| client.port())),
        };
        Some(SocketAddr::new(ip, port))
    }

    /// Returns the client's network namespace: that of its PROXY header, otherwise that of its listening socket.
    /// `None`: it is the process's own, or the configuration does not name it.
    pub(super) fn namespace(&self) -> Option<(&str, &Arc<rt::net::Namespace>)> {
        let outgoing = &self.session.worker.process.outgoing;
        if !outgoing.has_namespaces() {
            return None;
        }
        let told = self.session.proxy_header().and_then(|header| header.tlvs.first(kind::NETNS));
        match told {
            Some(name) => outgoing.namespace(std::str::from_utf8(name).ok()?),
            None => outgoing.namespace(self.session.bind()?.listening.socket.namespace.as_deref()?),
        }
    }

    /// Returns the source address for `usesrc`. `None`: neither the client nor its request has one.
    fn presented(&self, source: &Source) -> Option<SocketAddr> {
        match source.presented.as_ref()? {
            TransparentSource::Client => self.state.borrow().client(self.session),
            TransparentSource::ClientIp => {
                self.state.borrow().client(self.session).map(|client| SocketAddr::new(client.ip(), 0))
            }
            TransparentSource::Address(address) => Some(*address),
            TransparentSource::Header { name, occurrence } => {
                let ip = nth_address(&self.state.borrow().request, name, *occurrence)?;
                Some(SocketAddr::new(ip, 0))
            }
        }
    }

    /// Starts to connect. The error is the result of an attempt that has failed immediately.
    pub(super) fn launch(&self, server: &Server, mut plan: Plan) -> Result<ConnectAttempt, Attempt> {
        let worker = &self.session.worker;
        let route = worker.process.outgoing.route(server.serial).ok_or(Attempt::Refused)?;
        let destination = address_of(&worker.process.outgoing.address(server), &plan).ok_or(Attempt::Refused)?;
        let (connecting, port) = self
            .start(server, route, &destination, &plan, |to, options| self.open(to, options))
            .map_err(|missing| self.report(missing))?;
        metrics::server_session(worker, server);
        let (header_at, generation) = (plan.header_at, plan.generation);
        let sni = plan.sni.take();
        Ok(ConnectAttempt { connecting, destination, pool_key: plan.keep(port), header_at, generation, sni })
    }

    /// Connects, and sends the preamble of the plan. `special`: protocol that replaces the server's usual one (`ws`).
    pub(super) async fn connect(&mut self, server: &Server, plan: Plan, special: Option<MuxProtocol>) -> Attempt {
        let launched = match self.launch(server, plan) {
            Ok(launched) => launched,
            Err(over) => return over,
        };
        let ConnectAttempt { mut connecting, destination, pool_key, header_at, generation, sni } = launched;
        let own = self.state.borrow().rules.orders.get().timeouts;
        let deadline = own.connect.or(self.proxy.timeouts.connect).map(|limit| rt::now() + limit);
        let stream = match self.wait(deadline, |cx| Pin::new(&mut connecting).poll(cx)).await {
            WaitResult::Done(Ok(stream)) => stream,
            WaitResult::Done(Err(failure)) => {
                self.note_error(ConnectionError::of_system(failure.kind()));
                return Attempt::Refused;
            }
            WaitResult::Expired => {
                self.note_error(ConnectionError::NONE);
                return Attempt::Expired;
            }
            WaitResult::Gone => return Attempt::Gone,
        };
        let mut link = Link { pool_key, generation, ..Link::new(stream) };
        let header = link.pool_key.as_ref().map_or(0, |kept| kept.bytes().len());
        if header > header_at || server.connecting.socks4.is_some() {
            let followed = self.proxy.mode == Mode::Http;
            let mut greeting = Greeting::new(&destination, server, followed);
            let Link { carrier, pool_key, .. } = &mut link;
            let Some(stream) = carrier.transport() else { return Attempt::Unable };
            let bytes = pool_key.as_ref().map_or(&[][..], |kept| kept.bytes());
            let header = bytes.get(header_at..).unwrap_or_default();
            match self.wait(deadline, |cx| greeting.poll(cx, stream, header)).await {
                WaitResult::Done(Ok(())) => {}
                WaitResult::Done(Err(connection_preamble::Failed)) => return Attempt::Refused,
                WaitResult::Expired => return Attempt::Expired,
                WaitResult::Gone => return Attempt::Gone,
            }
        }
        match server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic()) {
            None => Attempt::Connected(link),
            Some(tls) => {
                let wanted = Wanted { server, tls, sni, special };
                rt::boxed(self.secure(link, wanted, &destination, deadline)).await
            }
        }
    }

    /// Performs the TLS handshake on a new connection.
    async fn secure(
        &mut self,
        link: Link,
        wanted: Wanted<'_>,
        destination: &Address,
        deadline: Option<Moment>,
    ) -> Attempt {
        let Wanted { server, tls, sni, special } = wanted;
        let alpn = special.map(|protocol| match protocol {
            MuxProtocol::Http2 => [b"h2".to_vec()],
            MuxProtocol::Qmux => [b"h3".to_vec()],
            MuxProtocol::Http1 | MuxProtocol::None | MuxProtocol::Quic | MuxProtocol::Fcgi | MuxProtocol::Spop => {
                [b"http/1.1".to_vec()]
            }
        });
        let asked = self.with_early_data(server_identity(sni.as_deref(), destination), server, tls, special);
        let alpn = alpn.as_ref().map(<[_; 1]>::as_slice);
        let Ok(client) = Connection::of_client(&tls.client, asked.clone(), alpn) else {
            self.note_error(ConnectionError::TLS_HANDSHAKE);
            return Attempt::Refused;
        };
        let Link { carrier, answers, glitches, private, first, generation, place, pool_key } = link;
        let Some(stream) = carrier.into_transport() else { return Attempt::Unable };
        let mut stream = stream.with_tls(client);
        if are_too_many(self.session.generation().program.global.max_tls_connections) {
            self.note_error(ConnectionError::TLS_TOO_MANY);
            return Attempt::Refused;
        }
        stream.begin_tls(&[]);
        let shaken = rt::in_class(rt::Class::Heavy, self.wait(deadline, |cx| stream.poll_handshake(cx))).await;
        let handshake = match (&shaken, stream.handshake_info()) {
            (WaitResult::Done(Ok(())), Some(state)) => {
                if server.connecting.negotiates {
                    tls.client.note_protocol(&asked, state.alpn.as_deref());
                }
                Some(Handshake::Made { resumed: state.resumed })
            }
            // Early data can be sent: the result of the handshake is recorded with the answer.
            (WaitResult::Done(Ok(())), None) => None,
            _ => Some(Handshake::Failed),
        };
        if let Some(handshake) = handshake {
            metrics::server_handshake(&self.session.worker, self.proxy.index, server.serial, handshake);
        }
        match shaken {
            WaitResult::Done(Ok(())) => {
                let carrier = Carrier::Own(stream);
                Attempt::Connected(Link { carrier, answers, glitches, private, first, generation, place, pool_key })
            }
            WaitResult::Done(Err(insecure)) => {
                tls.client.forget_protocols();
                self.note_error(tls_error(&insecure).0);
                self.state.borrow_mut().attempts.server_tls = stream.handshake_info().cloned();
                Attempt::Refused
            }
            WaitResult::Expired => {
                self.note_error(ConnectionError::TLS_TIMEOUT);
                Attempt::Expired
            }
            WaitResult::Gone => Attempt::Gone,
        }
    }

    /// Records the error of an attempt.
    pub(super) fn note_error(&self, error: ConnectionError) {
        self.state.borrow_mut().attempts.link = Some(LinkFacts { error, ..LinkFacts::default() });
    }

    /// Starts to connect by `open`, from the first available port of the source's range.
    pub(super) fn start<T>(
        &self,
        server: &Server,
        route: &Route,
        destination: &Address,
        plan: &Plan,
        open: impl Fn(&Address, &ConnectOptions) -> Result<T, Missing>,
    ) -> Result<(T, Option<SourcePort>), Missing> {
        if route.blocked {
            return Err(Missing::Here(Shortage::Source));
        }
        let through = server.connecting.socks4.as_ref().and_then(fixed_address);
        let to = through.as_ref().unwrap_or(destination);
        let mut options = self.options(server, route, to, plan);
        let Some(ports) = &route.ports else { return Ok((open(to, &options)?, None)) };
        // Ports that failed are returned to the range only at the end: no port is tried twice.
        let mut tried = Vec::new();
        let mut missing = Missing::Port;
        while tried.len() < PORTS_AT_MOST
            && let Some(port) = self.take_port(server, ports, tried.is_empty())
        {
            if let Some(Address::Inet(source)) = &mut options.to_mut().source {
                source.set_port(port.number());
            }
            match open(to, &options) {
                Ok(connecting) => return Ok((connecting, Some(port))),
                Err(Missing::Here(shortage @ (Shortage::Ports | Shortage::Source))) => {
                    // A port that was bound but cannot connect, as in TIME_WAIT, is reported as HAProxy reports it.
                    if shortage == Shortage::Ports {
                        missing = Missing::Here(shortage);
                    }
                    tried.push(port);
                }
                Err(other) => return Err(other),
            }
        }
        Err(missing)
    }

    /// Takes a free port of the source's range. If idle connections hold the last ones and `evicts` is set, one of
    /// these connections is closed.
    fn take_port(&self, server: &Server, ports: &Arc<SourcePorts>, evicts: bool) -> Option<SourcePort> {
        let worker = &self.session.worker;
        let evict = || evicts && worker.links.evict(&worker.process.pool, server.serial);
        ports.take().or_else(|| if evict() { ports.take() } else { None })
    }

    fn options<'r>(&self, server: &Server, route: &'r Route, to: &Address, plan: &Plan) -> Cow<'r, ConnectOptions> {
        let mut options = Cow::Borrowed(&route.options);
        let fits = |source: &SocketAddr| to.inet().is_some_and(|to| to.is_ipv4() == source.is_ipv4());
        if let Some(source) = plan.source.filter(fits) {
            let options = options.to_mut();
            options.source = Some(source.into());
            options.transparent = true;
        }
        if server.connecting.namespace == Some(Namespace::Told) {
            options.to_mut().namespace = self.namespace().map(|(_, namespace)| Arc::clone(namespace));
        }
        let orders = self.state.borrow().rules.orders.get();
        if orders.marks_server() {
            let options = options.to_mut();
            options.mark = orders.server_mark.or(options.mark);
            options.service_class = orders.server_class;
        }
        // Fast Open needs data to send with the SYN: only then is it enabled.
        if server.connecting.fast_open && (self.proxy.mode == Mode::Http || server.connecting.header.is_some()) {
            options.to_mut().fast_open = true;
        }
        options
    }

    /// Starts to connect. If file descriptors are exhausted, an idle connection is closed first.
    fn open(&self, to: &Address, options: &ConnectOptions) -> Result<Opening, Missing> {
        let worker = &self.session.worker;
        let pool = &worker.process.pool;
        let opened = match transport::try_connect(to, options) {
            Err(failure) if failure.shortage() == Some(Shortage::Descriptors) && worker.links.evict_any(pool) => {
                transport::try_connect(to, options)
            }
            opened => opened,
        };
        let connecting = opened.map_err(Missing::of)?;
        if connecting.number() >= self.session.generation().program.global.pool_high_descriptors {
            worker.links.evict_any(pool);
        }
        Ok(connecting)
    }

    /// Logs which resource is missing.
    pub(super) fn report(&self, missing: Missing) -> Attempt {
        self.note_error(missing.error());
        let name = &self.proxy.name;
        let limit = self.session.generation().program.global.descriptors;
        let reached = |what: &str, hint: &str| format!("Proxy {name} reached {what} (maxsock={limit}). {hint}");
        let (level, text) = match missing {
            Missing::Server(_) => return Attempt::Refused,
            Missing::Here(Shortage::Descriptors) => {
                (LogLevel::Emerg, reached("process FD limit", "Please check 'ulimit-n' and restart."))
            }
            Missing::Here(Shortage::SystemDescriptors) => {
                (LogLevel::Emerg, reached("system FD limit", "Please check system tunables."))
            }
            Missing::Here(Shortage::Memory) => {
                (LogLevel::Emerg, reached("system memory limit", "Please check system tunables."))
            }
            Missing::Here(Shortage::Ports) => {
                (LogLevel::Err, format!("Connect() failed for backend {name}: no free ports."))
            }
            Missing::Port | Missing::Here(Shortage::Source) => {
                (LogLevel::Emerg, format!("Cannot bind to source address before connect() for backend {name}."))
            }
        };
        let routes = &self.session.generation().logs;
        self.session.worker.logger.message_of(routes, self.proxy.index, level, &text);
        Attempt::Unable
    }
}

/// Reason why a connection could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// A resource of this machine.
    Here(Shortage),
    /// A free port of the source's range.
    Port,
    /// None is missing: the server refused immediately.
    Server(ErrorKind),
}

impl Missing {
    fn error(self) -> ConnectionError {
        match self {
            Self::Here(Shortage::Descriptors) => ConnectionError::DESCRIPTORS,
            Self::Here(Shortage::SystemDescriptors) => ConnectionError::SYSTEM_DESCRIPTORS,
            Self::Here(Shortage::Memory) => ConnectionError::MEMORY,
            Self::Here(Shortage::Ports) => ConnectionError::PORTS,
            Self::Here(Shortage::Source) => ConnectionError::SOURCE,
            Self::Port => ConnectionError::PORT_RANGE,
            Self::Server(kind) => ConnectionError::of_system(kind),
        }
    }

    /// Returns the reason of a failure.
    pub(super) fn of(failure: ConnectFailure) -> Self {
        failure.shortage().map_or(Self::Server(failure.error.kind()), Self::Here)
    }
}

/// Returns the address of a server for this plan.
pub(super) fn address_of(server: &ServerAddress, plan: &Plan) -> Option<Address> {
    match plan.destination {
        Some(destination) => Some(destination.into()),
        None => fixed_address(server),
    }
}

/// Appends an address with a length prefix. False: the buffer has no space for it.
#[must_use]
fn note(address: Option<SocketAddr>, out: &mut Buffer) -> bool {
    let Some(address) = address else { return out.push(&[0]) };
    let ip = match address.ip() {
        IpAddr::V4(ip) => out.push(&[4]) && out.push(&ip.octets()),
        IpAddr::V6(ip) => out.push(&[16]) && out.push(&ip.octets()),
    };
    ip && out.push(&address.port().to_be_bytes())
}

/// Returns an address of a list-based field: occurrence 1 is its first value over all lines, -1 the last one.
fn nth_address(request: &Head, name: &[u8], occurrence: i32) -> Option<IpAddr> {
    let values = || request.all(name).flat_map(|line| line.split(|byte| *byte == b','));
    let skipped = usize::try_from(occurrence.unsigned_abs()).ok()?.checked_sub(1)?;
    let value = if occurrence > 0 {
        values().nth(skipped)
    } else {
        values().count().checked_sub(skipped + 1).and_then(|place| values().nth(place))
    };
    std::str::from_utf8(value?.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_field_is_counted_from_either_end() {
        let mut request = Head::new();
        request.append(b"x-forwarded-for", b"10.0.0.1, 10.0.0.2");
        request.append(b"x-forwarded-for", b" 2001:db8::3 ,nonsense");
        for (occurrence, expected) in [
            (1, Some("10.0.0.1")),
            (2, Some("10.0.0.2")),
            (3, Some("2001:db8::3")),
            (4, None),
            (5, None),
            (0, None),
            (-1, None),
            (-2, Some("2001:db8::3")),
            (-4, Some("10.0.0.1")),
            (-5, None),
            (i32::MIN, None),
            (i32::MAX, None),
        ] {
            let found = nth_address(&request, b"x-forwarded-for", occurrence);
            assert_eq!(found, expected.map(|text| text.parse().expect("address")), "{occurrence}");
        }
        assert_eq!(nth_address(&request, b"x-other", -1), None);
    }
}
