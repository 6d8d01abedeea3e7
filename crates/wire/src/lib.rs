//! Protocols as state machines without I/O: parsing of bytes to messages, and encoding of messages to bytes.
//!
//! Must never use a socket, a clock, TLS, a proxy or a log. No input may cause a panic, and every loop is bounded by
//! its input.

pub mod acme;
pub mod bgp;
mod byte_class;
pub mod client_hello;
pub mod client_ip;
pub mod date;
mod digits;
pub mod dns;
pub mod fcgi;
pub(crate) mod fields;
pub mod grpc_web;
pub mod h1;
pub mod h2;
pub mod h3;
pub mod haterm;
pub mod http;
pub mod otlp;
pub mod peers;
pub mod proxy_protocol;
pub mod quic;
pub mod rdp;
pub mod resp;
pub mod socks4;
pub mod spop;
pub mod syslog;
pub mod trace_context;
