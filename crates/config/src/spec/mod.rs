//! The configuration as plain comparable data: names are not resolved, nothing is opened, `defaults` are
//! already merged into each proxy. Must never hold anything that runs.

mod acme;
mod address;
mod balance;
mod bgp;
mod bind;
mod cache;
mod certificate;
mod check;
mod compression;
mod connecting;
mod defaults;
mod error_file;
mod fcgi;
mod filter;
mod global;
mod http;
mod http_client;
mod kept;
mod lifetime;
mod limits;
mod listening;
mod log;
mod log_forward;
mod lua;
mod machine;
mod mail;
mod otel;
mod peers;
mod persistence;
mod processors;
mod proxy;
mod quic;
mod reliability;
mod resolvers;
mod rights;
mod ring;
mod rules;
mod runtime;
mod runtime_access;
mod server;
mod shared;
mod spoe;
mod stats_page;
mod store;
mod table;
mod threads;
mod tls;
mod tokens;
mod trace;
mod udp;
mod userlist;

pub use acme::{AcmeChallenge, AcmeMac, AcmeReady, AcmeSpec, GlobalAcmeSpec};
pub use address::{AddressSpec, Family, HostSpec, PortSpec, SocketKind};
pub use balance::{BalanceSpec, HashAffinity, HashFunction, HashKey, HashMethod, HashSpec, ServerBalanceSpec, UriSpec};
pub use bgp::{BgpAnnounceSpec, BgpNeighborSpec, BgpPrefixSpec, BgpSpec};
pub use bind::BindSpec;
pub use cache::{CacheSpec, EarlyHints};
pub use certificate::{CertificateSource, CrtStoreSpec, ExtraFilesSpec, LoadSpec, UsedCertificateSpec};
pub use check::{
    AgentSpec, CheckMethod, CheckSpec, GlobalChecksSpec, HealthcheckSpec, InitialState, MysqlVersion, Observe, OnError,
    OwnCheckSpec, ProtocolCheck, ServerCheckSpec,
};
pub use compression::{CompressionAlgorithm, CompressionDirection, CompressionSpec, GlobalCompressionSpec};
pub use connecting::{
    ConnectingDefaultsSpec, ConnectingSpec, InitialAddress, PresentedSource, ProxyFieldSpec, ProxyHeaderSpec,
    SourceSpec,
};
pub use defaults::DefaultsSpec;
pub use error_file::{ErrorAnswerSpec, ErrorFileSpec};
pub use fcgi::{FcgiAppSpec, FcgiRuleSpec};
pub use filter::{BandwidthSpec, FilterSpec, FiltersSpec, PlainFilter, ScriptFilterSpec, SharedLimitSpec, TraceSpec};
pub use global::{
    GlitchTuneSpec, GlobalSpec, Http2ErrorsSpec, Http2TuneSpec, PurgeSpec, SetVariableSpec, StreamsLoadSpec, TuneSpec,
    VariablesTuneSpec,
};
pub use http::{
    ForwardedExpressionSpec, ForwardedPart, ForwardedSpec, GlobalHttpSpec, HttpErrorsSpec, HttpSpec, OriginalToSpec,
    RestrictNames, StatusCodes,
};
pub use http_client::HttpClientSpec;
pub use kept::{KeptSpec, StateFileSpec, StateSource};
pub use lifetime::{CloseSpread, LifetimeSpec};
pub use limits::{ProxyLimitsSpec, RatesSpec, RetryOn, ServerLimitsSpec};
pub use listening::{
    KeepAliveSpec, ListenerTuneSpec, ListeningSpec, MultiQueue, MuxProtocol, ReceptionSpec, ShardsSpec, UnixBindSpec,
};
pub use log::{
    LogFormatSpec, LogLevel, LogLinesSpec, LogProfileSpec, LogProfileStepSpec, LogSpec, LogStep, LogSteps,
    LogTargetSpec, SyslogFormat,
};
pub use log_forward::{LogForwardSpec, LogHost};
pub use lua::{LuaLibraries, LuaPathSpec, LuaScriptSpec, LuaSpec, LuaStderr};
pub use machine::{DriverSpec, MachineSpec};
pub use mail::{EmailAlertSpec, MailersSpec};
pub use otel::{
    METRIC_SCOPES, OtelCarrierSpec, OtelEvent, OtelExporterSpec, OtelFileSpec, OtelFilterSpec, OtelMetricsSpec,
    OtelPipelineSpec, OtelSampler, OtelScopeSpec, OtelSpanSpec, OtelStatus, OtelTraceSpec, WHOLE_SAMPLE,
};
pub use peers::{PeerSpec, PeerTableSpec, PeersSpec};
pub use persistence::{CookieMode, CookieSpec, PersistenceSpec, ServerPersistenceSpec};
pub use processors::{CpuAffinity, CpuMapSpec, CpuPolicy, CpuSetSpec, CpuUnit, ProcessorsSpec};
pub use proxy::{
    CloseMode, ForwardForSpec, HttpReuse, Mode, OptionsSpec, ProxyKind, ProxySpec, SpliceSpec, TimeoutsSpec,
};
pub use quic::{QlogSpec, QuicBindSpec, QuicCongestion, QuicConnectingSpec, QuicServerTuneSpec, QuicTuneSpec};
pub use reliability::{HedgeDelay, HedgeSpec, OutlierSpec, RetryBudgetSpec};
pub use resolvers::{DnsFamilies, HoldSpec, NameserverSpec, ResolversSpec, ResolvingSpec};
pub use rights::{AccountSpec, Capability, ChrootSpec, Confinement, RightsSpec};
pub use ring::{LogProtocol, RingServerSpec, RingSpec};
pub use rules::{CaptureSlotSpec, CapturesSpec, PersistRuleSpec, RuleLineSpec, RuleSpec, RulesSpec};
pub use runtime::RuntimeSpec;
pub use runtime_access::{RuntimeAccess, RuntimeLevel, SeverityOutput};
pub use server::{ServerLogSpec, ServerSpec};
pub use shared::Shared;
pub use spoe::{SpoeAgentSpec, SpoeEngineSpec, SpoeEvent, SpoeFilterSpec, SpoeGroupSpec, SpoeMessageSpec};
pub use stats_page::StatsPageSpec;
pub use store::{LimitSpec, LostMode, MaxconnStoreSpec, StoreSectionSpec, StoreServerSpec};
pub use table::{DataForm, DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
pub use threads::{Parity, ThreadRange, ThreadsSpec};
pub use tls::{
    BindTlsSpec, GlobalOcspSpec, GlobalTlsSpec, ServerTlsSpec, TlsDefaults, TlsSpec, TlsVersion, TlsVersionsSpec,
    VerifyClients,
};
pub use tokens::{TOKEN_ALGORITHMS, TOKEN_ENCODINGS, TokensSpec};
pub use trace::TraceLineSpec;
pub use udp::{QuicPassthroughSpec, ServerIdPlace, UdpSpec};
pub use userlist::{PasswordSpec, UserSpec, UserlistSpec};

/// A whole configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    /// The `global` sections, merged.
    pub global: GlobalSpec,
    /// The sections that are neither `global` nor proxies.
    pub sections: SectionsSpec,
    /// Every `frontend`, `backend` and `listen`, in file order.
    pub proxies: Vec<ProxySpec>,
    /// Every named `defaults` section, in file order.
    pub defaults: Vec<DefaultsSpec>,
}

/// The sections that are neither `global` nor proxies, each kind in file order (configuration manual, section 12).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SectionsSpec {
    /// `cache`.
    pub caches: Vec<CacheSpec>,
    /// `crt-store`.
    pub crt_stores: Vec<CrtStoreSpec>,
    /// `acme`.
    pub acme: Vec<AcmeSpec>,
    /// `fcgi-app`.
    pub fcgi_apps: Vec<FcgiAppSpec>,
    /// Content of the files of `filter spoe`, one entry per filter.
    pub spoe_engines: Vec<SpoeEngineSpec>,
    /// Content of the files of `filter otel`, one entry per filter.
    pub otel_filters: Vec<OtelFileSpec>,
    /// `http-errors`.
    pub http_errors: Vec<HttpErrorsSpec>,
    /// `log-profile`.
    pub log_profiles: Vec<LogProfileSpec>,
    /// `ring`.
    pub rings: Vec<RingSpec>,
    /// `log-forward`.
    pub log_forwards: Vec<LogForwardSpec>,
    /// `mailers`.
    pub mailers: Vec<MailersSpec>,
    /// Lines of `traces`, in file order.
    pub traces: Vec<TraceLineSpec>,
    /// `peers`.
    pub peers: Vec<PeersSpec>,
    /// `healthcheck`.
    pub healthchecks: Vec<HealthcheckSpec>,
    /// `resolvers`.
    pub resolvers: Vec<ResolversSpec>,
    /// `store`; Weir's own.
    pub stores: Vec<StoreSectionSpec>,
    /// `bgp`.
    pub bgp: Vec<BgpSpec>,
    /// `userlist`.
    pub userlists: Vec<UserlistSpec>,
    /// `namespace_list`: the namespaces that PROXY headers may name.
    pub namespaces: Vec<crate::span::Spanned<String>>,
}
