//! RESP2, the protocol of Redis, Valkey and KeyDB: commands and replies
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>). Must never know what a command means.

mod command;
mod owned;
mod reply;
mod scan;

pub use command::push_command;
pub use owned::OwnedReply;
pub use reply::{Incomplete, Malformed, Next, Reply, next_reply};
pub use scan::ReplyScan;

/// Maximum depth of arrays within arrays.
pub const DEEPEST: usize = 4;
