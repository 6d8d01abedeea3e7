//! An encoder of Protocol Buffers: appends the fields of a message to a buffer. Fields with their default value are
//! omitted, as the format specifies. Must never know a message type.

/// A message that is being encoded at the end of a buffer.
pub struct Message<'a>(&'a mut Vec<u8>);

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// Maximum length of a varint in bytes.
const LONGEST: usize = 10;

/// Encodes a varint; returns its bytes and their number.
fn varint_bytes(mut number: u64) -> ([u8; LONGEST], usize) {
    let (mut bytes, mut length) = ([0; LONGEST], 0);
    loop {
        let is_last = number < 0x80;
        bytes[length] = number as u8 & 0x7f | if is_last { 0 } else { 0x80 };
        (number, length) = (number >> 7, length + 1);
        if is_last {
            return (bytes, length);
        }
    }
}

/// Appends a varint.
fn varint(out: &mut Vec<u8>, number: u64) {
    let (bytes, length) = varint_bytes(number);
    out.extend_from_slice(&bytes[..length]);
}

impl<'a> Message<'a> {
    /// Starts a message at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    fn tag(&mut self, field: u32, kind: u32) {
        varint(self.0, u64::from(field << 3 | kind));
    }

    /// Appends a number unless it is zero: `uint32`, `uint64`, `int64` or an enumeration.
    pub fn number(&mut self, field: u32, number: u64) {
        if number != 0 {
            self.present_number(field, number);
        }
    }

    /// Appends a number, even if it is zero, for members of a `oneof`.
    pub fn present_number(&mut self, field: u32, number: u64) {
        self.tag(field, VARINT);
        varint(self.0, number);
    }

    /// Appends a `fixed64` unless it is zero.
    pub fn fixed64(&mut self, field: u32, number: u64) {
        if number != 0 {
            self.present_fixed64(field, number);
        }
    }

    /// Appends a `fixed64`, `sfixed64` or `double`, even if it is zero.
    pub fn present_fixed64(&mut self, field: u32, number: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Appends a `fixed32` unless it is zero.
    pub fn fixed32(&mut self, field: u32, number: u32) {
        if number != 0 {
            self.tag(field, FIXED32);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Appends bytes, such as an encoded message, unless they are empty.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.tag(field, BYTES);
            varint(self.0, bytes.len() as u64);
            self.0.extend_from_slice(bytes);
        }
    }

    /// Appends text unless it is empty.
    pub fn text(&mut self, field: u32, text: &[u8]) {
        if !text.is_empty() {
            self.present_text(field, text);
        }
    }

    /// Appends text, even if it is empty. Invalid UTF-8 is replaced.
    pub fn present_text(&mut self, field: u32, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.tag(field, BYTES);
        varint(self.0, text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends fields that are already encoded.
    pub fn raw(&mut self, fields: &[u8]) {
        self.0.extend_from_slice(fields);
    }

    /// Appends a nested message, encoded by `write`.
    pub fn nested(&mut self, field: u32, write: impl FnOnce(&mut Message<'_>)) {
        self.tag(field, BYTES);
        let start = self.0.len();
        write(&mut Message(self.0));
        // The length precedes the message, but is known only now.
        let (prefix, size) = varint_bytes((self.0.len() - start) as u64);
        self.0.extend_from_slice(&prefix[..size]);
        self.0[start..].rotate_right(size);
    }
}
