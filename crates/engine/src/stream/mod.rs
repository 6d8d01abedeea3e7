//! Streams: one request and its answer, or one TCP session. Each phase owns its own records.

pub mod activity;
mod attempt;
pub mod buffering;
pub mod conclude;
pub mod connect;
pub mod dispatch;
pub mod exchange;
pub mod forwarded;
mod handshake;
pub mod http;
pub mod page;
pub mod private;
mod redirect;
pub mod refuse;
pub mod request;
pub mod screening;
pub mod tally;
pub mod tcp;
