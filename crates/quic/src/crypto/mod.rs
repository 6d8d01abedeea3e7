//! The library's view of TLS: the sessions of crate `tls`. Must never decide anything about certificates or settings.

mod client;
mod keys;
mod padding;
mod retry;
mod server;
mod session;

pub(crate) use client::ClientSide;
pub(crate) use server::ServerSide;
pub(crate) use session::VERSION;
