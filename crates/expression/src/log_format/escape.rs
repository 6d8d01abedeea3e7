//! Flags of format items and the escaping of text (configuration manual, sections 8.2.6 and 8.6), so that no byte of a
//! request can forge a line or reach a terminal as a control character. Must never let a byte outside 32 to 126 through.

use std::ops::BitOr;

/// Flags of an item, as `%{+Q,-E}…` sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u8);

/// A flag as written in formats.
#[derive(Debug, Clone, Copy)]
pub struct FlagRow {
    /// The name after `+` or `-`.
    pub name: &'static str,
    pub flag: Flags,
    /// A description for the documentation.
    pub doc: &'static str,
}

/// Every flag that a format may set.
pub const FLAGS: &[FlagRow] = &[
    FlagRow {
        name: "Q",
        flag: Flags::QUOTE,
        doc: "puts strings and addresses between double quotes; a missing value is then `\"\"` instead of `-`",
    },
    FlagRow {
        name: "X",
        flag: Flags::HEX,
        doc: "prints addresses, ports, `%Ts`, `%ms`, `%pid`, `%rt` and `%lc` in hexadecimal",
    },
    FlagRow { name: "E", flag: Flags::ESCAPE, doc: "puts a backslash before `\"`, `\\` and `]`" },
    FlagRow {
        name: "bin",
        flag: Flags::BINARY,
        doc: "for whole formats (`%{+bin}o`): samples are printed unchanged, binary data in full",
    },
    FlagRow { name: "json", flag: Flags::JSON, doc: "prints the value as JSON; not in `unique-id-format`" },
    FlagRow {
        name: "cbor",
        flag: Flags::CBOR,
        doc: "prints the value as CBOR (RFC 8949), in hexadecimal digits unless `+bin` is set too; not in `unique-id-format`",
    },
];

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// `Q`: quote strings.
    pub const QUOTE: Self = Self(1);
    /// `X`: addresses, ports and some numbers in hexadecimal.
    pub const HEX: Self = Self(2);
    /// `E`: a backslash before `"`, `\` and `]`.
    pub const ESCAPE: Self = Self(4);
    /// Set internally only: a missing value prints as "-".
    pub const MANDATORY: Self = Self(8);
    /// `json`.
    pub const JSON: Self = Self(16);
    /// `cbor`.
    pub const CBOR: Self = Self(32);
    /// `bin`: binary samples are printed unmodified.
    pub const BINARY: Self = Self(64);

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

/// The bytes of a text that are encoded as "#" and two hexadecimal digits; control characters always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classes(u8);

impl Classes {
    /// Names, cookies, identifiers, samples: only control characters. Bytes above 127 are printed unmodified.
    pub const NAME: Self = Self(1);
    /// Request lines: also `"`, `#` and bytes above 127.
    pub const REQUEST: Self = Self(2);
    /// Captured fields: also `"`, `#`, `{`, `|`, `}` and bytes above 127.
    pub const FIELD: Self = Self(4);

    /// Whether that byte is encoded.
    pub fn has(self, byte: u8) -> bool {
        CLASSES[usize::from(byte)] & self.0 != 0
    }
}

/// In [`CLASSES`]: the byte gets a backslash under [`Flags::ESCAPE`].
const BACKSLASHED: u8 = 8;

/// The encodings of each byte.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte < 32 || byte > 126 {
            let name = if byte < 128 { Classes::NAME.0 } else { 0 };
            classes[byte] = name | Classes::REQUEST.0 | Classes::FIELD.0;
        }
        byte += 1;
    }
    classes[b'"' as usize] = Classes::REQUEST.0 | Classes::FIELD.0 | BACKSLASHED;
    classes[b'#' as usize] = Classes::REQUEST.0 | Classes::FIELD.0;
    classes[b'{' as usize] = Classes::FIELD.0;
    classes[b'|' as usize] = Classes::FIELD.0;
    classes[b'}' as usize] = Classes::FIELD.0;
    classes[b'\\' as usize] = BACKSLASHED;
    classes[b']' as usize] = BACKSLASHED;
    classes
};

/// Appends `text`, encoded, without quotes.
pub fn encoded(out: &mut Vec<u8>, text: &[u8], classes: Classes, flags: Flags) {
    let special = if flags.contains(Flags::ESCAPE) { classes.0 | BACKSLASHED } else { classes.0 };
    let mut rest = text;
    while let Some(place) = rest.iter().position(|&byte| CLASSES[usize::from(byte)] & special != 0) {
        let byte = rest[place];
        out.extend_from_slice(&rest[..place]);
        if CLASSES[usize::from(byte)] & classes.0 != 0 {
            out.push(b'#');
            out.extend_from_slice(&base::hex::upper(byte));
        } else {
            out.extend_from_slice(&[b'\\', byte]);
        }
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HAProxy's own output for the same bytes, except for control characters in names, which HAProxy prints
    /// unmodified.
    #[test]
    fn each_place_has_its_own_set_of_encoded_bytes() {
        let input = "a]b\\c\"d{|}#\x01\t\x7f\u{e9} ~".as_bytes();
        for (classes, flags, wanted) in [
            (Classes::NAME, Flags::NONE, "a]b\\c\"d{|}##01#09#7F\u{e9} ~"),
            (Classes::NAME, Flags::ESCAPE, "a\\]b\\\\c\\\"d{|}##01#09#7F\u{e9} ~"),
            (Classes::REQUEST, Flags::NONE, "a]b\\c#22d{|}#23#01#09#7F#C3#A9 ~"),
            (Classes::REQUEST, Flags::ESCAPE, "a\\]b\\\\c#22d{|}#23#01#09#7F#C3#A9 ~"),
            (Classes::FIELD, Flags::NONE, "a]b\\c#22d#7B#7C#7D#23#01#09#7F#C3#A9 ~"),
            (Classes::FIELD, Flags::ESCAPE, "a\\]b\\\\c#22d#7B#7C#7D#23#01#09#7F#C3#A9 ~"),
        ] {
            let mut out = Vec::new();
            encoded(&mut out, input, classes, flags);
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
    }

    #[test]
    fn no_control_character_comes_out() {
        let input: Vec<u8> = (0..=255).collect();
        for classes in [Classes::NAME, Classes::REQUEST, Classes::FIELD] {
            for flags in [Flags::NONE, Flags::ESCAPE] {
                let mut out = Vec::new();
                encoded(&mut out, &input, classes, flags);
                assert!(out.iter().all(|byte| matches!(byte, 32..=126 | 128..)));
                assert_eq!(out.is_ascii(), classes != Classes::NAME);
            }
        }
    }
}
