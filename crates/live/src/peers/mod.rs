//! The synchronization of stick tables with other instances (configuration manual, section 11.2; the protocol is
//! `wire::peers`). Must never do I/O, wait, or read a clock.

mod form;
mod manner;
mod names;
mod plan;
mod section;
mod session;
mod status;
mod teaching;
#[cfg(test)]
mod tests;

pub use plan::Shared;
pub use section::{End, Heard, Remote, Section, Setting, Ticket};
pub use status::{LastStatus, LearnState, PeerStatus, SectionStatus, TableStatus};
