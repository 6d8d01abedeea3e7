//! What a proxy and the process do to HTTP messages (configuration manual, section 4), ready to be done: names are lower
//! case, spellings are looked up. Must never know a message.

use config::spec::{ForwardedPart, ForwardedSpec, RestrictNames, StatusCodes};
use expression::Expression;
use std::net::IpAddr;
use std::sync::Arc;
use wire::h1::Spelling;
use wire::http::Head;

/// A field that tells servers an address: `option forwardfor`, `option originalto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressField {
    /// `except`: addresses of this network and prefix length get no field.
    pub except: Option<(IpAddr, u8)>,
    /// The field's name, lower case.
    pub header: Box<str>,
    /// `if-none`: only where the request has no such field.
    pub if_none: bool,
}

/// A proxy's options about HTTP. Those of the client's side count in the frontend, those of the server's side in the
/// backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Http {
    /// `option forwardfor`.
    pub forwardfor: Option<AddressField>,
    /// `option originalto`.
    pub originalto: Option<AddressField>,
    /// `option forwarded`, of the backend.
    pub forwarded: Option<ForwardedSpec>,
    /// Expressions that give parts of it.
    pub forwarded_expressions: Box<[(ForwardedPart, Expression)]>,
    /// `http-send-name-header`, of the backend; lower case.
    pub send_name_header: Option<Box<[u8]>>,
    /// `option http-restrict-req-hdr-names`.
    pub restrict_names: RestrictNames,
    /// `option http-buffer-request`.
    pub buffer_request: bool,
    /// `option http-drop-request-trailers`, of the backend.
    pub drop_request_trailers: bool,
    /// `option http-drop-response-trailers`, of the frontend.
    pub drop_response_trailers: bool,
    /// `option http-ignore-probes`, of the frontend.
    pub ignore_probes: bool,
    /// `option accept-unsafe-violations-in-http-request`, of the frontend.
    pub accept_unsafe_request: bool,
    /// `option accept-unsafe-violations-in-http-response`, of the backend.
    pub accept_unsafe_response: bool,
    /// `option http-use-proxy-header`, of the frontend.
    pub use_proxy_header: bool,
    /// `option http-pretend-keepalive`, of the backend.
    pub pretend_keepalive: bool,
    /// `option checkcache`, of the backend.
    pub check_cache: bool,
    /// `option disable-h2-upgrade`, of the frontend.
    pub disable_h2_upgrade: bool,
    /// `option h1-case-adjust-bogus-client`, where there are spellings.
    pub client_spelling: Option<Arc<Spelling>>,
    /// `option h1-case-adjust-bogus-server`, where there are spellings.
    pub server_spelling: Option<Arc<Spelling>>,
}

/// What holds for HTTP everywhere (configuration manual, sections 3.1 and 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalHttp {
    /// `http-err-codes`: statuses that count as errors of the client.
    pub err_codes: StatusCodes,
    /// `http-fail-codes`: statuses that count as failures of the server.
    pub fail_codes: StatusCodes,
    /// `h1-accept-payload-with-any-method`.
    pub accept_payload_with_any_method: bool,
    /// `h1-do-not-close-on-insecure-transfer-encoding`.
    pub keep_insecure_transfer_encoding: bool,
}

impl Http {
    /// Whether a client speaks to Weir as to a proxy: with a whole URL, where `option http-use-proxy-header` is on.
    pub fn asks_as_proxy(&self, request: &Head) -> bool {
        self.use_proxy_header && !matches!(request.target(), [b'/' | b'*', ..])
    }

    /// The field in which a request says who asks: a proxy is told in one of its own.
    pub fn credentials<'a>(&self, request: &'a Head) -> Option<&'a [u8]> {
        request.first(self.credentials_field(request))
    }

    /// Its name.
    pub fn credentials_field(&self, request: &Head) -> &'static [u8] {
        if self.asks_as_proxy(request) { b"proxy-authorization" } else { b"authorization" }
    }
}
