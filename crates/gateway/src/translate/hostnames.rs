//! Hostnames of listeners and routes: which of them overlap, and which is more specific.

/// The host of all requests.
pub const ANY: &str = "*";

/// Whether a hostname is a name or a wildcard of the Gateway API. It also is a word without blanks, quotes or control characters.
pub fn is_valid(host: &str) -> bool {
    let name = host.strip_prefix("*.").unwrap_or(host);
    !name.is_empty()
        && host.len() <= 253
        && name.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

/// Whether all hosts that `inner` fits also fit `outer`.
pub fn covers(outer: &str, inner: &str) -> bool {
    match outer.strip_prefix('*') {
        Some("") => true,
        Some(suffix) => inner == outer || (inner.ends_with(suffix) && inner != ANY),
        None => outer == inner,
    }
}

/// Returns the hosts that fit both hostnames: one of the two, as they are names or suffixes.
pub fn intersect<'a>(one: &'a str, other: &'a str) -> Option<&'a str> {
    if covers(one, other) {
        Some(other)
    } else if covers(other, one) {
        Some(one)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostnames_intersect() {
        for (one, other, expected) in [
            ("*", "*", Some("*")),
            ("*", "example.com", Some("example.com")),
            ("*.example.com", "*", Some("*.example.com")),
            ("*.example.com", "example.com", None),
            ("*.example.com", "a.example.com", Some("a.example.com")),
            ("*.example.com", "a.b.example.com", Some("a.b.example.com")),
            ("*.example.com", "*.b.example.com", Some("*.b.example.com")),
            ("*.example.com", "*.example.com", Some("*.example.com")),
            ("*.example.com", "*.example.org", None),
            ("*.example.com", "a.badexample.com", None),
            ("very.specific.com", "*.specific.com", Some("very.specific.com")),
            ("a.com", "b.com", None),
        ] {
            assert_eq!(intersect(one, other), expected, "{one} and {other}");
            assert_eq!(intersect(other, one), expected, "{other} and {one}");
        }
    }

    #[test]
    fn hostnames_are_words() {
        for (host, expected) in [
            ("example.com", true),
            ("*.example.com", true),
            ("a", true),
            ("", false),
            ("*", false),
            ("*.*.com", false),
            ("a..b", false),
            ("a b", false),
            ("a\nb", false),
            ("a\"b", false),
            ("%5", false),
            ("-a.com", false),
            ("é.com", false),
        ] {
            assert_eq!(is_valid(host), expected, "{host:?}");
        }
        assert!(!is_valid(&"a".repeat(100_000)));
    }
}
