//! Parameters of connections to a server (configuration manual, sections 4.2 and 5.2). Must never hold a socket.

use super::{QuicConnecting, ServerAddress};
use config::spec::MuxProtocol;
use expression::Expression;
use expression::log_format::LogFormat;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Parameters of a server's connections.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Connecting {
    /// Whether connections to the server differ in their addresses or in the bytes sent first. If not, any connection
    /// serves any request.
    pub varies: bool,
    /// `pool-conn-name`: a further property in which connections differ.
    pub name: Option<Expression>,
    /// `proto`: the protocol.
    pub protocol: Option<MuxProtocol>,
    /// QUIC; `None` for connections over TCP.
    pub quic: Option<QuicConnecting>,
    /// The protocol is negotiated in the TLS handshake.
    pub negotiates: bool,
    /// `ws`: the protocol for WebSocket requests; `None` for the same one. [`MuxProtocol::Quic`]: WebTransport sessions get connections
    /// of their own (`webtransport`).
    pub websockets: Option<MuxProtocol>,
    /// `idle-ping`: interval of liveness checks on idle connections.
    pub idle_ping: Option<Duration>,
    /// `ssl`, `check-ssl`: the TLS parameters.
    pub tls: Option<Box<ServerTls>>,
    /// `mptcp@`: use MPTCP if the kernel supports it.
    pub multipath: bool,
    /// `no-ssl` is specified.
    pub no_ssl: bool,
    /// `source`.
    pub source: Option<Source>,
    /// `send-proxy`, `send-proxy-v2`.
    pub header: Option<ProxyHeader>,
    /// `socks4`: the proxy to connect through.
    pub socks4: Option<ServerAddress>,
    /// `namespace`.
    pub namespace: Option<Namespace>,
    /// `tcp-ut`.
    pub user_timeout: Option<Duration>,
    /// `tcp-md5sig`.
    pub md5_password: Option<Box<str>>,
    /// `cc`.
    pub congestion_control: Option<Box<str>>,
    /// `tfo`.
    pub fast_open: bool,
    /// `option tcp-smart-connect`.
    pub smart: bool,
    /// `option srvtcpka`, with `srvtcpka-*`.
    pub keepalive: Option<KeepAlive>,
}

impl Connecting {
    /// The same, which servers have in common where nothing of it is their own: names and samples, addresses, TLS.
    pub(crate) fn shared(self) -> Arc<Self> {
        /// Different ones that are remembered.
        const MOST: usize = 8;
        static KNOWN: Mutex<VecDeque<Arc<Connecting>>> = Mutex::new(VecDeque::new());
        if self.name.is_some() || self.tls.is_some() || self.source.is_some() || self.header.is_some() {
            return Arc::new(self);
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|same| ***same == self) {
            return Arc::clone(same);
        }
        let own = Arc::new(self);
        known.push_front(Arc::clone(&own));
        known.truncate(MOST);
        own
    }
}

/// TLS towards a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTls {
    /// The TLS client.
    pub client: Arc<tls::Client>,
    /// Whether requests use TLS; if not, only checks do.
    pub traffic: TrafficSwitch,
    /// `sni`, `sni-auto`: the SNI of a request's connection.
    pub sni: Option<Expression>,
    /// Whether checks use TLS.
    pub checks: bool,
    /// `check-sni`.
    pub check_sni: Option<Box<str>>,
    /// `check-sni-auto`: HTTP checks use the host of their request as SNI, unless specified otherwise.
    pub names_checks: bool,
    /// `check-alpn`; `None` for that of requests.
    pub check_alpn: Option<Vec<Vec<u8>>>,
}

/// TLS of connections that carry no requests: to peers, to log servers, to name servers.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkTls {
    /// The TLS client.
    pub client: Arc<tls::Client>,
    /// `sni`: the SNI of every handshake.
    pub name: Option<Box<str>>,
}

impl ServerTls {
    /// Whether requests currently use TLS.
    pub fn carries_traffic(&self) -> bool {
        self.traffic.is_on()
    }
}

/// Whether requests to a server use TLS; `set server … ssl` changes it.
#[derive(Debug)]
pub struct TrafficSwitch {
    written: bool,
    now: AtomicBool,
    changed: AtomicBool,
}

impl TrafficSwitch {
    /// Creates the switch with the configured value.
    pub fn new(written: bool) -> Self {
        Self { written, now: AtomicBool::new(written), changed: AtomicBool::new(false) }
    }

    /// Whether requests use TLS.
    pub fn is_on(&self) -> bool {
        self.now.load(Ordering::Relaxed)
    }

    /// Changes the value. Callers have to close the idle connections of the server afterwards.
    pub fn set(&self, on: bool) {
        self.now.store(on, Ordering::Relaxed);
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Whether the value was changed at run time.
    pub fn was_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }
}

impl Clone for TrafficSwitch {
    fn clone(&self) -> Self {
        let (now, changed) = (AtomicBool::new(self.is_on()), AtomicBool::new(self.was_changed()));
        Self { written: self.written, now, changed }
    }
}

/// Compares the configured values.
impl PartialEq for TrafficSwitch {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

/// `srvtcpka-cnt`, `srvtcpka-idle` and `srvtcpka-intvl`; `None` for the system's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepAlive {
    /// Number of unanswered probes before the connection is closed.
    pub count: Option<u32>,
    /// Idle time before the first probe, in seconds.
    pub idle: Option<u32>,
    /// Interval of probes in seconds.
    pub interval: Option<u32>,
}

/// `source`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The address to bind to. A wildcard without a port is not bound.
    pub address: SocketAddr,
    /// The range of source ports, first and last.
    pub ports: Option<(u16, u16)>,
    /// `usesrc`: the source address to present to the server instead.
    pub presented: Option<TransparentSource>,
    /// `interface`.
    pub interface: Option<Box<str>>,
}

/// `usesrc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransparentSource {
    /// The client's address and port.
    Client,
    /// The client's address.
    ClientIp,
    /// A fixed address.
    Address(SocketAddr),
    /// The address in a field of the request; not bound if there is none.
    Header {
        /// Name of the field, in lower case.
        name: Box<[u8]>,
        /// Occurrence of the value: 1 is the first one, -1 the last one, 0 none.
        occurrence: i32,
    },
}

/// `send-proxy` and `send-proxy-v2`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyHeader {
    /// Version 2.
    pub binary: bool,
    /// `proxy-v2-options crc32c`.
    pub checksum: bool,
    /// `proxy-v2-options unique-id`.
    pub unique_id: bool,
    /// `proxy-v2-options authority`.
    pub authority: bool,
    /// `proxy-v2-options pass-tlv`: the TLVs of the client's header are sent as well.
    pub pass_tlvs: bool,
    /// `proxy-v2-options ssl`: properties of the client's TLS.
    pub ssl: Option<ProxySsl>,
    /// `set-proxy-v2-tlv-fmt`.
    pub fields: Box<[ProxyField]>,
}

/// Properties of the client's TLS in a PROXY header, in addition to the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProxySsl {
    /// `cert-cn`: the common name of the client's certificate.
    pub client_name: bool,
    /// `cert-key`: the key algorithm of the frontend's certificate.
    pub key: bool,
    /// `cert-sig`: the signature algorithm of the frontend's certificate.
    pub signature: bool,
    /// `ssl-cipher`.
    pub cipher: bool,
}

/// A `set-proxy-v2-tlv-fmt`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyField {
    pub kind: u8,
    /// The format as configured.
    pub text: Box<str>,
    /// The compiled format.
    pub format: LogFormat,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespace {
    /// A named namespace.
    Named(Box<str>),
    /// `*`: the namespace in the client's PROXY header.
    Told,
}

impl Source {
    /// Whether there is an address or a port to bind to.
    pub fn binds(&self) -> bool {
        !self.address.ip().is_unspecified() || self.address.port() != 0
    }
}
