//! The exchange of stick tables with other instances (configuration manual, section 11.2). Must never do I/O, wait, or read
//! a clock.

mod plan;

pub use plan::{Plan, Shared};
