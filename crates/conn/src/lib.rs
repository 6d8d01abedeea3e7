//! Connections: bytes become messages, and links to servers are kept. Owns the body flows between two streams, the
//! duplex of a tunnel and the idle server links. Must never know ACLs, backends, statistics or logs.

pub mod behind;
pub mod downstream;
pub mod duplex;
pub mod exchange;
pub mod flow;
pub mod h1;
pub mod handshake;
pub mod link;
#[cfg(feature = "fakes")]
pub mod pairs;
pub mod pool_key;
pub mod ports;
pub mod quota;
pub mod service;
pub mod several;
pub mod transport;
pub mod upstream;
