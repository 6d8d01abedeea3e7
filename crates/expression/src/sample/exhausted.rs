//! The end of an evaluation that costs too much. Must never carry a value.

/// The evaluation's cost limit was reached before its result was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;
