//! A line of the live view: styled words, truncated to the width of the terminal. Must never contain a control
//! character.

use std::fmt::Write;

/// Style of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Default.
    Plain,
    /// Values.
    Bold,
    /// Labels.
    Dim,
    /// No problem.
    Green,
    /// Warnings.
    Yellow,
    /// Errors.
    Red,
    /// Charts.
    Blue,
}

impl Style {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Bold => "0;1",
            Self::Dim => "0;2",
            Self::Green => "0;32",
            Self::Yellow => "0;33",
            Self::Red => "0;31",
            Self::Blue => "0;36",
        }
    }
}

/// Words and their styles, from left to right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line(Vec<(Style, String)>);

impl Line {
    /// Creates an empty line.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a word.
    #[must_use]
    pub fn with(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    /// Appends as many characters as fit into the width, and resets the style.
    pub fn render(&self, out: &mut String, width: usize) {
        let mut left = width;
        for (style, text) in &self.0 {
            let shown: String = text.chars().filter(|letter| !letter.is_control()).take(left).collect();
            left -= shown.chars().count();
            if !shown.is_empty() {
                let _ = write!(out, "\x1b[{}m{shown}", style.code());
            }
        }
        out.push_str("\x1b[0m");
    }

    /// Returns the words without styles.
    #[cfg(test)]
    pub fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_the_terminal_ends() {
        let line = Line::new().with(Style::Bold, "ab").with(Style::Red, "▁▂▃\x1bd").with(Style::Plain, "e");
        let rendered = |width: usize| {
            let mut out = String::new();
            line.render(&mut out, width);
            out
        };
        assert_eq!(rendered(4), "\x1b[0;1mab\x1b[0;31m▁▂\x1b[0m");
        assert_eq!(rendered(9), "\x1b[0;1mab\x1b[0;31m▁▂▃d\x1b[0me\x1b[0m");
        assert_eq!(rendered(0), "\x1b[0m");
    }
}
