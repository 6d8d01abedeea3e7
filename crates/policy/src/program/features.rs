//! The optional features that a proxy's configuration uses, as bits of one word: a stage of a request tests the word once
//! before it asks the recorders and rules of that stage. Must never be narrower than the configuration: a bit that is set
//! without need costs time, a bit that is missing disables a feature.

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
    /// Checks of a request before it is forwarded: its body, passwords, rules, the statistics page.
    pub const SCREENING: Self = Self(1 << 3);
    /// Fields that are added to a request.
    pub const FIELDS: Self = Self(1 << 4);
    /// Captures of requests and responses.
    pub const CAPTURES: Self = Self(1 << 5);
    /// `monitor-uri`.
    pub const MONITORING: Self = Self(1 << 6);
    /// Persistence: rules that choose servers, stick tables, cookies.
    pub const PERSISTENCE: Self = Self(1 << 7);
    /// Inspection of responses: rules, `option checkcache`.
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
    /// Exchanges that do more than forward: attempts after an answer, or a second one beside it (`retry-on`, `hedge-requests`),
    /// messages of applications that are logged.
    pub const ATTEMPTS: Self = Self(1 << 15);
    /// Checks of the names of a request's fields.
    pub const NAMES: Self = Self(1 << 16);
    /// `option splice-*`.
    pub const SPLICING: Self = Self(1 << 13);

    /// `timeout stream`.
    pub const STREAM_TIMEOUT: Self = Self(1 << 17);

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
