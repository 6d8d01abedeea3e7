//! The kind of an answer's head, for all protocols. Must never read one.

use crate::progress::TimeoutProgress;

/// Why a head of HTTP/1 is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The rule that it violates.
    pub reason: &'static str,
    /// The offset of the violation in bytes.
    pub position: usize,
}

/// The result of parsing the bytes received of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerHeadKind {
    /// An incomplete head.
    Part,
    /// The head of an interim answer (1xx but for 101).
    Interim,
    /// The head of the answer.
    Final,
    /// Not a head of an answer. The details are known only for HTTP/1.
    Invalid(Option<Fault>),
}

impl AnswerHeadKind {
    /// The progress made: a whole head counts, a part of one does not.
    #[inline]
    pub fn progress(&self) -> Option<TimeoutProgress> {
        match self {
            Self::Interim | Self::Final => Some(TimeoutProgress::of_whole()),
            Self::Part | Self::Invalid(_) => None,
        }
    }
}
