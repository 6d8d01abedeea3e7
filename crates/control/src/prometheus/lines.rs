//! Parts of the lines of metrics. Must never read a value.

use std::fmt::Write as _;

use super::metric::Type;
use super::sample::escape;

/// Objects visited per piece of the answer.
pub(super) const PIECE: usize = 128;

/// Writes the lines before the samples of a metric.
pub(super) fn begin(out: &mut String, name: &str, kind: Type, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
}

/// Displays labels in braces; nothing if there are none.
pub(super) struct Labels<'a>(pub(super) &'a [(&'a str, &'a str)]);

impl std::fmt::Display for Labels<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            write!(out, "{}{name}=\"", if at == 0 { '{' } else { ',' })?;
            escape(out, value)?;
            out.write_char('"')?;
        }
        if self.0.is_empty() { Ok(()) } else { out.write_char('}') }
    }
}
