//! The wire format of Protocol Buffers, as far as it is written: fields of a message are appended to a buffer. A field with its
//! default value is left out, as the format wants it. Must never know a message.

/// A message that is being written at the end of a buffer.
pub struct Message<'a>(&'a mut Vec<u8>);

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

/// Appends a number of variable length; up to ten bytes.
fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

impl<'a> Message<'a> {
    /// Writes a message at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    fn tag(&mut self, field: u32, kind: u32) {
        varint(self.0, u64::from(field << 3 | kind));
    }

    /// A number that is not zero: `uint32`, `uint64`, `int64` or an enumeration.
    pub fn number(&mut self, field: u32, number: u64) {
        if number != 0 {
            self.present_number(field, number);
        }
    }

    /// A number, be it zero: the member of a choice.
    pub fn present_number(&mut self, field: u32, number: u64) {
        self.tag(field, VARINT);
        varint(self.0, number);
    }

    /// A `fixed64` that is not zero.
    pub fn fixed64(&mut self, field: u32, number: u64) {
        if number != 0 {
            self.present_fixed64(field, number);
        }
    }

    /// A `fixed64`, `sfixed64` or `double`, be it zero.
    pub fn present_fixed64(&mut self, field: u32, number: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A `fixed32` that is not zero.
    pub fn fixed32(&mut self, field: u32, number: u32) {
        if number != 0 {
            self.tag(field, FIXED32);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Several `fixed64` or `double`, packed.
    pub fn packed64(&mut self, field: u32, numbers: impl ExactSizeIterator<Item = u64>) {
        if numbers.len() > 0 {
            self.tag(field, BYTES);
            varint(self.0, 8 * numbers.len() as u64);
            numbers.for_each(|number| self.0.extend_from_slice(&number.to_le_bytes()));
        }
    }

    /// Bytes that are not empty; also an encoded message.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.tag(field, BYTES);
            varint(self.0, bytes.len() as u64);
            self.0.extend_from_slice(bytes);
        }
    }

    /// Text that is not empty.
    pub fn text(&mut self, field: u32, text: &[u8]) {
        if !text.is_empty() {
            self.present_text(field, text);
        }
    }

    /// Text, be it empty. What is no UTF-8 is replaced.
    pub fn present_text(&mut self, field: u32, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.tag(field, BYTES);
        varint(self.0, text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Fields that were written before.
    pub fn raw(&mut self, fields: &[u8]) {
        self.0.extend_from_slice(fields);
    }

    /// A message within this one, written by `write`.
    pub fn nested(&mut self, field: u32, write: impl FnOnce(&mut Message<'_>)) {
        self.tag(field, BYTES);
        let start = self.0.len();
        write(&mut Message(self.0));
        let length = self.0.len() - start;
        // Its length stands before it, and is known now.
        let mut prefix = Vec::with_capacity(10);
        varint(&mut prefix, length as u64);
        self.0.extend_from_slice(&prefix);
        self.0[start..].rotate_right(prefix.len());
    }
}
