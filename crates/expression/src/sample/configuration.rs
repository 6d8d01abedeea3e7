//! Interfaces to upper crates for evaluations: the configuration, and state that only rows defined there use. Those
//! rows downcast it through [`Any`]; the traits ensure that no other type, such as a handle of it, is passed by
//! mistake. Must never depend on the concrete types.

use crate::capture::CapturePlan;
use crate::key::{Keys, TokenLimits};
use std::any::Any;

/// A compiled configuration.
pub trait Configuration: Any {
    /// Public keys that verify tokens.
    fn keys(&self) -> &Keys;

    /// The algorithms allowed in tokens.
    fn tokens(&self) -> &TokenLimits;

    /// Returns the name of a file, by [`RulePlace::file`](super::RulePlace::file).
    fn file(&self, number: u32) -> Option<&str>;

    /// Whether a frontend is in HTTP mode.
    fn is_http(&self, frontend: usize) -> bool;

    /// The captures of a frontend; `None`: none.
    fn captures(&self, frontend: usize) -> Option<&CapturePlan>;
}

/// State that changes while a configuration is served.
pub trait LiveState: Any {}

/// Counters.
pub trait CounterSource: Any {}

/// A stick-table entry that a stream or a session tracks.
pub trait TrackedEntry: Any {}
