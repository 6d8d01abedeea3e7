//! HTTP options of a proxy and of the process (configuration manual, section 4): names are in lower case, case
//! adjustments are compiled. Must never know a message.

use config::spec::{ForwardedPart, ForwardedSpec, RestrictNames, StatusCodes};
use expression::Expression;
use std::net::IpAddr;
use std::sync::Arc;
use wire::h1::Spelling;
use wire::http::Head;

/// A field that contains an address for servers: `option forwardfor`, `option originalto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressField {
    /// `except`: network and prefix length of addresses for which no field is added.
    pub except: Option<(IpAddr, u8)>,
    /// Name of the field in lower case.
    pub header: Box<str>,
    /// `if-none`: only if the request has no such field.
    pub if_none: bool,
}

/// HTTP options of a proxy. Options of the client side apply in the frontend, those of the server side in the backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Http {
    /// `option forwardfor`.
    pub forwardfor: Option<AddressField>,
    /// `option originalto`.
    pub originalto: Option<AddressField>,
    /// `option forwarded`, of the backend.
    pub forwarded: Option<ForwardedSpec>,
    /// Expressions for parts of the Forwarded field.
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
    /// `option h1-case-adjust-bogus-client`, if there are case adjustments.
    pub client_spelling: Option<Arc<Spelling>>,
    /// `option h1-case-adjust-bogus-server`, if there are case adjustments.
    pub server_spelling: Option<Arc<Spelling>>,
}

/// Global HTTP options (configuration manual, sections 3.1 and 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalHttp {
    /// `http-err-codes`: statuses that count as client errors.
    pub err_codes: StatusCodes,
    /// `http-fail-codes`: statuses that count as server failures.
    pub fail_codes: StatusCodes,
    /// `h1-accept-payload-with-any-method`.
    pub accept_payload_with_any_method: bool,
    /// `h1-do-not-close-on-insecure-transfer-encoding`.
    pub keep_insecure_transfer_encoding: bool,
}

impl Http {
    /// Whether a client uses Weir as a proxy: with an absolute URI, if `option http-use-proxy-header` is set.
    pub fn asks_as_proxy(&self, request: &Head) -> bool {
        self.use_proxy_header && !matches!(request.target(), [b'/' | b'*', ..])
    }

    /// Returns the value of the request's credentials field, which depends on whether Weir is used as a proxy.
    pub fn credentials<'a>(&self, request: &'a Head) -> Option<&'a [u8]> {
        request.first(self.credentials_field(request))
    }

    /// Returns the name of the request's credentials field.
    pub fn credentials_field(&self, request: &Head) -> &'static [u8] {
        if self.asks_as_proxy(request) { b"proxy-authorization" } else { b"authorization" }
    }
}
