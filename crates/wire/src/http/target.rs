//! Locates the parts of a request target (RFC 9112, section 3.2). Must never decode or change one.

/// Returns the offset of the authority; `None` if the target has none: "/x", "*", "host:80".
fn authority(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return None;
    }
    memchr::memmem::find(target, b"://").map(|scheme| scheme + 3)
}

/// Returns the offset of the path: the first slash after the authority, or the end if there is only an authority.
/// `None` if the target has no path ("*", "host:80").
pub fn path(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return Some(0);
    }
    let start = authority(target)?;
    Some(memchr::memchr(b'/', &target[start..]).map_or(target.len(), |slash| start + slash))
}

/// Returns the offset after the authority, of a path, or of a query or fragment without one. `None`, as for [`path`].
pub fn behind_authority(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return Some(0);
    }
    let start = authority(target)?;
    Some(memchr::memchr3(b'/', b'?', b'#', &target[start..]).map_or(target.len(), |at| start + at))
}

/// Returns the range of the host and its optional port in the authority, without user information. `None` if there is
/// none.
pub fn host(target: &[u8]) -> Option<(usize, usize)> {
    let start = authority(target)?;
    let end = behind_authority(target)?;
    let user = memchr::memrchr(b'@', &target[start..end]).map_or(0, |at| at + 1);
    (start + user < end).then_some((start + user, end))
}

/// Returns the port at the end of an authority, including its colon: ":80" of "host:80" and of "[::1]:80".
pub fn port(authority: &[u8]) -> Option<&[u8]> {
    let colon = memchr::memrchr(b':', authority)?;
    let digits = &authority[colon + 1..];
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some(&authority[colon..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_behind_the_authority() {
        let rows: &[(&str, Option<&str>, Option<&str>)] = &[
            ("/x?y=1", Some("/x?y=1"), Some("/x?y=1")),
            ("//evil?x", Some("//evil?x"), Some("//evil?x")),
            ("/a://b", Some("/a://b"), Some("/a://b")),
            ("http://h/a/b", Some("/a/b"), Some("/a/b")),
            ("http://h", Some(""), Some("")),
            ("http://h?q", Some(""), Some("?q")),
            ("http://h?q/r", Some("/r"), Some("?q/r")),
            ("http://h#f", Some(""), Some("#f")),
            ("*", None, None),
            ("h:80", None, None),
            ("", None, None),
        ];
        for (target, from_path, rest) in rows {
            let told = |at: Option<usize>| at.map(|at| &target[at..]);
            assert_eq!(
                (told(path(target.as_bytes())), told(behind_authority(target.as_bytes()))),
                (*from_path, *rest),
                "{target}"
            );
        }
    }

    #[test]
    fn hosts_stand_between_user_names_and_paths() {
        let rows = [
            ("http://h/a@b", Some("h")),
            ("http://u:p@h:80?x", Some("h:80")),
            ("ftp://[::1]:8080", Some("[::1]:8080")),
            ("http://u@/a", None),
            ("http:///a", None),
            ("/a://b/c", None),
            ("*", None),
            ("h:80", None),
        ];
        for (target, expected) in rows {
            assert_eq!(host(target.as_bytes()).map(|(start, end)| &target[start..end]), expected, "{target}");
        }
    }

    #[test]
    fn ports_are_numbers_at_the_end() {
        let rows =
            [("h:80", Some(":80")), ("[::1]:8", Some(":8")), ("[::1]", None), ("h", None), ("h:", None), ("h:x", None)];
        for (authority, expected) in rows {
            assert_eq!(port(authority.as_bytes()), expected.map(str::as_bytes), "{authority}");
        }
    }
}
