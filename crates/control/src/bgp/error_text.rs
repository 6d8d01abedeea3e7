//! The texts of errors of the system. Must never log one.

/// Returns the text of an error without its number.
pub(super) fn error_text(error: &std::io::Error) -> Box<str> {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).into()
}
