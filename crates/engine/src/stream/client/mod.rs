//! The client's side: starts, serves and ends its session. Must never parse a message.

pub mod activity;
pub(super) mod byte_service;
pub mod client_abort;
pub mod client_limit;
pub mod closing;
mod connection;
pub(super) mod content;
mod ends;
pub mod flows;
mod handshake;
pub mod http;
pub mod initial;
pub(super) mod keep_or_close;
pub mod multiplexed;
mod quic;
mod quic_tally;
mod run;
mod start;
pub mod tcp;
pub mod tcp_info;
pub(super) mod tcp_transfer;
pub(super) mod tunnel;

pub use connection::{Client, EarlyStream};
pub use quic::start_quic;
pub use run::conclude_panicked;
pub use start::{start, start_reversed};
