//! What the head of an answer is, whichever protocol it came by. Must never read one.

use crate::progress::TimeoutProgress;

/// What is wrong with a head of HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The rule that it breaks.
    pub reason: &'static str,
    /// Where, in bytes from its first.
    pub position: usize,
}

/// What was found in what has come of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A part of a head.
    Part,
    /// The head of an interim answer (1xx but for 101).
    Interim,
    /// The head of the answer.
    Final,
    /// No head of an answer. What is wrong is not known of HTTP/2.
    Invalid(Option<Fault>),
}

impl Found {
    /// A whole head makes progress, a part of one makes none.
    #[inline]
    pub fn progress(&self) -> Option<TimeoutProgress> {
        match self {
            Self::Interim | Self::Final => Some(TimeoutProgress::of_whole()),
            Self::Part | Self::Invalid(_) => None,
        }
    }
}
