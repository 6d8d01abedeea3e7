//! Partial comparison of texts: prefixes, suffixes, parts between delimiters (section 7.1.3).

use super::Method;

/// Compares a text with a pattern by that method; `ignore_case`: ASCII letters case-insensitively.
pub fn compare(method: Method, text: &[u8], pattern: &[u8], ignore_case: bool) -> bool {
    let equal = |a: &[u8], b: &[u8]| if ignore_case { a.eq_ignore_ascii_case(b) } else { a == b };
    match method {
        Method::Str => equal(text, pattern),
        Method::Beg => text.get(..pattern.len()).is_some_and(|start| equal(start, pattern)),
        Method::End => text.len().checked_sub(pattern.len()).is_some_and(|at| equal(&text[at..], pattern)),
        Method::Sub if !ignore_case => memchr::memmem::find(text, pattern).is_some(),
        Method::Sub => {
            pattern.is_empty() || text.windows(pattern.len()).any(|window| window.eq_ignore_ascii_case(pattern))
        }
        Method::Dir | Method::Dom => between(text, trimmed(method, pattern), |byte| delimits(method, byte), equal),
        _ => false,
    }
}

/// Whether a byte delimits the parts that a method compares.
pub fn delimits(method: Method, byte: u8) -> bool {
    match method {
        Method::Dir => matches!(byte, b'/' | b'?'),
        Method::Dom => matches!(byte, b'/' | b'?' | b'.' | b':'),
        _ => false,
    }
}

/// Removes the delimiters at the ends of a pattern, which are ignored.
pub fn trimmed(method: Method, pattern: &[u8]) -> &[u8] {
    let inside = |byte: &u8| !delimits(method, *byte);
    let start = pattern.iter().position(inside).unwrap_or(pattern.len());
    let end = pattern.iter().rposition(inside).map_or(start, |at| at + 1);
    &pattern[start..end]
}

/// Whether the pattern occurs between delimiters or ends of the text. A pattern of delimiters only never matches.
fn between(text: &[u8], pattern: &[u8], delimits: impl Fn(u8) -> bool, equal: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    if pattern.is_empty() || pattern.len() > text.len() {
        return false;
    }
    (0..=text.len() - pattern.len()).any(|at| {
        let behind = at + pattern.len();
        (at == 0 || delimits(text[at - 1]))
            && (behind == text.len() || delimits(text[behind]))
            && equal(&text[at..behind], pattern)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_compared() {
        let rows = [
            (Method::Beg, "/static/a", "/static", true),
            (Method::End, "/a.jpg", ".jpg", true),
            (Method::End, "g", ".jpg", false),
            (Method::Sub, "abcde", "cd", true),
            (Method::Dir, "/a/bc/d", "bc", true),
            (Method::Dir, "/a/bc/d", "/bc/", true),
            (Method::Dir, "/a/bc/d", "b", false),
            (Method::Dir, "/a/bc?d", "a/bc", true),
            (Method::Dom, "www.example.com:80", "example.com", true),
            (Method::Dom, "www.example.com", "ample", false),
            (Method::Str, "a", "A", false),
        ];
        for (method, text, pattern, expected) in rows {
            assert_eq!(compare(method, text.as_bytes(), pattern.as_bytes(), false), expected, "{method:?} {text}");
        }
        // Patterns that are empty without the delimiters at their ends.
        for (method, patterns) in
            [(Method::Dir, &["", "/", "//", "?", "/?"][..]), (Method::Dom, &["", "/", ".", "..", ":", "?", "/.:?"])]
        {
            for (pattern, ignore_case) in patterns.iter().flat_map(|pattern| [(pattern, false), (pattern, true)]) {
                for text in ["", "/", "//", "a", "/a", "a/", "/a/b", "a//b", ".", "a.b", "a..b", "a:80", "?", "/?a"] {
                    let found = compare(method, text.as_bytes(), pattern.as_bytes(), ignore_case);
                    assert!(!found, "{method:?} {text} {pattern}");
                }
            }
        }
        assert!(compare(Method::Dom, b"WWW.a", b"www", true) && compare(Method::Sub, b"aBc", b"bC", true));
    }
}
