//! Limits, queues and retries of `global`, a proxy and a server: concurrency, rates, number of attempts. Must never
//! count anything.

use super::{HedgeSpec, MaxconnStoreSpec, OutlierSpec, RetryBudgetSpec};

/// Failures after which a request is retried (configuration manual, "retry-on").
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetryOn(u32);

impl RetryOn {
    /// `none`.
    pub const NONE: Self = Self(0);
    /// `conn-failure`: no connection was established, so nothing was sent. The default.
    pub const CONN_FAILURE: Self = Self(1);
    /// `empty-response`: the connection was closed before the first byte of a response.
    pub const EMPTY_RESPONSE: Self = Self(1 << 1);
    /// `junk-response`: the response is not a complete HTTP head.
    pub const JUNK_RESPONSE: Self = Self(1 << 2);
    /// `response-timeout`: `timeout server` expired before a response.
    pub const RESPONSE_TIMEOUT: Self = Self(1 << 3);
    /// `0rtt-rejected`: the server rejected early data.
    pub const EARLY_DATA_REJECTED: Self = Self(1 << 4);

    /// The words of a `retry-on` line except `none`, each with its meaning.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("conn-failure", Self::CONN_FAILURE),
        ("empty-response", Self::EMPTY_RESPONSE),
        ("junk-response", Self::JUNK_RESPONSE),
        ("response-timeout", Self::RESPONSE_TIMEOUT),
        ("0rtt-rejected", Self::EARLY_DATA_REJECTED),
        (
            "all-retryable-errors",
            Self(0b1_1111 | Self::of("500") | Self::of("502") | Self::of("503") | Self::of("504")),
        ),
    ];

    /// Statuses that can be listed. Their bits follow those of the words.
    const STATUSES: [&'static str; 12] =
        ["401", "403", "404", "408", "421", "425", "429", "500", "501", "502", "503", "504"];
    const FIRST_STATUS: u32 = 5;

    const fn of(status: &str) -> u32 {
        let mut index = 0;
        while index < Self::STATUSES.len() {
            let (known, given) = (Self::STATUSES[index].as_bytes(), status.as_bytes());
            if given.len() == 3 && known[0] == given[0] && known[1] == given[1] && known[2] == given[2] {
                return 1 << (Self::FIRST_STATUS + index as u32);
            }
            index += 1;
        }
        0
    }

    /// Returns the meaning of a word of the line; `None` if it is unknown.
    pub fn word(text: &str) -> Option<Self> {
        let word = Self::WORDS.iter().find(|word| word.0 == text).map(|word| word.1);
        word.or_else(|| Some(Self(Self::of(text))).filter(|status| status.0 != 0))
    }

    /// Returns the set with a response's status; the empty set for a status that cannot be listed.
    pub fn status(status: u16) -> Self {
        let known = |text: &&str| text.parse() == Ok(status);
        Self::STATUSES.iter().find(|text| known(text)).map_or(Self::NONE, |text| Self(Self::of(text)))
    }

    /// Returns the union of both sets.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the set contains a failure.
    pub const fn contains(self, failure: Self) -> bool {
        failure.0 != 0 && self.0 & failure.0 == failure.0
    }

    /// Whether a request that was already sent may be retried, so that it must be kept.
    pub const fn keeps_request(self) -> bool {
        self.0 & !(Self::CONN_FAILURE.0 | Self::EARLY_DATA_REJECTED.0) != 0
    }
}

impl Default for RetryOn {
    fn default() -> Self {
        Self::CONN_FAILURE
    }
}

impl std::fmt::Debug for RetryOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = Self::WORDS.iter().filter(|word| word.1.0.count_ones() == 1 && self.contains(word.1));
        let statuses = Self::STATUSES.iter().filter(|status| self.0 & Self::of(status) != 0);
        f.debug_set().entries(words.map(|word| word.0)).entries(statuses).finish()
    }
}

/// Limits of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimitsSpec {
    /// `rate-limit sessions`: maximum number of new sessions per second; `None` means no limit.
    pub rate_limit_sessions: Option<u32>,
    /// `max-session-srv-conns`: maximum number of idle server connections that a client's session keeps for itself.
    pub max_session_srv_conns: u32,
    /// `option prefer-last-server`.
    pub prefer_last_server: bool,
    /// `max-keep-alive-queue`: queue length above which a server is no longer preferred; `None` means no limit.
    pub max_keep_alive_queue: Option<u32>,
    /// `retry-on`.
    pub retry_on: RetryOn,
    /// `eject-outliers`.
    pub outliers: Option<OutlierSpec>,
    /// `retry-budget`.
    pub retry_budget: Option<RetryBudgetSpec>,
    /// `hedge-requests`.
    pub hedge: Option<HedgeSpec>,
}

impl Default for ProxyLimitsSpec {
    fn default() -> Self {
        Self {
            rate_limit_sessions: None,
            max_session_srv_conns: 5,
            prefer_last_server: false,
            max_keep_alive_queue: None,
            retry_on: RetryOn::default(),
            outliers: None,
            retry_budget: None,
            hedge: None,
        }
    }
}

/// Limits of a server, in addition to `maxconn` and `maxqueue`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerLimitsSpec {
    /// `minconn`; `None`: the limit is `maxconn` at any load.
    pub minconn: Option<u32>,
    /// `strict-maxconn`.
    pub strict_maxconn: bool,
    /// `maxconn-store`; `None`: each process has a `maxconn` of its own.
    pub store: Option<MaxconnStoreSpec>,
}

/// Process-wide rates per second; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RatesSpec {
    /// `maxconnrate`: connections from clients.
    pub connections: Option<u32>,
    /// `maxsessrate`: sessions.
    pub sessions: Option<u32>,
    /// `maxsslrate`: TLS sessions.
    pub tls_sessions: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::RetryOn;

    #[test]
    fn every_word_and_status_is_told_from_the_others() {
        let all = RetryOn::word("all-retryable-errors").unwrap_or(RetryOn::NONE);
        for (text, in_all) in [
            ("conn-failure", true),
            ("empty-response", true),
            ("junk-response", true),
            ("response-timeout", true),
            ("0rtt-rejected", true),
            ("401", false),
            ("404", false),
            ("429", false),
            ("500", true),
            ("501", false),
            ("502", true),
            ("503", true),
            ("504", true),
        ] {
            let Some(word) = RetryOn::word(text) else { panic!("{text}") };
            assert!(word.contains(word), "{text}");
            assert_eq!(all.contains(word), in_all, "{text}");
            assert_eq!(format!("{word:?}"), format!("{{{text:?}}}"));
            if let Ok(status) = text.parse() {
                assert_eq!(RetryOn::status(status), word);
            }
        }
        for text in ["none", "418", "", "50", "5030"] {
            assert_eq!(RetryOn::word(text), None, "{text}");
        }
        assert!(!all.contains(RetryOn::status(200)));
        assert!(!RetryOn::default().keeps_request() && all.keeps_request());
    }
}
