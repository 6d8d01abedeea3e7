//! Lossless storage of bytes that are not UTF-8 in a `String`. Must never reject or change a byte.
//!
//! HAProxy's configuration is bytes: a path or a header value may contain Latin-1. Words and the `Spec` are
//! nevertheless `String`s, because nearly everything in them is text. Encoding: a byte that is not part of valid UTF-8
//! becomes one private character, U+EF80 for 0x80 up to U+EFFF for 0xFF. If a configuration contains these private
//! characters themselves, their bytes are encoded in the same way, so [`to_bytes`] returns exactly the bytes that were
//! read.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

const FIRST: u32 = 0xEF80;
const LAST: u32 = 0xEFFF;

/// Converts any bytes to a `String` without loss; UTF-8 is unchanged.
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

/// Returns the bytes passed to [`from_bytes`]. Borrows if the text contains no private character.
pub fn to_bytes(text: &str) -> Cow<'_, [u8]> {
    // Fast path: most texts are ASCII.
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

/// Like [`to_bytes`], for the name of a file.
pub fn to_os_string(text: &str) -> OsString {
    OsString::from_vec(to_bytes(text).into_owned())
}

/// Returns the byte that a private character encodes; `None` for other characters.
pub fn raw_byte(character: char) -> Option<u8> {
    is_private(character).then_some(0x80 | (character as u32 & 0x7F) as u8)
}

fn is_private(character: char) -> bool {
    (FIRST..=LAST).contains(&(character as u32))
}

/// Returns the private character for a byte from 0x80 on; a lower byte is its own character.
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
