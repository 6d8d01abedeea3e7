//! The client's side: starts, serves and ends its session. Must never parse a message.

mod connection;
mod ends;
mod handshake;
mod run;
mod start;

pub use connection::{Client, EarlyStream};
pub use run::conclude_panicked;
pub use start::{start, start_reversed};
