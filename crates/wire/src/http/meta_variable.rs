//! Names of fields as meta-variables (RFC 3875, section 4.1.18). Must never change a name.

/// Whether two names of fields are the same meta-variable. Applications that are called by CGI, FastCGI or WSGI get one name for `-`,
/// `_` and other characters that are no letters or digits, and for both cases.
pub fn is_same_meta_variable(one: &[u8], other: &[u8]) -> bool {
    let fold = |byte: &u8| if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' };
    one.len() == other.len() && one.iter().map(fold).eq(other.iter().map(fold))
}

#[cfg(test)]
mod tests {
    use super::is_same_meta_variable;

    #[test]
    fn case_and_underscores_do_not_matter() {
        for (one, other, expected) in [
            ("remote-user", "Remote_User", true),
            ("remote-user", "REMOTE-USER", true),
            ("remote-user", "remote-users", false),
            ("remote-user", "remote.user", true),
            ("remote-user", "remoteuser", false),
            ("", "", true),
        ] {
            assert_eq!(is_same_meta_variable(one.as_bytes(), other.as_bytes()), expected, "{one} {other}");
        }
    }
}
