//! The log on stderr: one line for each event.

use std::io::Write;

/// Writes a line. Control characters of names and messages from the cluster are replaced.
pub fn log(line: &str) {
    // A log that cannot be written must not end the controller.
    let _ = writeln!(std::io::stderr().lock(), "weir-gateway: {}", printable(line));
}

/// Returns a text without control characters.
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_on_its_line() {
        assert_eq!(printable("a\nb\u{1b}[1mc é"), "a?b?[1mc é");
    }
}
