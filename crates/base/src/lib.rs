//! The ground floor: moments, buffers, slab, timer wheel and hashes that every crate of Weir stands on.
//!
//! It must never read a clock, open anything or know a protocol.

pub mod buffer;
pub mod hash;
pub mod moment;
pub mod slab;
pub mod wheel;

pub use buffer::{Buffer, BufferPool};
pub use moment::{Moment, WallTime};
pub use slab::{Key, Slab};
pub use wheel::{TimerKey, TimerWheel};
