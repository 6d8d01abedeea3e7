//! A configuration made ready to run: names are indices, addresses are resolved, durations are durations. Nothing
//! in a program ever changes but that its lists of proxies and of servers grow; what changes at run time lives in
//! crate [`live`]. Must never hold a socket, a count or text that
//! still has to be interpreted.

mod acme;
mod address;
mod connecting;
mod errors;
mod fcgi;
mod filter;
mod global;
mod http;
mod http_client;
mod index;
mod lent;
mod limits;
mod listening;
mod log;
mod log_forward;
mod mail;
mod name;
mod ocsp;
mod otel;
mod peers;
mod peers_plan;
mod proxy;
mod resolvers;
mod runtime;
pub mod saved_state;
mod shape;
mod spoe;
mod state;
mod stats_page;
pub mod tls;
mod tracking;
mod userlist;

pub use self::tls::{CrtLine, CrtLines, CrtList, TlsListener, TlsParts};
pub use acme::{Acme, AcmeCertificate, AcmeSection, Challenge, Kept};
pub use address::{BindAddress, SYSLOG, ServerAddress, ServerPort};
pub use config::spec::MuxProtocol;
pub use connecting::{
    Connecting, KeepAlive, LinkTls, Namespace, Presented, ProxyField, ProxyHeader, ProxySsl, ServerTls, Source,
    TrafficSwitch,
};
pub use errors::{ErrorPages, Page};
pub use fcgi::{FcgiAction, FcgiApp, FcgiLog, FcgiRule};
pub use filter::{
    Bandwidth, CacheFilter, Compression, CompressionFilter, Filter, Filters, ScriptFilter, SharedBandwidth, Trace,
};
pub use global::{Global, GlobalCompression, Http2Limits, SharedCounters, SocketBuffers, StreamLimits};
pub use http::{AddressField, GlobalHttp, Http};
pub use http_client::HttpClient;
pub use index::ProgramIndex;
pub use lent::Lent;
pub use limits::{BackendLimits, FrontendLimits};
pub use listening::{ExpectedHeader, Listening, Reception, Segments, SocketOptions};
pub use log::{
    EVENTS, LogAddress, LogLines, LogMoment, LogProfile, LogServer, LogTarget, PROVISIONING, PROVISIONING_RING,
    ProfileStep, Ring, RingServer, Sample, UniqueId,
};
pub use log_forward::LogForward;
pub use mail::{MailAlert, MailServer};
pub use name::MutableName;
pub use ocsp::OcspUpdates;
pub use otel::{
    OtelCarrier, OtelExporter, OtelExporters, OtelFilter, OtelFinish, OtelFormat, OtelMetrics, OtelReference,
    OtelScope, OtelSpan, OtelSpanEvent, OtelTrace,
};
pub use peers::{Peer, Peers, SharedTable};
pub use peers_plan::PeersPlan;
pub use proxy::{Backend, Bind, Frontend, Options, Proxy, Redispatch, Server, Timeouts};
pub use resolvers::{AddressChoice, Hold, Nameserver, Resolvers, Resolving};
pub use runtime::{Runtime, RuntimeSocket};
pub use shape::Difference;
pub use spoe::{SpoeAgent, SpoeCall, SpoeEvents, SpoeLog, SpoeMessage, SpoeTrigger};
pub use stats_page::StatsPage;
pub use tracking::Tracking;
pub use userlist::{Password, User, Userlist};

use crate::registry::Registry;
use ::tls::details::Wanted;
use base::AppendOnlyVec;
use expression::Conversion;
use expression::key::Keys;
use expression::pattern::Lists;
use expression::variable::{Known, Stored, Variable};
use live::cache::CachePlan;
use live::table::StickTable;
use std::sync::Arc;

/// A whole configuration, shared by all workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// What holds for the process.
    pub global: Global,
    /// Every proxy in file order, then those that the runtime API adds; a proxy's `index` is its place here. Disabled
    /// ones stay, so that indices hold.
    pub proxies: AppendOnlyVec<Arc<Proxy>>,
    /// Where commands find them.
    pub index: ProgramIndex,
    /// Caches.
    pub caches: Vec<CachePlan>,
    /// Rings of log lines.
    pub rings: Vec<Ring>,
    /// Relays of log lines.
    pub log_forwards: Vec<LogForward>,
    /// Where the standard error of FastCGI applications goes, by section.
    pub fcgi_logs: Vec<FcgiLog>,
    /// Where the lines of agents go, by engine.
    pub spoe_logs: Vec<SpoeLog>,
    /// `log-profile` sections.
    pub profiles: Box<[LogProfile]>,
    /// Name servers, by section.
    pub resolvers: Vec<Resolvers>,
    /// Certificates that are obtained.
    pub acme: Acme,
    /// How OCSP answers are kept fresh.
    pub ocsp: OcspUpdates,
    /// What requests of the process itself are sent with.
    pub http_client: HttpClient,
    /// Where telemetry is sent.
    pub otel_exporters: OtelExporters,
    /// Which metrics are sent there.
    pub otel_metrics: Option<OtelMetrics>,
    /// Instances that share stick tables, by section.
    pub peers: Vec<Arc<Peers>>,
    /// Users, by list.
    pub userlists: Vec<Userlist>,
    /// Network namespaces that a PROXY header may name, and those of `bind` lines.
    pub namespaces: Vec<Box<str>>,
    /// Number of servers over all backends that the configuration knows: those that the runtime API adds have a larger
    /// [`Server::serial`].
    pub servers: usize,
    /// The runtime API.
    pub runtime: Runtime,
    /// Variables of the process that the configuration sets, in order.
    pub variables: Vec<(Variable, Stored)>,
    /// The names of variables.
    pub names: Known,
    /// The names of the configuration's files.
    pub files: Box<[Box<str>]>,
    /// Lists of patterns: what ACLs and maps look up in.
    pub lists: Lists,
    /// What is kept of TLS handshakes for samples.
    pub wanted: Arc<Wanted>,
    /// Public keys that tokens are verified with.
    pub keys: Keys,
    /// The rows and services that it was compiled with: what the runtime API adds may name them.
    pub registry: Registry,
    /// The maps of [`Registry::maps`], in their order.
    pub script_maps: Box<[Conversion]>,
    /// Descriptors that `debug` and traces write to: 1, 2, both or none.
    pub event_descriptors: Box<[i32]>,
    /// Lines of `traces` sections: the words after `trace`.
    pub traces: Box<[Box<[Box<str>]>]>,
    /// Stick tables, of proxies and of `peers` sections, in the order in which they are written.
    pub tables: Vec<StickTable>,
    /// Where backends log that are added, by the `defaults` section that they start from: opened with the rest, so that it is open then.
    pub spare_logs: Vec<Vec<LogTarget>>,
    /// Lists of certificates, keys of tickets and what else of TLS belongs to no line.
    pub tls: tls::TlsParts,
}
