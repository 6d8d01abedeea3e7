//! The synchronization of stick tables with other instances (configuration manual, section 11.2; the protocol is
//! `wire::peers`). Must never do I/O, wait, or read a clock.

mod encoding;
mod names;
mod plan;
mod push;
mod section;
mod send_parameters;
mod session;
mod status;
#[cfg(test)]
mod tests;

pub use plan::Shared;
pub use section::{End, ReceiveResult, Remote, Section, Setting, Ticket};
pub use status::{LastStatus, LearnState, PeerStatus, SectionStatus, TableStatus};
