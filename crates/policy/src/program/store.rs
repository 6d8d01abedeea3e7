//! Stores that several nodes share (Weir's own). Must never hold a connection.

use super::{LinkTls, ServerAddress};
use live::lease::LimitPlan;
use live::lease::slots::SlotPlan;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The `store` sections of a configuration.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stores {
    pub sections: Vec<Arc<Store>>,
    /// Limits of all sections, in the order of the configuration.
    pub limits: Vec<LimitPlan>,
    /// Servers whose `maxconn` holds over all nodes, in the order of the configuration.
    pub slots: Vec<SlotPlan>,
}

/// A `store` section.
#[derive(Debug, Clone, PartialEq)]
pub struct Store {
    pub name: Box<str>,
    pub server: StoreServer,
    /// `user` and `password-file`.
    pub login: Option<Login>,
    pub database: u32,
    /// Text that all keys begin with.
    pub key_prefix: Box<[u8]>,
    /// `timeout connect`.
    pub connect_timeout: Duration,
    /// `timeout server`.
    pub server_timeout: Duration,
    /// Maximum size of an answer in bytes.
    pub answer_size: usize,
}

/// The server of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreServer {
    pub name: Box<str>,
    pub address: ServerAddress,
    /// `ssl`.
    pub tls: Option<LinkTls>,
}

/// How a store identifies itself to its server.
#[derive(Debug, Clone, PartialEq)]
pub struct Login {
    /// `None`: the default user.
    pub user: Option<Box<[u8]>>,
    pub password: Password,
}

/// A password, which no output contains.
#[derive(Clone, PartialEq)]
pub struct Password(pub Box<[u8]>);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(_)")
    }
}
