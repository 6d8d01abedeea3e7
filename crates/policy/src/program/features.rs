//! The optional features that a proxy's configuration uses, as bits of one word: a stage of a request tests the word once
//! before it asks the recorders and rules of that stage. Must never be narrower than the configuration: a bit that is set
//! without need costs time, a bit that is missing disables a feature.

use config::spec::{BalanceSpec, RestrictNames};

use super::{Backend, Proxy};

/// A set of optional features. A stream has the union of its frontend's and its backend's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u32);

impl Features {
    /// Rules of any set, which may also track, set variables and order filters.
    pub const RULES: Self = Self(1);
    /// Filters on heads and bodies.
    pub const FILTERS: Self = Self(1 << 1);
    /// Spans: `otel-trace`, `filter otel`.
    pub const SPANS: Self = Self(1 << 2);
    /// Checks of a request before it is forwarded: names of fields, its body, passwords, rules, the statistics page.
    pub const SCREENING: Self = Self(1 << 3);
    /// Fields that are added to a request.
    pub const FIELDS: Self = Self(1 << 4);
    /// Captures of requests and responses.
    pub const CAPTURES: Self = Self(1 << 5);
    /// `monitor-uri`.
    pub const MONITORING: Self = Self(1 << 6);
    /// What binds a request to a server: rules, stick tables, cookies.
    pub const PERSISTENCE: Self = Self(1 << 7);
    /// What looks at responses: rules, `option checkcache`.
    pub const RESPONSE_RULES: Self = Self(1 << 8);
    /// Log lines before the end of a stream, or facts that have to be asked for before it.
    pub const EARLY_LOG: Self = Self(1 << 9);
    /// ACME: requests for the proof of a certificate's names.
    pub const PROOFS: Self = Self(1 << 10);
    /// A FastCGI application.
    pub const FCGI: Self = Self(1 << 11);
    /// Servers whose responses are watched: ejections, hedged requests.
    pub const WATCHED_RESPONSES: Self = Self(1 << 12);
    /// Log lines with the address that the connection to the server comes from.
    pub const SOURCE_LOG: Self = Self(1 << 14);
    /// `option splice-*`.
    pub const SPLICING: Self = Self(1 << 13);

    /// Features of a proxy, in either role.
    pub fn of(proxy: &Proxy) -> Self {
        let (http, filters) = (&proxy.http, &proxy.filters);
        let frontend = proxy.frontend.as_ref();
        let traced = frontend.is_some_and(|own| own.trace.is_some());
        let screened = http.restrict_names != RestrictNames::Preserve
            || http.buffer_request
            || proxy.backend.as_ref().is_some_and(checks_post)
            || !proxy.slow_userlists.is_empty()
            || proxy.stats.is_some()
            || proxy.rules.see_requests();
        let identified = frontend.and_then(|own| own.unique_id.as_ref()).is_some_and(|own| own.header.is_some());
        let fields = http.forwardfor.is_some()
            || http.originalto.is_some()
            || http.forwarded.is_some()
            || http.send_name_header.is_some()
            || identified;
        let splice = &proxy.options.splice;
        Self::default()
            .with_if(!proxy.rules.are_absent(), Self::RULES)
            .with_if(filters.are_wanted || !filters.list.is_empty(), Self::FILTERS)
            .with_if(traced || !filters.otel.is_empty(), Self::SPANS)
            .with_if(screened, Self::SCREENING)
            .with_if(fields, Self::FIELDS)
            .with_if(frontend.is_some_and(|own| own.captures.is_some()), Self::CAPTURES)
            .with_if(proxy.monitor_uri.is_some(), Self::MONITORING)
            .with_if(proxy.rules.see_answers() || http.check_cache, Self::RESPONSE_RULES)
            .with_if(splice.auto || splice.request || splice.response, Self::SPLICING)
            .with(proxy.backend.as_ref().map(Self::of_backend).unwrap_or_default())
    }

    fn of_backend(backend: &Backend) -> Self {
        let choice = &backend.choice;
        let persists = !choice.rules.is_empty()
            || !choice.stick.is_empty()
            || !choice.persistence.is_empty()
            || backend.persistence.cookie.is_some();
        Self::default()
            .with_if(persists, Self::PERSISTENCE)
            .with_if(backend.fcgi.is_some(), Self::FCGI)
            .with_if(backend.heeds_answers() || backend.limits.hedge.is_some(), Self::WATCHED_RESPONSES)
    }

    /// Returns the union of two sets.
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the union of both sets if `condition` holds.
    #[inline]
    pub const fn with_if(self, condition: bool, other: Self) -> Self {
        if condition { self.with(other) } else { self }
    }

    /// Whether the set is empty.
    #[inline]
    pub const fn are_none(self) -> bool {
        self.0 == 0
    }

    /// Whether one of the features of `other` is in the set.
    #[inline]
    pub const fn have(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Whether the balance algorithm may hash a parameter of the request's body.
fn checks_post(backend: &Backend) -> bool {
    matches!(backend.balance, BalanceSpec::UrlParam { check_post: true, .. })
}
