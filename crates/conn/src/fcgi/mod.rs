//! FastCGI towards a server: a connection that carries one request at a time, whose records become an answer's bytes and its
//! body's. Must never choose a parameter.

mod connection;

pub use connection::{Connection, Options};
