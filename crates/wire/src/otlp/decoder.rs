//! Decodes Protocol Buffers without a schema, for tests only. Must never share code with the encoder.

use std::fmt::Write as _;

fn number(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// Formats the fields of a message: `number:value`, nested messages in braces. `is_message` returns whether a path of
/// field numbers is a nested message; other bytes are shown as text, or in hexadecimal.
pub fn show(bytes: &[u8], is_message: &dyn Fn(&[u64]) -> bool) -> String {
    let mut out = String::new();
    walk(bytes, &mut Vec::new(), is_message, &mut out);
    out.trim_end().to_owned()
}

fn walk(bytes: &[u8], path: &mut Vec<u64>, is_message: &dyn Fn(&[u64]) -> bool, out: &mut String) {
    let mut at = 0;
    while at < bytes.len() {
        let tag = number(bytes, &mut at);
        path.push(tag >> 3);
        write!(out, "{}:", tag >> 3).unwrap();
        match tag & 7 {
            0 => write!(out, "{}", number(bytes, &mut at)).unwrap(),
            1 => {
                write!(out, "{}", u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
                at += 8;
            }
            5 => {
                write!(out, "{}", u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())).unwrap();
                at += 4;
            }
            2 => {
                let length = number(bytes, &mut at) as usize;
                let inner = &bytes[at..at + length];
                at += length;
                match std::str::from_utf8(inner) {
                    _ if is_message(path) => {
                        out.push_str("{ ");
                        walk(inner, path, is_message, out);
                        out.push('}');
                    }
                    Ok(text) if !text.chars().any(char::is_control) => write!(out, "'{text}'").unwrap(),
                    _ => inner.iter().for_each(|byte| write!(out, "{byte:02x}").unwrap()),
                }
            }
            other => panic!("wire type {other}"),
        }
        out.push(' ');
        path.pop();
    }
}
