//! Streams: one request and its answer, or one TCP session. Each phase owns its own records.

pub mod activity;
mod answer;
mod attempt;
pub mod buffering;
pub mod conclude;
pub mod connect;
mod content;
pub mod dispatch;
pub mod evaluate;
pub mod exchange;
pub mod filter;
pub mod forwarded;
pub(crate) mod handshake;
pub mod http;
pub mod kernel;
pub mod page;
pub mod private;
pub mod proving;
mod redirect;
pub mod refuse;
pub mod request;
pub mod rules;
mod ruling;
pub mod screening;
pub mod tally;
pub mod tcp;
mod waiting;
