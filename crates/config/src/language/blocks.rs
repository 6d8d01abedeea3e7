//! The nesting of `.if` blocks: which lines are read. Must never evaluate a condition.

/// Maximum depth of nested blocks: HAProxy rejects the hundredth.
pub(super) const MAX_NESTING: usize = 100;

/// State of a block between `.if` and `.endif`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The lines of this branch are read.
    Taken,
    /// The lines of this branch are skipped; a later branch may be read.
    Waiting,
    /// The lines of this and all later branches are skipped: one was taken, the enclosing block is skipped, or the
    /// condition could not be evaluated.
    Done,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) state: State,
    /// `.else` has been read.
    pub(super) last_branch: bool,
    pub(super) line: u32,
}

/// Stack of open blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) open: Vec<Block>,
    /// Blocks beyond [`MAX_NESTING`], which are only counted.
    pub(super) beyond: usize,
}

impl Blocks {
    /// Whether lines are read.
    pub fn active(&self) -> bool {
        self.beyond == 0 && self.open.last().is_none_or(|block| block.state == State::Taken)
    }

    /// Returns the line of the innermost open block, and the number of other open ones.
    pub fn unfinished(&self) -> Option<(u32, usize)> {
        let last = self.open.last()?;
        Some((last.line, self.open.len() - 1 + self.beyond))
    }

    /// Handles a directive whose line could not be split into words, so that its block is still tracked.
    pub fn broken_line(&mut self, raw: &[u8], line: u32) {
        match raw.split(u8::is_ascii_whitespace).find(|word| !word.is_empty()) {
            Some(b".if") => self.open(State::Done, line),
            Some(b".endif") => {
                self.close();
            }
            Some(b".elif" | b".else") if self.beyond == 0 => {
                if let Some(block) = self.open.last_mut() {
                    block.state = State::Done;
                }
            }
            _ => {}
        }
    }

    pub(super) fn open(&mut self, state: State, line: u32) {
        if self.open.len() + 1 < MAX_NESTING {
            self.open.push(Block { state, last_branch: false, line });
        } else {
            self.beyond += 1;
        }
    }

    pub(super) fn close(&mut self) -> bool {
        if self.beyond > 0 {
            self.beyond -= 1;
            return true;
        }
        self.open.pop().is_some()
    }
}
