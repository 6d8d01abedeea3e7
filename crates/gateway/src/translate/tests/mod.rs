//! The translation of small objects, as the conformance tests of the Gateway API have them.

mod attachment;
mod gateways;
mod incremental;
mod others;
pub mod pem;
mod routes;
mod world;
