//! Parts of a request's target (RFC 9112, section 3.2). Must never change one.

/// Returns path and query of a target in origin form or absolute form (RFC 9112, section 3.2).
pub(in crate::stream) fn origin_form(target: &[u8]) -> &[u8] {
    match wire::http::target::path(target) {
        Some(at) if at == target.len() => b"/",
        Some(at) => &target[at..],
        None => target,
    }
}
