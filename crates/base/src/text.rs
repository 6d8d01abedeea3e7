//! Texts of bounded length. Must never end one within a character.

/// Returns the longest beginning of a text that has at most `most` bytes and ends at a character boundary.
pub fn beginning(text: &str, most: usize) -> &str {
    let boundary = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..boundary.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_divided() {
        let rows = [("", 4, ""), ("abc", 3, "abc"), ("abc", 2, "ab"), ("aé", 2, "a"), ("aé", 3, "aé"), ("é", 0, "")];
        for (text, most, expected) in rows {
            assert_eq!(beginning(text, most), expected, "{text} {most}");
        }
    }
}
