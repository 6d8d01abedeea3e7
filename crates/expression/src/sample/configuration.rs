//! What evaluations are lent of what stands above: the configuration, and state that only rows from there ask for. These
//! find their own types again behind [`Any`]; that nothing else is lent in their place, a handle of such a type for example,
//! is what the traits are for. Must never know what state there is.

use crate::capture::CapturePlan;
use crate::key::{Keys, TokenLimits};
use std::any::Any;

/// A compiled configuration.
pub trait Configuration: Any {
    /// Public keys that tokens are verified with.
    fn keys(&self) -> &Keys;

    /// Which encrypted tokens are decrypted.
    fn tokens(&self) -> &TokenLimits;

    /// The name of a file, by [`RulePlace::file`](super::RulePlace::file).
    fn file(&self, number: u32) -> Option<&str>;

    /// Whether a frontend speaks HTTP.
    fn is_http(&self, frontend: usize) -> bool;

    /// What a frontend keeps of requests and answers for the log; `None`: nothing.
    fn captures(&self, frontend: usize) -> Option<&CapturePlan>;
}

/// What changes while a configuration is served.
pub trait LiveState: Any {}

/// What is counted.
pub trait Counted: Any {}

/// What a stream or a session tracks.
pub trait TrackedEntry: Any {}
