//! Parses the priority of requests (RFC 9218): the value of a `priority` field or of a PRIORITY_UPDATE frame. Must
//! never schedule anything.

/// The priority of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// 0 (highest) to 7.
    pub urgency: u8,
    /// The client can process the response incrementally.
    pub incremental: bool,
}

impl Default for Priority {
    /// The default values (RFC 9218, section 4).
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Parses a dictionary (RFC 8941, section 3.2) with the members `u` and `i`. Other members and invalid values are
    /// ignored; an invalid dictionary gives the default.
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        let mut rest = value.trim_ascii();
        if rest.is_empty() {
            return priority;
        }
        loop {
            let Some((member, behind)) = split(rest) else { return Self::default() };
            if !priority.note(member.trim_ascii()) {
                return Self::default();
            }
            match behind {
                None => return priority,
                Some(behind) => rest = behind,
            }
        }
    }

    /// Applies a member. Returns false if it is malformed.
    fn note(&mut self, member: &[u8]) -> bool {
        let end = member.iter().position(|byte| matches!(byte, b'=' | b';')).unwrap_or(member.len());
        let (key, behind) = member.split_at(end);
        let is_key = key.first().is_some_and(|first| first.is_ascii_lowercase() || *first == b'*')
            && key.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte));
        if !is_key {
            return false;
        }
        let value = behind.strip_prefix(b"=").map(|value| value.split(|byte| *byte == b';').next().unwrap_or_default());
        match (key, value) {
            (b"u", Some([digit @ b'0'..=b'7'])) => self.urgency = digit - b'0',
            (b"i", None | Some(b"?1")) => self.incremental = true,
            (b"i", Some(b"?0")) => self.incremental = false,
            _ => {}
        }
        true
    }
}

/// Splits off the first member; returns it and the text after its comma, if there is one. `None` if a string is not
/// terminated.
fn split(value: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in value.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => return Some((&value[..at], Some(&value[at + 1..]))),
            _ => {}
        }
    }
    (!quoted).then_some((value, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_known_count() {
        let rows: [(&str, u8, bool); 20] = [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            (" i ,u=5 ", 5, true),
            ("u=1,u=2", 2, false),
            ("i, i=?0", 3, false),
            ("i=?1;a=b", 3, true),
            ("u=4;x=\"a,b\", i", 4, true),
            ("other=\"a, u=1\", u=6", 6, false),
            ("x=(a b);y, u=2", 2, false),
            // Invalid values.
            ("u=8", 3, false),
            ("u=-1, i", 3, true),
            ("u=1.5", 3, false),
            ("i=1", 3, false),
            ("u", 3, false),
            // Invalid dictionaries.
            ("u=1,", 3, false),
            ("u=1,,i", 3, false),
            ("U=1", 3, false),
            ("u=1, x=\"a", 3, false),
            ("=1", 3, false),
        ];
        for (text, urgency, incremental) in rows {
            assert_eq!(Priority::parse(text.as_bytes()), Priority { urgency, incremental }, "{text:?}");
        }
    }

    #[test]
    fn whatever_comes_is_read() {
        for length in 0..4_usize {
            for number in 0..9_usize.pow(length as u32) {
                let letters = b"ui=?1,;\" ";
                let text: Vec<u8> = (0..length).map(|at| letters[number / 9_usize.pow(at as u32) % 9]).collect();
                assert!(Priority::parse(&text).urgency <= 7);
            }
        }
    }
}
