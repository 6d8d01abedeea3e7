//! Patterns that only look ahead from where they begin, through any bytes of the line: `(?=.*a)(?=.*b)`. One that matches at a position
//! matches at the start of its line as well, so that other positions need no attempt. Must never say so of any other pattern.

/// Whether the leftmost match from a position on begins there or at the start of a later line: the pattern is a sequence of positive
/// lookaheads that each begin with `.*`, `.+` or `.{n,}`, followed by nothing or by something that begins so.
pub(super) fn begins_with_lines(pattern: &[u8]) -> bool {
    let mut rest = ["(?i)", "(?s)", "(?is)", "(?si)"]
        .iter()
        .find_map(|flags| pattern.strip_prefix(flags.as_bytes()))
        .unwrap_or(pattern);
    if !is_plain(rest) {
        return false;
    }
    let mut looks = false;
    while let Some(look) = rest.strip_prefix(b"(?=") {
        let Some(end) = group_end(look) else { return false };
        if !is_through_line(&look[..end]) {
            return false;
        }
        rest = &look[end + 1..];
        looks = true;
        // A repeated lookahead.
        if matches!(rest, [b'*' | b'+' | b'?' | b'{', ..]) {
            return false;
        }
    }
    looks && (rest.is_empty() || is_through_line(rest))
}

/// Whether there is neither a reference to a group or to where a search begins, nor a verb, a condition, a comment or a quotation, nor a
/// change of flags.
fn is_plain(pattern: &[u8]) -> bool {
    let mut rest = pattern;
    while let [byte, behind @ ..] = rest {
        rest = match (byte, behind) {
            (b'\\', [b'0'..=b'9' | b'g' | b'k' | b'G' | b'K' | b'Q' | b'E' | b'N', ..]) => return false,
            (b'\\', [_, behind @ ..]) => behind,
            (b'(', [b'*', ..]) => return false,
            (b'(', [b'?', kind @ ..]) if !kind.starts_with(b":") && !kind.starts_with(b"=") => return false,
            _ => behind,
        };
    }
    true
}

/// Whether a sequence begins with an unlimited repetition of any byte of a line, and has no other alternative.
fn is_through_line(sequence: &[u8]) -> bool {
    let Some(repetition) = sequence.strip_prefix(b".") else { return false };
    let behind = match repetition {
        [b'*' | b'+', behind @ ..] => behind,
        [b'{', digits @ ..] => {
            let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            match digits[count..].strip_prefix(b",}") {
                Some(behind) if count > 0 => behind,
                _ => return false,
            }
        }
        _ => return false,
    };
    // A possessive repetition leaves nothing to what follows.
    !behind.starts_with(b"+") && group_end(behind).is_none() && !has_alternatives(behind)
}

/// Returns the offset of the parenthesis that closes the group whose inside begins the text.
fn group_end(text: &[u8]) -> Option<usize> {
    walk(text, |depth, byte| depth == 0 && byte == b')')
}

fn has_alternatives(text: &[u8]) -> bool {
    walk(text, |depth, byte| depth == 0 && byte == b'|').is_some()
}

/// Returns the offset of the first byte, outside of classes and not escaped, of which `is_it` is true; it gets the depth of groups.
fn walk(text: &[u8], is_it: impl Fn(usize, u8) -> bool) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        if is_it(depth, *byte) {
            return Some(at);
        }
        match byte {
            b'\\' => at += 1,
            b'[' => at += class_end(&text[at..])?,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the offset of the bracket that closes the class at the start of a text. `None` for classes with brackets inside.
fn class_end(text: &[u8]) -> Option<usize> {
    let mut at = 1 + usize::from(text.get(1) == Some(&b'^'));
    // A bracket in the first place is a member.
    at += usize::from(text.get(at) == Some(&b']'));
    loop {
        match text.get(at)? {
            b']' => return Some(at),
            b'[' => return None,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::begins_with_lines;

    #[test]
    fn lookaheads_through_the_line_begin_with_it() {
        for pattern in [
            "(?=.*a)(?=.*b)",
            "(?=.*[a-z])(?=.*[0-9]).{8,}$",
            "(?i)(?=.*?union).*select",
            "(?s)(?=.+a)",
            "(?=.*(?:a|b)).+",
            r"(?=.*\))(?=.*[)|\]])",
            "(?=.*[])])",
        ] {
            assert!(begins_with_lines(pattern.as_bytes()), "{pattern}");
        }
        for pattern in [
            "",
            "a",
            ".*a",
            "(?=a)",
            "(?=.a)",
            "(?=.*a|b)",
            "(?=.*a)|b",
            "(?=.*a)b",
            "(?=.*a).",
            "(?=.*a).{8}",
            "(?=.*a).{8,16}",
            "(?=.*a).*|b",
            "(?=.*+a)",
            "(?=.*a).{1,}+b",
            "(?=.*a)?",
            "(?=.*a){0}",
            "(?!.*a)(?=.*b)",
            "(?=.*a)(?!.*b)",
            r"(?=.*(a))(?=.*\1)",
            r"(?=.*\Ga)",
            r"(?=.*a\Kb)",
            r"(?=.*\Qa)",
            "(?=.*(?-s:a))",
            "(?=.*(?<!a)b)",
            "(?x)(?=.* a)",
            "(?=.*(*ACCEPT)a)",
            "(?=.*[[:alpha:])])",
            "(?=.*a",
            "(?=.*a))",
        ] {
            assert!(!begins_with_lines(pattern.as_bytes()), "{pattern}");
        }
    }
}
