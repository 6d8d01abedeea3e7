//! The translation of small objects, as the conformance tests of the Gateway API have them.

mod attachment;
mod gateways;
mod incremental;
mod others;
mod routes;
mod world;
