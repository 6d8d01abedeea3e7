//! Durations of the Gateway API (GEP-2257): `1h30m`, `500ms`.

/// Returns a duration in milliseconds. None for another text.
pub fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0u64;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest.get(..digits).filter(|d| (1..=5).contains(&d.len()))?.parse().ok()?;
        rest = rest.get(digits..)?;
        let (unit, after) = if let Some(after) = rest.strip_prefix("ms") {
            (1, after)
        } else {
            let unit = match rest.bytes().next()? {
                b'h' => 3_600_000,
                b'm' => 60_000,
                b's' => 1_000,
                _ => return None,
            };
            (unit, rest.get(1..)?)
        };
        total += number * unit;
        rest = after;
        parts += 1;
        if parts > 4 {
            return None;
        }
    }
    (parts > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("1s", Some(1_000)),
            ("1h2m3s4ms", Some(3_723_004)),
            ("0s", Some(0)),
            ("99999h", Some(359_996_400_000)),
            ("", None),
            ("5", None),
            ("100000s", None),
            ("1.5s", None),
            ("-1s", None),
            ("1d", None),
            ("1s1s1s1s1s", None),
            ("1é", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }
}
