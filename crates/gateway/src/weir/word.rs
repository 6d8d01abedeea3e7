//! Words of a configuration. Names and values of objects get into its text through these functions alone, so that none of them can
//! end a word, a line or a section.

/// A value that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// The setting that has the value.
    pub setting: &'static str,
}

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the value of {} has a character that a configuration cannot contain, or is too long", self.setting)
    }
}

/// The longest value in bytes.
const LONGEST: usize = 8 * 1024;

/// Returns a value as one word: in strong quotes, in which every other character is literal.
pub fn quoted(setting: &'static str, value: &str) -> Result<String, Unwritable> {
    // An empty word is no value.
    if value.is_empty() || value.len() > LONGEST || value.chars().any(char::is_control) {
        return Err(Unwritable { setting });
    }
    Ok(format!("'{}'", value.replace('\'', r"'\''")))
}

/// Returns a value as a word where a log format is expected: all of it is literal.
pub fn format(setting: &'static str, value: &str) -> Result<String, Unwritable> {
    quoted(setting, &literal(value))
}

/// Returns a text as a part of a log format that is literal.
pub fn literal(value: &str) -> String {
    value.replace('%', "%%")
}

/// Returns the name of a proxy, a server, a cookie or a file, which has no character with a meaning.
pub fn name<'a>(setting: &'static str, value: &'a str) -> Result<&'a str, Unwritable> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'+' | b'^');
    if value.is_empty() || value.len() > 600 || !value.bytes().all(is_plain) {
        return Err(Unwritable { setting });
    }
    Ok(value)
}

/// Returns the name of a header field (RFC 9110, section 5.6.2) as one word.
pub fn field(value: &str) -> Result<String, Unwritable> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !value.bytes().all(is_letter) {
        return Err(Unwritable { setting: "the name of a header field" });
    }
    quoted("the name of a header field", value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_for_themselves() {
        for (value, expected) in [
            ("a", Some("'a'")),
            ("", None),
            ("a b\"c\\ #${HOME}", Some("'a b\"c\\ #${HOME}'")),
            ("it's", Some(r"'it'\''s'")),
            ("a\nserver b 1.2.3.4", None),
            ("a\0", None),
            ("a\u{85}b", None),
        ] {
            assert_eq!(quoted("a header", value).ok().as_deref(), expected, "{value:?}");
        }
        assert_eq!(format("a header", "100%[env(HOME)]").unwrap(), "'100%%[env(HOME)]'");
        assert!(quoted("a header", &"x".repeat(100_000)).is_err());
    }

    #[test]
    fn names_have_plain_letters() {
        for (value, is_plain) in [
            ("default:web:80", true),
            ("x-a_b.c", true),
            ("", false),
            ("a b", false),
            ("a$b", false),
            ("a'", false),
            ("é", false),
        ] {
            assert_eq!(name("a name", value).is_ok(), is_plain, "{value:?}");
        }
    }

    #[test]
    fn names_of_fields_are_tokens() {
        for (value, is_token) in
            [("x-a", true), ("a#b", true), ("a'b", true), ("a b", false), ("a\n", false), ("", false)]
        {
            assert_eq!(field(value).is_ok(), is_token, "{value:?}");
        }
        assert_eq!(field("a#b").unwrap(), "'a#b'");
    }
}
