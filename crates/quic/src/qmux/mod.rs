//! QMux (draft-ietf-quic-qmux-01): the streams of QUIC over one ordered stream of bytes, without I/O. Bytes and times are
//! arguments. Must never know a transport, nor what streams carry.
//!
//! A connection has the operations and events of [`crate::Connection`], so that what streams carry is the same over both.

mod connection;
mod error;
mod frame;
mod output;
mod parameters;
mod reader;
mod stream;
mod table;
mod varint;

#[cfg(test)]
mod tests;

pub use connection::Connection;
pub use parameters::Settings;
