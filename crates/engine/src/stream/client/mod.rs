//! The client's side: how its session begins, is served and ends. Must never look into a message.

mod connection;
mod ends;
mod handshake;
mod run;
mod start;

pub use connection::{Begun, Client};
pub use run::conclude_panicked;
pub use start::{start, start_reversed};
