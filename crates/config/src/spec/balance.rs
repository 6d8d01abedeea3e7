//! Load balancing: `balance` and the keywords about hashes (configuration manual, section 4).

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
        name: String,
        /// `check_post`: also search the bodies of POST requests, and wait for them.
        check_post: bool,
    },
    /// `hdr(name)`.
    Header {
        /// Name of the field, in lower case.
        name: String,
        /// `use_domain_only`.
        domain_only: bool,
    },
    /// `rdp-cookie(name)`.
    RdpCookie {
        /// Name of the cookie; default `mstshash`.
        name: String,
    },
    /// `sticky`: the same server as long as it is available.
    Sticky,
    /// `log-hash`: the converters that compute a key from a log line.
    LogHash(Spanned<String>),
    /// `hash`: the expression.
    Hash(Spanned<String>),
    /// `ewma` or `ewma(time)`, Weir only.
    Ewma {
        /// Time constant of the moving average, in milliseconds; default 10 s.
        decay: u64,
    },
    /// `random` or `random(draws)`; default 2 draws. Also the default algorithm.
    Random {
        /// Number of servers drawn; the least loaded of them is used.
        draws: u32,
    },
}

impl Default for BalanceSpec {
    /// As in the manual: "random" if no other algorithm is set.
    fn default() -> Self {
        Self::Random { draws: 2 }
    }
}

impl BalanceSpec {
    /// Whether the algorithm requires an HTTP request.
    pub fn needs_http(&self) -> bool {
        matches!(self, Self::Uri(_) | Self::UrlParam { .. } | Self::Header { .. })
    }

    /// Whether the algorithm supports log lines.
    pub fn takes_log_lines(&self) -> bool {
        matches!(self, Self::RoundRobin | Self::Random { .. } | Self::Sticky | Self::LogHash(_))
    }
}

/// `balance uri`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UriSpec {
    /// `len`: maximum number of characters.
    pub len: Option<u32>,
    /// `depth`: maximum number of directories.
    pub depth: Option<u32>,
    /// `whole`: include the query string.
    pub whole: bool,
    /// `path-only`: start at the path.
    pub path_only: bool,
}

/// The keywords about hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HashSpec {
    /// `hash-type`: the method.
    pub method: HashMethod,
    /// `hash-type`: the function; `None`: the default `sdbm`, with avalanche for `consistent`.
    pub function: Option<HashFunction>,
    /// `hash-type … avalanche`.
    pub avalanche: bool,
    /// `hash-balance-factor`, per cent of the average load; `None`: no limit.
    pub balance_factor: Option<u32>,
    /// `hash-preserve-affinity`.
    pub affinity: HashAffinity,
}

/// Mapping of a hash to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashMethod {
    #[default]
    MapBased,
    Consistent,
}

/// Function that hashes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashFunction {
    Sdbm,
    Djb2,
    Wt6,
    Crc32,
    /// The key is used as a number.
    None,
}

/// `hash-preserve-affinity`: when a request is not sent to the server selected by its hash.
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

/// `hash-key`: input of a server's position in a consistent hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HashKey {
    #[default]
    Id,
    Id32,
    Guid,
    Addr,
    AddrPort,
}

/// Settings of a server for load balancing, other than its weight.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerBalanceSpec {
    /// `hash-key`.
    pub hash_key: HashKey,
    /// `guid`.
    pub guid: Option<String>,
    /// `slowstart`, milliseconds.
    pub slowstart: Option<u64>,
}
