//! A line of the terminal, as the prompt gets it. Must never interpret a line.

/// A line, or the reason why there is none.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "line-editing"), allow(dead_code, reason = "the terminal itself handles Ctrl-C"))]
pub enum TypedLine {
    Text(String),
    /// Ctrl-C: the line was abandoned.
    Abandoned,
    /// Ctrl-D, or the end of the terminal.
    End,
}
