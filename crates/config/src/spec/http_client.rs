//! The internal HTTP client (configuration manual, section 3.4). Must never send a request.

use crate::span::Spanned;

/// `httpclient.*`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HttpClientSpec {
    /// `httpclient.resolvers.disabled`.
    pub resolves_nothing: bool,
    /// `httpclient.resolvers.id`; `None`: `default`, if there is such a section.
    pub resolvers: Option<Spanned<String>>,
    /// `httpclient.resolvers.prefer ipv4`.
    pub prefers_ipv4: bool,
    /// `httpclient.retries`; default 3.
    pub retries: Option<u32>,
    /// `httpclient.ssl.ca-file`; `None`: the system's root certificates.
    pub ca_file: Option<Spanned<String>>,
    /// `httpclient.ssl.verify none`.
    pub trusts_servers: bool,
    /// `httpclient.timeout.connect`, milliseconds; default 5000.
    pub connect_timeout: Option<u64>,
}
