//! Formats (configuration manual, section 8.2.6) as far as the reader of keywords must look into them: sample expressions
//! in them are not there yet, and that is to be told with everything else. Must never judge the rest of a format, which
//! `policy` compiles.

/// What stands behind the `[` of the first `%[…]`, to its end.
pub(crate) fn expression(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let at = rest.find('%')?;
        rest = &rest[at + 1..];
        if let Some(literal) = rest.strip_prefix('%') {
            rest = literal;
            continue;
        }
        let named = behind(rest, '(', ')').unwrap_or(rest);
        let item = behind(named, '{', '}').unwrap_or(named);
        if let Some(inside) = item.strip_prefix('[') {
            return Some(inside.find(']').map_or(inside, |end| &inside[..=end]));
        }
    }
}

/// What follows a part in brackets.
fn behind(text: &str, open: char, close: char) -> Option<&str> {
    let inside = text.strip_prefix(open)?;
    inside.find(close).map(|end| &inside[end + close.len_utf8()..])
}

#[cfg(test)]
mod tests {
    use super::expression;

    #[test]
    fn expressions_are_found_behind_names_and_flags() {
        for (text, found) in [
            ("", None),
            ("%ci:%cp %{+Q}r", None),
            ("%%[src]", None),
            ("[src] %", None),
            ("%ci %[src]", Some("src]")),
            ("%{+X}[src,hex] %[dst]", Some("src,hex]")),
            ("%(client:str){+Q}[src]", Some("src]")),
            ("%[src", Some("src")),
        ] {
            assert_eq!(expression(text), found, "{text}");
        }
    }
}
