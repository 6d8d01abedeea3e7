//! A configuration made ready to run: names are indices, addresses are resolved, durations are durations. A program
//! never changes; what may change at run time lives in [`crate::live`]. Must never hold a socket, a count or text that
//! still has to be interpreted.

mod address;
mod connecting;
mod errors;
mod global;
mod http;
mod limits;
mod listening;
mod log;
mod proxy;
mod runtime;

pub use address::{BindAddress, ServerAddress, ServerPort};
pub use connecting::{Connecting, KeepAlive, Namespace, Presented, ProxyField, ProxyHeader, Source};
pub use errors::ErrorPages;
pub use global::{Global, SocketBuffers};
pub use http::{AddressField, GlobalHttp, Http};
pub use limits::{BackendLimits, FrontendLimits};
pub use listening::{ExpectedHeader, Listening, Reception, Segments, SocketOptions};
pub use log::{LogAddress, LogLines, LogMoment, LogTarget, Ring, RingServer, Sample};
pub use proxy::{Backend, Bind, Frontend, Options, Proxy, Redispatch, Server, Timeouts};
pub use runtime::{Runtime, RuntimeSocket};

use std::sync::Arc;

/// A whole configuration, shared by all workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// What holds for the process.
    pub global: Global,
    /// Every proxy in file order; a proxy's `index` is its place here. Disabled ones stay, so that indices hold.
    pub proxies: Vec<Arc<Proxy>>,
    /// Rings of log lines.
    pub rings: Vec<Ring>,
    /// Network namespaces that a PROXY header may name, and those of `bind` lines.
    pub namespaces: Vec<Box<str>>,
    /// Number of servers over all backends: the bound of [`Server::serial`].
    pub servers: usize,
    /// The runtime API.
    pub runtime: Runtime,
}
