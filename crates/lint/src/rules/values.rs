//! The forms of values of common samples. Must never depend on a pattern.

use crate::model::Test;

/// The form of a value in every well-formed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A path, with or without a query string.
    Path,
    /// A host, perhaps with a port.
    Host,
    /// A server name of TLS.
    Sni,
    /// Scheme, host and perhaps port.
    Origin,
}

/// Converters that keep the form.
const KEEPING: [&str; 2] = ["lower", "upper"];

/// Returns the form of a test's values.
pub(super) fn shape(test: &Test) -> Option<Shape> {
    if !test.converters().iter().all(|call| KEEPING.contains(&call.name.as_str())) {
        return None;
    }
    let field = || test.argument(0).unwrap_or_default().to_ascii_lowercase();
    match test.fetch.as_str() {
        "path" | "pathq" => Some(Shape::Path),
        "req.ssl_sni" | "ssl_fc_sni" => Some(Shape::Sni),
        "req.hdr" | "req.fhdr" | "hdr" => match field().as_str() {
            "host" => Some(Shape::Host),
            "origin" => Some(Shape::Origin),
            _ => None,
        },
        _ => None,
    }
}
