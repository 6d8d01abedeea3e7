//! Strings of JSON (RFC 8259). Other characters are escaped, so that every line is valid JSON and no byte of a request
//! reaches a terminal as a control character. Must never parse any.

use super::escape::{Classes, Flags, encoded};

/// Appends a string with its quotes; the control characters of a `name` are encoded first.
pub fn string(out: &mut Vec<u8>, text: &[u8], name: bool) {
    out.push(b'"');
    let start = out.len();
    if name {
        encoded(out, text, Classes::NAME, Flags::NONE);
    } else {
        out.extend_from_slice(text);
    }
    escape_from(out, start);
    out.push(b'"');
}

/// Escapes the bytes from `start` on.
pub fn escape_from(out: &mut Vec<u8>, start: usize) {
    let is_plain = |byte: &u8| matches!(byte, 32..=126) && !matches!(byte, b'"' | b'\\');
    let Some(first) = out[start..].iter().position(|byte| !is_plain(byte)) else { return };
    let rest = out.split_off(start + first);
    for chunk in rest.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\x08' => out.extend_from_slice(b"\\b"),
                '\x0c' => out.extend_from_slice(b"\\f"),
                control if control.is_control() => {
                    out.extend_from_slice(format!("\\u{:04x}", control as u32).as_bytes())
                }
                other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice(b"\\ufffd");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_is_valid_and_printable() {
        for (text, wanted) in [
            (&b"plain"[..], r#""plain""#),
            (b"", r#""""#),
            (b"a\"b\\c/", r#""a\"b\\c/""#),
            (b"\x01\x02\n\r\t\x08\x0c\x7f", r#""\u0001\u0002\n\r\t\b\f\u007f""#),
            ("caf\u{e9} \u{20ac}\u{9b}".as_bytes(), "\"caf\u{e9} \u{20ac}\\u009b\""),
            (b"\xffA\xc3", r#""\ufffdA\ufffd""#),
        ] {
            let mut out = Vec::new();
            string(&mut out, text, false);
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
    }
}
