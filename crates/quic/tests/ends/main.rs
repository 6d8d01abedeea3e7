//! Two endpoints back to back, in memory: handshakes, streams, and what an unreliable or hostile network does to them.

#![allow(clippy::unwrap_used)]

mod certificates;
mod early;
mod endings;
mod handshakes;
mod hellos;
mod network;
mod raw;
mod streams;
mod violations;
mod world;
