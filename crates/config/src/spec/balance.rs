//! How a server is chosen: `balance` and the keywords about hashes (configuration manual, section 4).

use crate::span::Spanned;

/// `balance`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BalanceSpec {
    /// `roundrobin`.
    RoundRobin,
    /// `static-rr`.
    StaticRr,
    /// `leastconn`.
    LeastConn,
    /// `first`.
    First,
    /// `source`.
    Source,
    /// `uri`.
    Uri(UriSpec),
    /// `url_param`.
    UrlParam {
        /// The parameter.
        name: String,
        /// `check_post`: look for it in the bodies of POST requests too, and wait for them.
        check_post: bool,
    },
    /// `hdr(name)`.
    Header {
        /// The field, lower case.
        name: String,
        /// `use_domain_only`.
        domain_only: bool,
    },
    /// `rdp-cookie(name)`.
    RdpCookie {
        /// The cookie; `mstshash` where none is written.
        name: String,
    },
    /// `sticky`: the same server for as long as it is there.
    Sticky,
    /// `log-hash`: the converters that make a key of a log line.
    LogHash(Spanned<String>),
    /// `hash`: the expression.
    Hash(Spanned<String>),
    /// `ewma` or `ewma(time)`, Weir's own.
    Ewma {
        /// Milliseconds over which a slow answer is forgotten; default 10 s.
        decay: u64,
    },
    /// `random` or `random(draws)`; default 2 draws. Also what no `balance` line means.
    Random {
        /// Servers drawn, of which the least loaded is taken.
        draws: u32,
    },
}

impl Default for BalanceSpec {
    /// The manual: "random" where no other algorithm was set.
    fn default() -> Self {
        Self::Random { draws: 2 }
    }
}

impl BalanceSpec {
    /// Whether it needs an HTTP request.
    pub fn needs_http(&self) -> bool {
        matches!(self, Self::Uri(_) | Self::UrlParam { .. } | Self::Header { .. })
    }

    /// Whether log lines can be given to servers by it.
    pub fn takes_log_lines(&self) -> bool {
        matches!(self, Self::RoundRobin | Self::Random { .. } | Self::Sticky | Self::LogHash(_))
    }
}

/// `balance uri`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UriSpec {
    /// `len`: so many characters at most.
    pub len: Option<u32>,
    /// `depth`: up to the slash behind so many directories.
    pub depth: Option<u32>,
    /// `whole`: the query string too.
    pub whole: bool,
    /// `path-only`: from the path on.
    pub path_only: bool,
}

/// The keywords about hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HashSpec {
    /// `hash-type`: the method.
    pub method: HashMethod,
    /// `hash-type`: the function; `None` where none is written: `sdbm`, and with `consistent` its avalanche.
    pub function: Option<HashFunction>,
    /// `hash-type … avalanche`.
    pub avalanche: bool,
    /// `hash-balance-factor`, per cent of the average load; `None`: no bound.
    pub balance_factor: Option<u32>,
    /// `hash-preserve-affinity`.
    pub affinity: HashAffinity,
}

/// How a hash is mapped to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum HashMethod {
    #[default]
    MapBased,
    Consistent,
}

/// What makes a number of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HashFunction {
    Sdbm,
    Djb2,
    Wt6,
    Crc32,
    /// The key is the number.
    None,
}

/// `hash-preserve-affinity`: when a request leaves the server that its hash chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashAffinity {
    /// `always`: never.
    #[default]
    Always,
    /// `maxconn`: when all slots of the server are taken.
    Maxconn,
    /// `maxqueue`: when its queue is full.
    Maxqueue,
}

/// `hash-key`: what places a server in a consistent hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum HashKey {
    #[default]
    Id,
    Id32,
    Guid,
    Addr,
    AddrPort,
}

/// What of a server the balance reads beside its weight.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerBalanceSpec {
    /// `hash-key`.
    pub hash_key: HashKey,
    /// `guid`.
    pub guid: Option<String>,
    /// `slowstart`, milliseconds.
    pub slowstart: Option<u64>,
}
