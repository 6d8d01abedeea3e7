//! The state that Weir has to serve, as plain data: what the translation of Kubernetes' objects returns and the driver applies. It owns no
//! text of a configuration: names and values are kept as they are, and only the writer of the configuration quotes them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Everything that Weir has to serve.
///
/// Values are shared, so that two states are compared by address first: a change of one object keeps all other values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// One frontend for each address and port.
    pub frontends: BTreeMap<SocketAddr, Arc<Frontend>>,
    /// Backends by name. A name has letters, digits, `-`, `_`, `.` and `:` alone.
    pub backends: BTreeMap<String, Arc<Backend>>,
    /// Certificates by name: PEM with the chain and the private key.
    pub certificates: BTreeMap<String, Arc<str>>,
    /// Bundles of certificates of authorities by name, in PEM.
    pub authorities: BTreeMap<String, Arc<str>>,
}

/// A listening address with its routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontend {
    pub kind: FrontendKind,
}

/// The protocol of a frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontendKind {
    /// HTTP, over TLS if it has certificates.
    Http { tls: Option<Tls>, routes: Vec<Route> },
    /// TLS that is not decrypted, or is decrypted before a backend of mode TCP: a backend for each name.
    Tls { names: BTreeMap<String, TlsTarget> },
    /// One backend for all connections.
    Tcp { backend: String },
}

/// The certificates of a frontend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Hostnames of the listeners: a name, `*.example.com`, or `*`. If the most specific one of a request's host is not that of the
    /// handshake's server name, the request is answered 421 (RFC 9110 section 15.5.20).
    pub hostnames: Vec<String>,
    /// Names of certificates for each server name: `example.com`, `*.example.com`, or `*` for all others.
    pub certificates: BTreeMap<String, Vec<String>>,
    /// The bundle that clients' certificates are verified with, and whether connections without a certificate are accepted.
    pub clients: Option<ClientCertificates>,
}

/// How certificates of clients are verified. If it is `optional`, connections without a certificate and with one that is not valid
/// are accepted too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    pub authorities: String,
    pub optional: bool,
}

/// The target of connections with a server name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsTarget {
    /// The connection is forwarded as it is.
    Passthrough { backend: String },
    /// TLS ends here, with these certificates.
    Terminate { backend: String, certificates: Vec<String> },
}

/// An entry of a table of routes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// `example.com`, `*.example.com`, or `*` for all hosts; lower case, without a port.
    pub host: String,
    pub path: PathMatch,
    pub method: Option<String>,
    pub headers: Vec<ValueMatch>,
    pub query: Vec<ValueMatch>,
    /// The order of entries that fit equally well: the smaller one precedes. It begins with the age of the object, its name, the position.
    pub order: String,
    pub backend: String,
}

/// A condition on the path of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathMatch {
    Exact(String),
    /// A prefix of whole elements, without a slash at its end: an empty one fits all paths.
    Prefix(String),
    Regex(String),
}

/// A condition on the value of a header field or of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueMatch {
    /// Lower case for a header field.
    pub name: String,
    pub value: Pattern,
}

/// A text, or a regular expression that has to fit the whole text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    Exact(String),
    Regex(String),
}

/// A backend: the servers of one port of a Service, or a rule of a route with filters, several Services or an answer of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub kind: BackendKind,
    /// Filters in the order in which they run.
    pub filters: Vec<Filter>,
    pub servers: BTreeMap<String, Server>,
    /// How connections to the servers speak.
    pub protocol: Protocol,
    pub tls: Option<ServerTls>,
    pub timeouts: Timeouts,
    /// Attempts after the first one, and the statuses that count as failures.
    pub retries: Option<Retries>,
    pub cookie: Option<SessionCookie>,
}

/// The work of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// HTTP requests are forwarded to the servers.
    Http,
    /// Connections are forwarded to the servers.
    Tcp,
    /// Each request is answered with a status and no body.
    Status(u16),
    Redirect(Redirect),
}

/// The parts of a redirection that differ from the request. Without a port it is that on which the request came; the port of the scheme
/// is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redirect {
    pub scheme: Option<String>,
    pub host: Option<String>,
    pub port: Option<u16>,
    pub path: Option<PathChange>,
    pub status: u16,
}

/// A change of the path of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathChange {
    Full(String),
    /// The matched prefix of whole elements and its replacement.
    Prefix {
        matched: String,
        replacement: String,
    },
}

/// A filter of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    SetRequestHeader {
        name: String,
        value: String,
    },
    AddRequestHeader {
        name: String,
        value: String,
    },
    RemoveRequestHeader {
        name: String,
    },
    SetResponseHeader {
        name: String,
        value: String,
    },
    AddResponseHeader {
        name: String,
        value: String,
    },
    RemoveResponseHeader {
        name: String,
    },
    SetHost {
        value: String,
    },
    SetPath(PathChange),
    /// A copy of `numerator` of `denominator` requests goes to another backend.
    Mirror {
        backend: String,
        numerator: u32,
        denominator: u32,
    },
    Cors(Cors),
    /// An answer to `numerator` of `denominator` requests, with a status and no body: the share of a backend that does not exist.
    Answer {
        status: u16,
        numerator: u32,
        denominator: u32,
    },
}

/// Answers to requests of other origins (the Fetch standard).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    pub origins: Vec<String>,
    pub methods: Vec<String>,
    pub headers: Vec<String>,
    pub expose_headers: Vec<String>,
    pub credentials: bool,
    /// Seconds.
    pub max_age: u32,
}

/// An address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub address: IpAddr,
    pub port: u16,
    /// 0 to 256.
    pub weight: u16,
    /// Whether it gets no new requests, as its pod is terminating.
    pub is_draining: bool,
    /// Header fields that requests to this server get alone.
    pub request_headers: Vec<Filter>,
}

/// The protocol of connections to servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    #[default]
    Http1,
    /// HTTP/2, without TLS by prior knowledge.
    Http2,
    /// HTTP/1 with upgrades to WebSocket.
    WebSocket,
}

/// TLS to servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The server name of handshakes, which the certificate has to have unless `names` is not empty.
    pub server_name: String,
    /// Names of which the certificate has to have one.
    pub names: Vec<String>,
    /// The bundle's name; the system's authorities without one.
    pub authorities: Option<String>,
    /// The certificate that Weir sends.
    pub certificate: Option<String>,
}

/// Times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    pub request: Option<u64>,
    pub backend_request: Option<u64>,
}

/// Repetitions of a request whose server has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    pub attempts: u32,
    pub statuses: Vec<u16>,
}

/// A cookie that names the server of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCookie {
    pub name: String,
    /// Seconds; until the client's program ends without it.
    pub lifetime: Option<u64>,
}
