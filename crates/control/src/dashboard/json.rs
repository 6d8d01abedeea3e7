//! Writes JSON (RFC 8259). Must never parse any.

use std::fmt::{self, Write};

use base::WallTime;

use crate::field::Value;

/// Displays text as a JSON string. Characters that browsers could take for markup or for a line end are escaped as
/// well.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_char('"')?;
        for character in self.0.chars() {
            match character {
                '"' => out.write_str("\\\"")?,
                '\\' => out.write_str("\\\\")?,
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\u{7f}' => write!(out, "\\u{:04x}", u32::from(character))?,
                control if u32::from(control) < 0x20 => write!(out, "\\u{:04x}", u32::from(control))?,
                other => out.write_char(other)?,
            }
        }
        out.write_char('"')
    }
}

/// Decodes bytes as UTF-8, with replacement characters.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Displays a calendar time: seconds since the Unix epoch, with milliseconds.
pub(super) struct Seconds(pub(super) WallTime);

impl fmt::Display for Seconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03}", self.0.seconds, self.0.millis())
    }
}

/// Displays a value of the statistics.
pub(super) struct JsonValue<'a>(pub(super) &'a Value);

impl fmt::Display for JsonValue<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::None => out.write_str("null"),
            Value::Text(text) => Quoted(text).fmt(out),
            Value::Float(number) if !number.is_finite() => out.write_str("null"),
            number => number.fmt(out),
        }
    }
}

/// Writes commas between elements.
#[derive(Debug, Default)]
pub(super) struct Commas(bool);

impl Commas {
    /// Returns the separator before the next element.
    pub(super) fn next(&mut self) -> &'static str {
        if std::mem::replace(&mut self.0, true) { "," } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_string() {
        for (text, quoted) in [
            ("a\"b\\c", r#""a\"b\\c""#),
            ("</script>", r#""\u003c/script\u003e""#),
            ("1\n2\t\u{2028}", r#""1\u000a2\u0009\u2028""#),
            ("ü", "\"ü\""),
        ] {
            assert_eq!(Quoted(text).to_string(), quoted);
        }
        assert_eq!(JsonValue(&Value::Float(f64::NAN)).to_string(), "null");
        assert_eq!(JsonValue(&Value::S32(-1)).to_string(), "-1");
    }
}
