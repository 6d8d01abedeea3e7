//! The server of a request: its choice, persistence, the connection to it and its reuse. Must never read a response.

pub(crate) mod attach_server;
pub(super) mod attempt;
pub mod connect;
pub(super) mod early_data;
pub mod hedging;
pub(super) mod link_reuse;
pub(super) mod observe;
pub mod persistence;
pub mod private_connections;
pub(super) mod proxy_header;
pub(super) mod qmux;
pub(super) mod quic;
mod quic_tally;
pub(super) mod redirect;
pub(super) mod reversed;
#[allow(unreachable_code, unused_variables, reason = "tests have the only such protocol")]
pub mod server_multiplex;
pub(super) mod server_target;
pub mod sticking;
