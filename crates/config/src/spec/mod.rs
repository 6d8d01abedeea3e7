//! What a configuration says, as plain comparable data: names are not resolved, nothing is opened, `defaults` are
//! already merged into each proxy. Must never hold anything that runs.

mod address;
mod bind;
mod global;
mod http;
mod limits;
mod log;
mod processors;
mod proxy;
mod rights;
mod runtime;
mod server;

pub use address::{AddressSpec, Family, HostSpec, PortSpec, SocketKind};
pub use bind::BindSpec;
pub use global::{GlobalSpec, TuneSpec};
pub use http::{ForwardedSpec, GlobalHttpSpec, HttpSpec, OriginalToSpec, RestrictNames, StatusCodes};
pub use limits::{ProxyLimitsSpec, RatesSpec, RetryOn, ServerLimitsSpec};
pub use log::{LogFormatSpec, LogLevel, LogSpec, LogTargetSpec, SyslogFormat};
pub use processors::{CpuAffinity, CpuMapSpec, CpuPolicy, CpuSetSpec, CpuUnit, ProcessorsSpec};
pub use proxy::{
    BalanceSpec, CloseMode, ErrorFileSpec, ForwardForSpec, HttpReuse, Mode, OptionsSpec, ProxyKind, ProxySpec,
    SpliceSpec, TimeoutsSpec,
};
pub use rights::{AccountSpec, Capability, ChrootSpec, Confinement, RightsSpec};
pub use runtime::{RuntimeAccess, RuntimeLevel, RuntimeSpec, SeverityOutput};
pub use server::ServerSpec;

/// A whole configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spec {
    /// The `global` sections, merged.
    pub global: GlobalSpec,
    /// Every `frontend`, `backend` and `listen`, in file order.
    pub proxies: Vec<ProxySpec>,
}
