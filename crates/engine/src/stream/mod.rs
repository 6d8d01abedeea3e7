//! Streams: one request and its answer, or one TCP session. Each phase owns its own records.

pub mod conclude;
pub mod connect;
pub mod dispatch;
pub mod exchange;
pub mod forwarded;
pub mod http;
pub mod page;
pub mod refuse;
pub mod request;
pub mod tcp;
