//! Connections: bytes become messages, and links to servers are kept. Owns the body flows between two streams, the
//! duplex of a tunnel and the idle server links. Must never know ACLs, backends, statistics or logs.

pub mod answer_head_kind;
pub mod buffered_body;
pub mod carrier;
pub mod client;
mod conduct;
pub mod copy;
pub mod dial;
pub mod downstream;
pub mod duplex;
pub mod ending;
pub mod exchange;
pub mod fcgi;
pub mod flow;
pub mod glitches;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod handshake;
pub mod link;
pub mod multiplexed;
pub mod pool_key;
pub mod ports;
pub mod progress;
pub mod qmux;
pub mod quic;
pub mod quota;
pub mod sequential_client;
mod server_info;
pub mod service;
mod shared_connections;
pub mod spop;
pub mod transport;
pub mod upstream;
pub mod worker_links;
