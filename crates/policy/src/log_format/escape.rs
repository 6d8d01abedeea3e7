//! Flags of format items and the escaping of text (configuration manual, sections 8.2.6 and 8.6), so that no byte of a
//! request can forge a line or reach a terminal as a control character. Must never let a byte outside 32 to 126 through.

use std::ops::BitOr;

/// Flags of an item, as `%{+Q,-E}…` sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// `Q`: quote strings.
    pub const QUOTE: Self = Self(1);
    /// `X`: addresses, ports and some numbers in hexadecimal.
    pub const HEX: Self = Self(2);
    /// `E`: a backslash before `"`, `\` and `]`.
    pub const ESCAPE: Self = Self(4);

    /// Whether every flag of `other` is set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags without those of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Which bytes a text must have encoded as "#" and two hexadecimal digits; non-printable ones always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding(u8);

impl Encoding {
    /// Names, cookies, identifiers: nothing besides non-printable bytes.
    pub const NAME: Self = Self(1);
    /// Request lines: also `"` and `#`.
    pub const REQUEST: Self = Self(2);
    /// Captured fields: also `"`, `#`, `{`, `|` and `}`.
    pub const FIELD: Self = Self(4);
}

/// In [`CLASSES`]: the byte gets a backslash under [`Flags::ESCAPE`].
const BACKSLASHED: u8 = 8;

/// For each byte the encodings that replace it.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte < 32 || byte > 126 {
            classes[byte] = Encoding::NAME.0 | Encoding::REQUEST.0 | Encoding::FIELD.0;
        }
        byte += 1;
    }
    classes[b'"' as usize] = Encoding::REQUEST.0 | Encoding::FIELD.0 | BACKSLASHED;
    classes[b'#' as usize] = Encoding::REQUEST.0 | Encoding::FIELD.0;
    classes[b'{' as usize] = Encoding::FIELD.0;
    classes[b'|' as usize] = Encoding::FIELD.0;
    classes[b'}' as usize] = Encoding::FIELD.0;
    classes[b'\\' as usize] = BACKSLASHED;
    classes[b']' as usize] = BACKSLASHED;
    classes
};

/// Appends `text` without quotes.
pub fn encoded(out: &mut Vec<u8>, text: &[u8], encoding: Encoding, flags: Flags) {
    let special = if flags.contains(Flags::ESCAPE) { encoding.0 | BACKSLASHED } else { encoding.0 };
    let mut rest = text;
    while let Some(place) = rest.iter().position(|&byte| CLASSES[usize::from(byte)] & special != 0) {
        let byte = rest[place];
        out.extend_from_slice(&rest[..place]);
        if CLASSES[usize::from(byte)] & encoding.0 != 0 {
            let digit = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble & 15)];
            out.extend_from_slice(&[b'#', digit(byte >> 4), digit(byte)]);
        } else {
            out.extend_from_slice(&[b'\\', byte]);
        }
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends what `write` writes, between quotes under [`Flags::QUOTE`].
pub fn quoted(out: &mut Vec<u8>, flags: Flags, write: impl FnOnce(&mut Vec<u8>)) {
    let quote = flags.contains(Flags::QUOTE);
    if quote {
        out.push(b'"');
    }
    write(out);
    if quote {
        out.push(b'"');
    }
}

/// Appends a string; an empty one as nothing but its quotes.
pub fn string(out: &mut Vec<u8>, text: &[u8], encoding: Encoding, flags: Flags) {
    quoted(out, flags, |out| encoded(out, text, encoding, flags));
}

/// Appends a string that may be missing: "-", or `""` under [`Flags::QUOTE`].
pub fn optional(out: &mut Vec<u8>, text: Option<&[u8]>, encoding: Encoding, flags: Flags) {
    match text {
        Some(text) if !text.is_empty() => string(out, text, encoding, flags),
        _ => absent(out, flags),
    }
}

/// Appends what stands for a missing value.
pub fn absent(out: &mut Vec<u8>, flags: Flags) {
    out.extend_from_slice(if flags.contains(Flags::QUOTE) { b"\"\"" } else { b"-" });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HAProxy's own output for the same bytes, but for the cookie's last byte: it prints that one as it is.
    #[test]
    fn each_place_has_its_own_set_of_encoded_bytes() {
        let input = b"a]b\\c\"d{|}#\x01\t\x7f\xff ~";
        for (encoding, flags, wanted) in [
            (Encoding::NAME, Flags::NONE, "a]b\\c\"d{|}##01#09#7F#FF ~"),
            (Encoding::NAME, Flags::ESCAPE, "a\\]b\\\\c\\\"d{|}##01#09#7F#FF ~"),
            (Encoding::REQUEST, Flags::NONE, "a]b\\c#22d{|}#23#01#09#7F#FF ~"),
            (Encoding::REQUEST, Flags::ESCAPE, "a\\]b\\\\c#22d{|}#23#01#09#7F#FF ~"),
            (Encoding::FIELD, Flags::NONE, "a]b\\c#22d#7B#7C#7D#23#01#09#7F#FF ~"),
            (Encoding::FIELD, Flags::QUOTE | Flags::ESCAPE, "\"a\\]b\\\\c#22d#7B#7C#7D#23#01#09#7F#FF ~\""),
        ] {
            let mut out = Vec::new();
            string(&mut out, input, encoding, flags);
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
    }

    #[test]
    fn every_byte_comes_out_printable() {
        let input: Vec<u8> = (0..=255).collect();
        for encoding in [Encoding::NAME, Encoding::REQUEST, Encoding::FIELD] {
            for flags in [Flags::NONE, Flags::ESCAPE, Flags::QUOTE | Flags::HEX] {
                let mut out = Vec::new();
                string(&mut out, &input, encoding, flags);
                assert!(out.iter().all(|byte| (32..=126).contains(byte)));
            }
        }
    }

    #[test]
    fn missing_values() {
        for (text, flags, wanted) in [
            (None, Flags::NONE, &b"-"[..]),
            (None, Flags::QUOTE, b"\"\""),
            (Some(&b""[..]), Flags::ESCAPE, b"-"),
            (Some(b"x"), Flags::QUOTE, b"\"x\""),
        ] {
            let mut out = Vec::new();
            optional(&mut out, text, Encoding::NAME, flags);
            assert_eq!(out, wanted);
        }
    }
}
