//! Stores that several nodes share, and the limits that they enforce together; Weir's own. Must never open a connection.

use super::{AddressSpec, ServerTlsSpec};
use crate::span::{Span, Spanned};

/// A `store` section.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreSectionSpec {
    /// Its first line.
    pub span: Span,
    pub name: Spanned<String>,
    /// `server`; without one the section is rejected.
    pub server: Option<StoreServerSpec>,
    /// `user`; `None`: the default user of the server.
    pub user: Option<Spanned<String>>,
    /// `password-file`.
    pub password_file: Option<Spanned<String>>,
    /// `database`.
    pub database: u32,
    /// `key-prefix`.
    pub key_prefix: String,
    /// `timeout connect` in milliseconds.
    pub timeout_connect: u64,
    /// `timeout server` in milliseconds.
    pub timeout_server: u64,
    /// `answer-size` in bytes.
    pub answer_size: u32,
    /// `limit` lines, in order.
    pub limits: Vec<LimitSpec>,
}

impl StoreSectionSpec {
    /// Returns a section with default values.
    pub fn new(span: Span, name: Spanned<String>) -> Self {
        Self {
            span,
            name,
            server: None,
            user: None,
            password_file: None,
            database: 0,
            key_prefix: "weir:".to_owned(),
            timeout_connect: 1_000,
            timeout_server: 1_000,
            answer_size: 64 * 1_024,
            limits: Vec::new(),
        }
    }
}

/// The server of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreServerSpec {
    pub span: Span,
    pub name: Spanned<String>,
    pub address: Spanned<AddressSpec>,
    /// `ssl`.
    pub tls: Option<Box<ServerTlsSpec>>,
}

/// A `limit` line.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitSpec {
    pub span: Span,
    pub name: Spanned<String>,
    /// Number of tokens per period.
    pub rate: u32,
    /// The period in milliseconds.
    pub period: u64,
    /// Number of tokens that may be taken at once.
    pub burst: u32,
    /// Maximum number of keys that a node keeps.
    pub size: u32,
    pub lost: LostMode,
}

/// `lost`: how a limit decides while its store cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LostMode {
    /// Each node enforces the limit for itself.
    #[default]
    Local,
    /// No key exceeds the limit.
    Open,
    /// Every key exceeds the limit.
    Closed,
}

impl LostMode {
    /// Returns the word of the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// `maxconn-store` of a server (Weir's own): its `maxconn` holds over all nodes of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaxconnStoreSpec {
    /// The name of the store.
    pub store: Spanned<String>,
    /// The slots of a node whose lease has expired because the store cannot be used.
    pub lost: LostMode,
}
