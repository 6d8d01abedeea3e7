//! Stick tables (configuration manual, section 11.1). Owns the list of what an entry may hold; must never hold an entry.

use crate::span::{Span, Spanned};

/// What the keys of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKeySpec {
    /// `ip` and `ipv4`.
    Ipv4,
    /// `ipv6`.
    Ipv6,
    /// `integer`: 32 bits.
    Integer,
    /// `string`: so many bytes at most.
    Text(u32),
    /// `binary`: so many bytes, filled up with zeros.
    Binary(u32),
}

impl TableKeySpec {
    /// As HAProxy's runtime API and its messages call it.
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

/// How a kind of data is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataForm {
    /// 32 bits.
    Number,
    /// 64 bits.
    Large,
    /// Events of a period.
    Rate,
    /// The name or address of a server.
    Server,
}

/// A kind of data that an entry may hold. The order is that of the peers protocol's numbers and of `show table`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
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
    /// An array, as the two that follow.
    Gpt,
    Gpc,
    GpcRate,
    GlitchCnt,
    GlitchRate,
}

impl DataKind {
    /// Every kind, in order.
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

    /// Its name in configurations and in the runtime API.
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

    /// The kind of that name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How it is kept; an array: each of its elements.
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

/// A kind of data that a table stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSpec {
    /// Which.
    pub kind: DataKind,
    /// Elements of an array; 1 otherwise.
    pub elements: u32,
    /// The period of a rate, milliseconds; 0 otherwise.
    pub period: u32,
}

/// How servers are known by (`srvkey`).
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
    /// Where it is written.
    pub span: Span,
    /// What its keys are.
    pub key: TableKeySpec,
    /// Entries at most.
    pub size: u32,
    /// Milliseconds that an entry stays unless it is refreshed; `None`: until there is no room.
    pub expire: Option<u32>,
    /// Where there is no room, no entry makes any.
    pub nopurge: bool,
    /// It learns from peers and tells them nothing.
    pub recv_only: bool,
    /// `write-to`: the table that gets what peers tell.
    pub write_to: Option<Spanned<String>>,
    /// `srvkey`.
    pub server_key: ServerKeySpec,
    /// `brates-factor`: so many bytes are one event of a rate.
    pub byte_rate_factor: u32,
    /// `store`, each kind once.
    pub store: Vec<StoreSpec>,
    /// `peers`: the section that it is shared through.
    pub peers: Option<Spanned<String>>,
}
