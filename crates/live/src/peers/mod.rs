//! The synchronization of stick tables with other instances (configuration manual, section 11.2; the protocol is
//! `wire::peers`). Must never do I/O, wait, or read a clock.

mod announcement;
mod encoding;
mod names;
mod plan;
mod push;
mod section;
mod send_parameters;
mod session;
mod status;
mod summing;
mod sums;
#[cfg(test)]
mod tests;

pub use plan::{Role, Shared};
pub use section::{End, ReceiveResult, Remote, Section, Setting, Ticket};
pub use status::{LastStatus, LearnState, OriginStatus, PeerStatus, SectionStatus, TableStatus};
pub use sums::Notice;
