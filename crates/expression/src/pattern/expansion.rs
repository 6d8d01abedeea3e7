//! Substitution of a match's groups in a text. Must never search.

use super::Search;

/// Appends a text with `\0` to `\9` replaced by groups of a match in `value`.
pub fn expand(groups: &Search<'_>, value: &[u8], text: &[u8], out: &mut dyn FnMut(&[u8])) {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match (byte, bytes.clone().next()) {
            (b'\\', Some(digit @ b'0'..=b'9')) => {
                bytes.next();
                if let Some((start, end)) = groups.get(usize::from(digit - b'0')) {
                    out(&value[start..end]);
                }
            }
            (b'\\', Some(other)) => {
                bytes.next();
                out(&[*other]);
            }
            (other, _) => out(&[*other]),
        }
    }
}
