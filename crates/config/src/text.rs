//! How bytes that are not UTF-8 live in a `String` without loss. Must never refuse or change a byte.
//!
//! HAProxy's configuration is bytes: a path or a header value may hold Latin-1. Words and the `Spec` are `String`s all
//! the same, because nearly everything in them is text. The bridge: a byte that is no part of valid UTF-8 becomes one
//! private character, U+EF80 for 0x80 up to U+EFFF for 0xFF. These private characters themselves, should a configuration contain
//! them, are taken apart into their bytes in the same way, so [`to_bytes`] gives back exactly what was read.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

const FIRST: u32 = 0xEF80;
const LAST: u32 = 0xEFFF;

/// Puts any bytes into a `String` without loss; UTF-8 stays as it is.
pub fn from_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_private(character) {
                let mut buffer = [0; 4];
                character.encode_utf8(&mut buffer).bytes().for_each(|byte| text.push(raw(byte)));
            } else {
                text.push(character);
            }
        }
        chunk.invalid().iter().for_each(|&byte| text.push(raw(byte)));
    }
    text
}

/// The bytes that [`from_bytes`] was given. Borrows when the text is plain UTF-8.
pub fn to_bytes(text: &str) -> Cow<'_, [u8]> {
    // Most texts are: that is seen many bytes at a time.
    if text.is_ascii() || !text.chars().any(is_private) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match raw_byte(character) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// The same for the name of a file.
pub fn to_os_string(text: &str) -> OsString {
    OsString::from_vec(to_bytes(text).into_owned())
}

/// The byte that a character stands for, if it is one of the private ones.
pub fn raw_byte(character: char) -> Option<u8> {
    is_private(character).then_some(0x80 | (character as u32 & 0x7F) as u8)
}

fn is_private(character: char) -> bool {
    (FIRST..=LAST).contains(&(character as u32))
}

/// The stand-in for one byte from 0x80 on; a byte below stands for itself.
fn raw(byte: u8) -> char {
    if byte < 0x80 { char::from(byte) } else { char::from_u32(FIRST + u32::from(byte & 0x7F)).unwrap_or('\u{FFFD}') }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_text_stays() {
        assert_eq!(from_bytes("héllo €".as_bytes()), "héllo €");
        assert!(matches!(to_bytes("héllo"), Cow::Borrowed(_)));
    }

    #[test]
    fn other_bytes_become_private_characters() {
        assert_eq!(from_bytes(b"caf\xE9"), "caf\u{EFE9}");
        assert_eq!(*to_bytes("caf\u{EFE9}"), *b"caf\xE9");
        assert_eq!(to_os_string("caf\u{EFE9}").into_vec(), b"caf\xE9");
    }

    proptest! {
        #[test]
        fn every_byte_survives(bytes: Vec<u8>) {
            prop_assert_eq!(to_bytes(&from_bytes(&bytes)).into_owned(), bytes);
        }

        #[test]
        fn private_characters_survive(text in "[\u{EF70}-\u{F010}]{0,20}") {
            prop_assert_eq!(to_bytes(&from_bytes(text.as_bytes())).into_owned(), text.into_bytes());
        }
    }
}
