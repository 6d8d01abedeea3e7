//! The common foundation of all crates of Weir: times, buffers, slab, timer wheel, hashes, lists that grow, indexes of
//! names, sets of processors, the memory account, encodings of bytes as text, and texts of bounded length.
//!
//! It must never read a clock, open anything or know a protocol.

pub mod append_only_vec;
pub mod base64;
pub mod buffer;
pub mod hash;
pub mod hex;
pub mod memory;
pub mod moment;
pub mod name_index;
pub mod processors;
pub mod slab;
pub mod text;
pub mod wheel;

pub use append_only_vec::AppendOnlyVec;
pub use buffer::{Buffer, BufferPool};
pub use moment::{Moment, WallTime};
pub use name_index::NameIndex;
pub use processors::ProcessorSet;
pub use slab::{Key, Slab};
pub use wheel::{TimerKey, TimerWheel};
