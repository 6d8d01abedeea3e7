//! The parts of a request's target (RFC 9112, section 3.2): where its path begins. Must never decode or change one.

/// Where a target's authority begins; `None` where it names none before a path: "/x", "*", "host:80".
fn authority(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return None;
    }
    memchr::memmem::find(target, b"://").map(|scheme| scheme + 3)
}

/// Where the path begins: its first slash, or the end where an authority is all there is. `None`: the target names no
/// path ("*", "host:80").
pub fn path(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return Some(0);
    }
    let start = authority(target)?;
    Some(memchr::memchr(b'/', &target[start..]).map_or(target.len(), |slash| start + slash))
}

/// Where begins what stands behind the authority: a path, or a query or a fragment alone. `None`, as for [`path`].
pub fn behind_authority(target: &[u8]) -> Option<usize> {
    if target.first() == Some(&b'/') {
        return Some(0);
    }
    let start = authority(target)?;
    Some(memchr::memchr3(b'/', b'?', b'#', &target[start..]).map_or(target.len(), |at| start + at))
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
}
