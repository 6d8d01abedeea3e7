//! Streams: one request and its response, or one TCP session. Each directory is one part of the path of a request.

pub mod cache;
pub mod client;
pub mod conclude;
pub mod context;
pub mod exchange;
mod record;
pub mod reply;
pub mod request;
mod server;
mod stages;

pub use record::tracing::trace_stream;
