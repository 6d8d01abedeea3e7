//! A compiled configuration: names are indices, addresses are resolved, durations are typed. A program is immutable,
//! except that its lists of proxies and servers grow; run-time state is in crate [`live`]. Must never hold a socket, a
//! counter, or text that still has to be parsed.

mod acme;
mod address;
mod bgp;
mod connecting;
mod decisions;
mod errors;
mod fcgi;
mod features;
mod filter;
mod global;
mod http;
mod http_client;
mod index;
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
mod program_context;
mod proxy;
mod quic;
mod resolvers;
mod runtime;
pub mod saved_state;
mod shape;
mod spoe;
mod state;
mod stats_page;
mod store;
pub mod tls;
mod tracking;
mod udp;
mod userlist;

pub use self::tls::{CrtLine, CrtLines, CrtList, TlsListener, TlsParts, TlsTraffic};
pub use acme::{Acme, AcmeCertificate, AcmeSection, CertificateStorage, Challenge, SharedAcme};
pub use address::{BindAddress, SYSLOG, ServerAddress, ServerPort};
pub use bgp::{BgpCondition, BgpNeighbor, BgpSpeaker};
pub use config::spec::MuxProtocol;
pub use connecting::{
    Connecting, KeepAlive, LinkTls, Namespace, ProxyField, ProxyHeader, ProxySsl, ServerTls, Source, TrafficSwitch,
    TransparentSource,
};
pub use decisions::DecisionRule;
pub(crate) use decisions::number_decision_rules;
pub use errors::{ErrorPages, Page};
pub use fcgi::{FcgiAction, FcgiApp, FcgiLog, FcgiRule};
pub use features::Features;
pub use filter::{
    Bandwidth, CacheFilter, Compression, CompressionFilter, Filter, Filters, ScriptFilter, SharedBandwidth, Trace,
};
pub use global::{Global, GlobalCompression, Http2Limits, SharedCounters, SocketBuffers, StreamLimits};
pub use http::{AddressField, GlobalHttp, Http};
pub use http_client::HttpClient;
pub use index::ProgramIndex;
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
pub use program_context::ProgramContext;
pub use proxy::{Backend, Bind, Frontend, Options, Proxy, Redispatch, Server, Timeouts};
pub use quic::{QlogLimits, QuicConnecting, QuicLimits, QuicListening, QuicServerLimits, QuicStreamLimits};
pub use resolvers::{AddressChoice, Hold, Nameserver, Resolvers, Resolving};
pub use runtime::{Runtime, RuntimeSocket};
pub use shape::Difference;
pub use spoe::{SpoeAgent, SpoeCall, SpoeEvents, SpoeLog, SpoeMessage, SpoeTrigger};
pub use stats_page::StatsPage;
pub use store::{Login, Password as StorePassword, Store, StoreServer, Stores};
pub use tracking::Tracking;
pub use udp::{FlowSettings, QuicPassthrough};
pub use userlist::{Password, User, Userlist};

use crate::registry::Registry;
use ::tls::details::DetailSet;
use base::AppendOnlyVec;
use expression::Conversion;
use expression::key::Keys;
use expression::pattern::Lists;
use expression::variable::{StoredValue, Variable, VariableNames};
use live::cache::CachePlan;
use live::table::StickTable;
use std::sync::Arc;

/// A complete configuration, shared by all workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The `global` section.
    pub global: Global,
    /// All proxies in file order, followed by those that the runtime API adds; a proxy's `index` is its index here.
    /// Disabled ones are kept, so that indices are stable.
    pub proxies: AppendOnlyVec<Arc<Proxy>>,
    /// Index of names, for commands.
    pub index: ProgramIndex,
    pub caches: Vec<CachePlan>,
    pub rings: Vec<Ring>,
    pub log_forwards: Vec<LogForward>,
    /// Log targets for the standard error of FastCGI applications, by section.
    pub fcgi_logs: Vec<FcgiLog>,
    /// Log targets of agents, by engine.
    pub spoe_logs: Vec<SpoeLog>,
    /// `log-profile` sections.
    pub profiles: Box<[LogProfile]>,
    /// `bgp` sections.
    pub bgp: Vec<BgpSpeaker>,
    /// `resolvers` sections.
    pub resolvers: Vec<Resolvers>,
    /// Certificates obtained with ACME.
    pub acme: Acme,
    /// Parameters of OCSP updates.
    pub ocsp: OcspUpdates,
    /// Parameters of the process's own requests.
    pub http_client: HttpClient,
    pub otel_exporters: OtelExporters,
    /// Exported metrics.
    pub otel_metrics: Option<OtelMetrics>,
    /// `peers` sections.
    pub peers: Vec<Arc<Peers>>,
    pub userlists: Vec<Userlist>,
    /// Network namespaces that a PROXY header may name, and those of `bind` lines.
    pub namespaces: Vec<Box<str>>,
    /// Number of servers of the configuration in all backends: servers that the runtime API adds have a larger
    /// [`Server::serial`].
    pub servers: usize,
    pub runtime: Runtime,
    /// Process variables that the configuration sets, in order.
    pub variables: Vec<(Variable, StoredValue)>,
    pub names: VariableNames,
    /// The names of the configuration files.
    pub files: Box<[Box<str>]>,
    /// Pattern lists of ACLs and maps.
    pub lists: Lists,
    /// Properties of TLS handshakes that samples use.
    pub wanted: Arc<DetailSet>,
    /// Public keys for the verification of tokens.
    pub keys: Keys,
    /// The rows and services used for compilation: objects added by the runtime API may refer to them.
    pub registry: Registry,
    /// The maps of [`Registry::maps`], in order.
    pub script_maps: Box<[Conversion]>,
    /// File descriptors that `debug` and traces write to: 1, 2, both or none.
    pub event_descriptors: Box<[i32]>,
    /// `traces` lines: the words after `trace`.
    pub traces: Box<[Box<[Box<str>]>]>,
    /// Stick tables of proxies and `peers` sections, in the order of the configuration.
    pub tables: Vec<StickTable>,
    /// Log targets of added backends, by their `defaults` section: opened at startup, to be available later.
    pub spare_logs: Vec<Vec<LogTarget>>,
    /// `store` sections.
    pub stores: Stores,
    /// Certificate lists, ticket keys, and other TLS objects that belong to no line.
    pub tls: tls::TlsParts,
}
