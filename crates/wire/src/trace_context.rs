//! The trace context in HTTP fields: `traceparent` and `tracestate` (W3C Trace Context, level 1). Must never generate
//! an ID, nor decide whether a trace is sampled.

/// Length of a `traceparent` of version 00 in bytes.
pub const LENGTH: usize = 55;
/// Maximum number of members of a `tracestate` (section 3.3.1.1).
const MOST_MEMBERS: usize = 32;
/// Maximum length of a propagated `tracestate` in bytes. Section 3.3.1.5 requires at least 512.
const MOST_STATE: usize = 512;

/// The trace context of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// ID of the trace; not all zero.
    pub trace_id: [u8; 16],
    /// ID of the parent span; not all zero.
    pub span_id: [u8; 8],
    /// The trace is sampled.
    pub sampled: bool,
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Decodes lower-case hexadecimal digits.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// Appends bytes as lower-case hexadecimal digits.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.iter().flat_map(|byte| base::hex::lower(*byte)));
}

impl TraceContext {
    /// Parses a `traceparent`. Of a later version, the parts of version 00 are parsed (section 3.2.4). `None` if it is
    /// invalid; a new trace is started then.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = text.trim_ascii();
        let [version] = hex(text.get(..2)?)?;
        let is_bounded = match version {
            0xff => false,
            0 => text.len() == LENGTH,
            _ => text.len() == LENGTH || text.get(LENGTH) == Some(&b'-'),
        };
        if !is_bounded || [2, 35, 52].iter().any(|at| text.get(*at) != Some(&b'-')) {
            return None;
        }
        let (trace_id, span_id) = (hex(text.get(3..35)?)?, hex(text.get(36..52)?)?);
        let [flags] = hex(text.get(53..LENGTH)?)?;
        let is_named = trace_id != [0; 16] && span_id != [0; 8];
        is_named.then_some(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }

    /// Returns the `traceparent` of version 00.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(LENGTH);
        text.extend_from_slice(b"00-");
        write_hex(&self.trace_id, &mut text);
        text.push(b'-');
        write_hex(&self.span_id, &mut text);
        text.extend_from_slice(if self.sampled { b"-01" } else { b"-00" });
        text
    }

    /// Whether the trace is sampled at a ratio of `share` / 2^63 (OpenTelemetry, `TraceIdRatioBased`). All instances
    /// with the same ratio sample the same traces.
    pub fn is_chosen(&self, share: u64) -> bool {
        let [.., a, b, c, d, e, f, g, h] = self.trace_id;
        u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1 < share
    }
}

/// Joins the values of all `tracestate` fields of a message. `None` if there is none, or if one violates the syntax of
/// the list (section 3.3), in which case all are dropped.
pub fn state<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    let mut joined = Vec::new();
    let mut keys: Vec<&[u8]> = Vec::new();
    for member in values.flat_map(|value| value.split(|byte| *byte == b',')) {
        let member = member.trim_ascii();
        if member.is_empty() {
            continue;
        }
        let at = member.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (&member[..at], &member[at + 1..]);
        if !is_key(key) || !is_value(value) || keys.contains(&key) || keys.len() == MOST_MEMBERS {
            return None;
        }
        keys.push(key);
        // The newest member is first in the list; whole members are dropped from its end.
        if joined.len() + usize::from(!joined.is_empty()) + member.len() > MOST_STATE {
            break;
        }
        if !joined.is_empty() {
            joined.push(b',');
        }
        joined.extend_from_slice(member);
    }
    (!joined.is_empty()).then_some(joined)
}

/// Whether a key is a name, or a tenant and a system (section 3.3.1.3.1).
fn is_key(key: &[u8]) -> bool {
    let is_part = |part: &[u8], most: usize, may_begin_with_digit: bool| {
        let begins = part
            .first()
            .is_some_and(|first| first.is_ascii_lowercase() || may_begin_with_digit && first.is_ascii_digit());
        let is_of_key =
            |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'*' | b'/');
        begins && part.len() <= most && part.iter().all(is_of_key)
    };
    match key.iter().position(|byte| *byte == b'@') {
        Some(at) => is_part(&key[..at], 241, true) && is_part(&key[at + 1..], 14, false),
        None => is_part(key, 256, false),
    }
}

/// Whether a value consists of printable characters except comma and equals sign, without a trailing space
/// (section 3.3.1.3.2).
fn is_value(value: &[u8]) -> bool {
    let is_character = |byte: &u8| (b' '..=b'~').contains(byte) && !matches!(byte, b',' | b'=');
    (1..=256).contains(&value.len()) && value.iter().all(is_character) && value.last() != Some(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_read_as_the_recommendation_says() {
        const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let rows: &[(&str, Option<bool>)] = &[
            (GOOD, Some(true)),
            (" 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\t", Some(true)),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", Some(false)),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02", Some(false)),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff", Some(true)),
            // A later version may have more fields.
            ("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Some(true)),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future", Some(true)),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.what", None),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0", None),
            ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-011", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", None),
            ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", None),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", None),
            ("00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-001", None),
            ("00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01", None),
            ("0x-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None),
            ("", None),
            ("00", None),
            ("\u{e9}\u{e9}-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None),
        ];
        for (text, expected) in rows {
            let found = TraceContext::parse(text.as_bytes());
            assert_eq!(found.map(|context| context.sampled), *expected, "{text}");
            if let Some(found) = found {
                assert_eq!(TraceContext::parse(&found.encode()), Some(found), "{text}");
            }
        }
        assert_eq!(TraceContext::parse(GOOD.as_bytes()).map(|found| found.encode()), Some(GOOD.into()));
    }

    #[test]
    fn states_are_joined_and_held_to_their_limits() {
        let many = |count: usize| (0..count).map(|index| format!("k{index}=v")).collect::<Vec<_>>().join(",");
        let long = |length: usize| format!("a={}", "x".repeat(length));
        let rows: Vec<(Vec<String>, Option<String>)> = vec![
            (vec![], None),
            (vec![String::new()], None),
            (vec!["a=1".into()], Some("a=1".into())),
            (vec!["a=1, b=2 ".into(), ",,c=3".into()], Some("a=1,b=2,c=3".into())),
            (vec!["1t@sys=1".into()], Some("1t@sys=1".into())),
            (vec!["t@1sys=1".into()], None),
            (vec!["1t=1".into()], None),
            (vec!["A=1".into()], None),
            (vec!["a".into()], None),
            (vec!["a=".into()], None),
            (vec!["a=b=c".into()], None),
            (vec!["a=1".into(), "a=2".into()], None),
            (vec!["a=\u{7f}".into()], None),
            (vec![many(32)], Some(many(32))),
            (vec![many(33)], None),
            (vec![long(256)], Some(long(256))),
            (vec![long(257)], None),
            (vec![long(256), "b=1".into(), format!("c={}", "y".repeat(256))], Some(long(256) + ",b=1")),
        ];
        for (values, expected) in rows {
            let found = state(values.iter().map(String::as_bytes));
            assert_eq!(found.map(|text| String::from_utf8(text).unwrap()), expected, "{values:?}");
        }
    }

    #[test]
    fn a_share_of_the_traces_is_chosen_by_their_names() {
        let of = |last: u64| {
            let mut trace_id = [1; 16];
            trace_id[8..].copy_from_slice(&last.to_be_bytes());
            TraceContext { trace_id, span_id: [1; 8], sampled: false }
        };
        for (last, share, expected) in [
            (0, 0, false),
            (0, 1, true),
            (u64::MAX, 1 << 63, true),
            (u64::MAX, (1 << 63) - 1, false),
            (1 << 63, 1 << 62, false),
            ((1 << 63) - 1, 1 << 62, true),
        ] {
            assert_eq!(of(last).is_chosen(share), expected, "{last} {share}");
        }
    }
}
