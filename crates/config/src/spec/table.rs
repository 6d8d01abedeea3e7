//! Stick tables (configuration manual, section 11.1). Owns the list of data types of an entry; must never hold an
//! entry.

use crate::span::{Span, Spanned};
use std::fmt;

/// Key type of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKeySpec {
    /// `ip` and `ipv4`.
    Ipv4,
    /// `ipv6`.
    Ipv6,
    /// `integer`: 32 bits.
    Integer,
    /// `string`: maximum length in bytes.
    Text(u32),
    /// `binary`: length in bytes; shorter keys are padded with zeros.
    Binary(u32),
}

impl TableKeySpec {
    /// Returns the name in HAProxy's runtime API and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ipv6",
            Self::Integer => "integer",
            Self::Text(_) => "string",
            Self::Binary(_) => "binary",
        }
    }
}

/// Representation of a data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataForm {
    /// 32 bits.
    Number,
    /// 64 bits.
    Large,
    /// Event rate over a period.
    Rate,
    /// The name or address of a server.
    Server,
}

/// Data type of an entry. The order is that of the peers protocol's numbers and of `show table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DataKind {
    ServerId,
    Gpt0,
    Gpc0,
    Gpc0Rate,
    ConnCnt,
    ConnRate,
    ConnCur,
    SessCnt,
    SessRate,
    HttpReqCnt,
    HttpReqRate,
    HttpErrCnt,
    HttpErrRate,
    BytesInCnt,
    BytesInRate,
    BytesOutCnt,
    BytesOutRate,
    Gpc1,
    Gpc1Rate,
    ServerKey,
    HttpFailCnt,
    HttpFailRate,
    /// An array, like the two that follow.
    Gpt,
    Gpc,
    GpcRate,
    GlitchCnt,
    GlitchRate,
}

impl DataKind {
    /// All types, in order.
    pub const ALL: [Self; 27] = [
        Self::ServerId,
        Self::Gpt0,
        Self::Gpc0,
        Self::Gpc0Rate,
        Self::ConnCnt,
        Self::ConnRate,
        Self::ConnCur,
        Self::SessCnt,
        Self::SessRate,
        Self::HttpReqCnt,
        Self::HttpReqRate,
        Self::HttpErrCnt,
        Self::HttpErrRate,
        Self::BytesInCnt,
        Self::BytesInRate,
        Self::BytesOutCnt,
        Self::BytesOutRate,
        Self::Gpc1,
        Self::Gpc1Rate,
        Self::ServerKey,
        Self::HttpFailCnt,
        Self::HttpFailRate,
        Self::Gpt,
        Self::Gpc,
        Self::GpcRate,
        Self::GlitchCnt,
        Self::GlitchRate,
    ];

    /// Returns the name in configurations and in the runtime API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ServerId => "server_id",
            Self::Gpt0 => "gpt0",
            Self::Gpc0 => "gpc0",
            Self::Gpc0Rate => "gpc0_rate",
            Self::ConnCnt => "conn_cnt",
            Self::ConnRate => "conn_rate",
            Self::ConnCur => "conn_cur",
            Self::SessCnt => "sess_cnt",
            Self::SessRate => "sess_rate",
            Self::HttpReqCnt => "http_req_cnt",
            Self::HttpReqRate => "http_req_rate",
            Self::HttpErrCnt => "http_err_cnt",
            Self::HttpErrRate => "http_err_rate",
            Self::BytesInCnt => "bytes_in_cnt",
            Self::BytesInRate => "bytes_in_rate",
            Self::BytesOutCnt => "bytes_out_cnt",
            Self::BytesOutRate => "bytes_out_rate",
            Self::Gpc1 => "gpc1",
            Self::Gpc1Rate => "gpc1_rate",
            Self::ServerKey => "server_key",
            Self::HttpFailCnt => "http_fail_cnt",
            Self::HttpFailRate => "http_fail_rate",
            Self::Gpt => "gpt",
            Self::Gpc => "gpc",
            Self::GpcRate => "gpc_rate",
            Self::GlitchCnt => "glitch_cnt",
            Self::GlitchRate => "glitch_rate",
        }
    }

    /// Returns the type of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the representation; of an array, that of its elements.
    pub const fn form(self) -> DataForm {
        match self {
            Self::BytesInCnt | Self::BytesOutCnt => DataForm::Large,
            Self::ServerKey => DataForm::Server,
            Self::Gpc0Rate
            | Self::ConnRate
            | Self::SessRate
            | Self::HttpReqRate
            | Self::HttpErrRate
            | Self::BytesInRate
            | Self::BytesOutRate
            | Self::Gpc1Rate
            | Self::HttpFailRate
            | Self::GpcRate
            | Self::GlitchRate => DataForm::Rate,
            _ => DataForm::Number,
        }
    }

    /// Whether it is an array.
    pub const fn is_array(self) -> bool {
        matches!(self, Self::Gpt | Self::Gpc | Self::GpcRate)
    }
}

/// A data type that a table stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSpec {
    pub kind: DataKind,
    /// Number of elements of an array; 1 otherwise.
    pub elements: u32,
    /// The period of a rate, milliseconds; 0 otherwise.
    pub period: u32,
}

/// Writes it as in `store`.
impl fmt::Display for StoreSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, is_rate) = (self.kind.name(), self.kind.form() == DataForm::Rate);
        match (self.kind.is_array(), is_rate) {
            (true, true) => write!(out, "{name}({},{}ms)", self.elements, self.period),
            (true, false) => write!(out, "{name}({})", self.elements),
            (false, true) => write!(out, "{name}({}ms)", self.period),
            (false, false) => out.write_str(name),
        }
    }
}

/// Identification of servers (`srvkey`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerKeySpec {
    /// By their names.
    #[default]
    Name,
    /// By their addresses.
    Address,
}

/// `stick-table`, and `table` of a `peers` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    pub span: Span,
    pub key: TableKeySpec,
    /// Maximum number of entries.
    pub size: u32,
    /// Lifetime of an entry since its last refresh, in milliseconds; `None`: until it is purged for space.
    pub expire: Option<u32>,
    /// No entry is purged when the table is full.
    pub nopurge: bool,
    /// The table receives updates from peers and sends none.
    pub recv_only: bool,
    /// `write-to`: the table that stores updates received from peers.
    pub write_to: Option<Spanned<String>>,
    /// `srvkey`.
    pub server_key: ServerKeySpec,
    /// `brates-factor`: number of bytes that count as one event of a rate.
    pub byte_rate_factor: u32,
    /// `store`, each type once.
    pub store: Vec<StoreSpec>,
    /// `peers`: the section that shares the table.
    pub peers: Option<Spanned<String>>,
}

impl TableSpec {
    /// The name of a table of sums: that of the table whose values are summed, and this.
    pub const SUM_SUFFIX: &str = ".agg";

    /// Whether a shared table of that name holds the sums of another table's values over all peers. With `recv-only` it
    /// receives the sums of a peer.
    pub fn is_sum(&self, name: &str) -> bool {
        name.ends_with(Self::SUM_SUFFIX) && !self.recv_only
    }
}
