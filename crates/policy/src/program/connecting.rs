//! How connections to a server are made (configuration manual, sections 4.2 and 5.2). Must never hold a socket.

use super::{MuxProtocol, ServerAddress};
use expression::Expression;
use expression::log_format::LogFormat;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is set before a connection to a server is made, and what it begins with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Connecting {
    /// Whether connections to the server differ from each other in more than their age: in their addresses or in what
    /// they began with. If not, any of them serves any request.
    pub varies: bool,
    /// `pool-conn-name`: what else they differ in.
    pub name: Option<Expression>,
    /// `proto`: what is spoken over them.
    pub protocol: Option<MuxProtocol>,
    /// What is spoken is what the handshake of TLS agrees on.
    pub negotiates: bool,
    /// `ws`: what is spoken for requests of websockets; `None`: the same.
    pub websockets: Option<MuxProtocol>,
    /// `idle-ping`: how often an idle connection is asked whether its server is there.
    pub idle_ping: Option<Duration>,
    /// `ssl`, `check-ssl`: how they are secured.
    pub tls: Option<Box<ServerTls>>,
    /// `mptcp@`: by MPTCP where the kernel has it.
    pub multipath: bool,
    /// `no-ssl` is written.
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
    /// `option srvtcpka`; with `srvtcpka-*`.
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
    /// What is asked of it.
    pub client: Arc<tls::Client>,
    /// Whether requests go by TLS; else checks alone.
    pub traffic: TrafficSwitch,
    /// `sni`, `sni-auto`: the name that a request asks for.
    pub sni: Option<Expression>,
    /// Whether checks go by TLS.
    pub checks: bool,
    /// `check-sni`.
    pub check_sni: Option<Box<str>>,
    /// `check-sni-auto`: checks of HTTP ask for the host that their request names, where nothing else is written.
    pub names_checks: bool,
    /// `check-alpn`; `None`: as requests.
    pub check_alpn: Option<Vec<Vec<u8>>>,
}

/// TLS of connections that carry no request: to peers, to servers of log lines, to name servers.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkTls {
    /// What is asked of the other end.
    pub client: Arc<tls::Client>,
    /// `sni`: the name that every handshake asks for.
    pub name: Option<Box<str>>,
}

impl ServerTls {
    /// Whether requests go by TLS now.
    pub fn carries_traffic(&self) -> bool {
        self.traffic.is_on()
    }
}

/// Whether requests to a server go by TLS, which `set server … ssl` changes.
#[derive(Debug)]
pub struct TrafficSwitch {
    written: bool,
    now: AtomicBool,
    changed: AtomicBool,
}

impl TrafficSwitch {
    /// As the line says.
    pub fn new(written: bool) -> Self {
        Self { written, now: AtomicBool::new(written), changed: AtomicBool::new(false) }
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.now.load(Ordering::Relaxed)
    }

    /// Switches it. Callers have the idle connections of the server forgotten afterwards.
    pub fn set(&self, on: bool) {
        self.now.store(on, Ordering::Relaxed);
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Whether it was switched.
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

/// Lines are the same that say the same.
impl PartialEq for TrafficSwitch {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

/// `srvtcpka-cnt`, `srvtcpka-idle` and `srvtcpka-intvl`; `None` leaves it to the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepAlive {
    /// Probes without an answer before the connection is given up.
    pub count: Option<u32>,
    /// Seconds of silence before the first probe.
    pub idle: Option<u32>,
    /// Seconds between two probes.
    pub interval: Option<u32>,
}

/// `source`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The address to bind to. With a wildcard and no port there is nothing to bind.
    pub address: SocketAddr,
    /// The range of ports to take one from, first and last.
    pub ports: Option<(u16, u16)>,
    /// `usesrc`: the address to show to the server instead.
    pub presented: Option<Presented>,
    /// `interface`.
    pub interface: Option<Box<str>>,
}

/// `usesrc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presented {
    /// The client's address and port.
    Client,
    /// The client's address.
    ClientIp,
    /// This one.
    Address(SocketAddr),
    /// The address in a field of the request; none is bound where there is none.
    Header {
        /// The field's name, lower case.
        name: Box<[u8]>,
        /// Which of its values: 1 is the first one, -1 the last one, 0 none.
        occurrence: i32,
    },
}

/// `send-proxy` and `send-proxy-v2`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyHeader {
    /// The second version.
    pub binary: bool,
    /// `proxy-v2-options crc32c`.
    pub checksum: bool,
    /// `proxy-v2-options unique-id`.
    pub unique_id: bool,
    /// `proxy-v2-options authority`.
    pub authority: bool,
    /// `proxy-v2-options ssl`: what is known of the client's TLS.
    pub ssl: Option<ProxySsl>,
    /// `set-proxy-v2-tlv-fmt`.
    pub fields: Box<[ProxyField]>,
}

/// What a PROXY header tells of the client's TLS beside its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProxySsl {
    /// `cert-cn`: the common name of the client's certificate.
    pub client_name: bool,
    /// `cert-key`: the key of the certificate that the client was shown.
    pub key: bool,
    /// `cert-sig`: how that is signed.
    pub signature: bool,
    /// `ssl-cipher`.
    pub cipher: bool,
}

/// One `set-proxy-v2-tlv-fmt`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxyField {
    /// The type.
    pub kind: u8,
    /// The format as written.
    pub text: Box<str>,
    /// The same, compiled.
    pub format: LogFormat,
}

/// `namespace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespace {
    /// This one.
    Named(Box<str>),
    /// `*`: the one that the client's PROXY header tells.
    Told,
}

impl Source {
    /// Whether there is an address or a port to bind to.
    pub fn binds(&self) -> bool {
        !self.address.ip().is_unspecified() || self.address.port() != 0
    }
}
