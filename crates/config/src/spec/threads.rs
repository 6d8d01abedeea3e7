//! A set of threads as written (configuration manual, section 5.1 "thread"). Whether the threads exist is not checked
//! here.

/// Threads of the process, or of groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadsSpec(pub Vec<ThreadRange>);

/// One part of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRange {
    /// The group that the numbers refer to; `None`: the process.
    pub group: Option<u32>,
    /// First thread, from 1.
    pub first: u32,
    /// Last thread; `None`: the last one that exists.
    pub last: Option<u32>,
    pub parity: Parity,
}

/// Selection within a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parity {
    /// All.
    #[default]
    All,
    /// `odd`: 1, 3, 5 …
    Odd,
    /// `even`: 2, 4, 6 …
    Even,
}

impl ThreadRange {
    /// Whether the range contains thread `number`, counted from 1 in the group or in the process.
    pub fn contains(&self, number: u32) -> bool {
        let fits = match self.parity {
            Parity::All => true,
            Parity::Odd => number % 2 == 1,
            Parity::Even => number.is_multiple_of(2),
        };
        fits && number >= self.first && self.last.is_none_or(|last| number <= last)
    }
}
