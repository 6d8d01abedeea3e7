//! HPACK (RFC 7541): encoding and decoding of header blocks. Owns the dynamic table of a peer's blocks; must never
//! interpret a field.

use super::Capacity;
use super::static_table::{ENTRIES, static_name};
use super::table::Dynamic;
use crate::fields::budget::Budget;
use crate::fields::field::{HeaderField, KnownName};
use crate::fields::integer;
use crate::fields::strings::{self, Scratch, Text};
use crate::fields::write::{FieldWriter, status_digits};
use crate::http::Method;

/// A block that cannot be decoded. The connection has to be closed, since the tables of both sides differ from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError;

/// Decodes the blocks of one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: Dynamic,
}

impl Decoder {
    /// Creates a decoder with the table size that was advertised (SETTINGS_HEADER_TABLE_SIZE), in bytes.
    pub fn new(table_size: usize) -> Self {
        Self { table: Dynamic::new(table_size) }
    }

    /// Decodes a block whose strings may have `longest` bytes, and passes its fields to `field` in order.
    ///
    /// # Errors
    /// It is no block, or says too much ([`Budget`]).
    pub fn decode(
        &mut self,
        block: &[u8],
        longest: usize,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), DecodeError> {
        let capacity = Capacity { bytes: longest, fields: usize::MAX };
        self.decode_fields(block, capacity, |read| field(read.name, read.value))
    }

    /// The same of a message whose fields have a capacity. One that exceeds it by less than [`Budget`] is handed over.
    ///
    /// # Errors
    /// As there.
    pub fn decode_fields(
        &mut self,
        block: &[u8],
        capacity: Capacity,
        field: impl FnMut(&HeaderField<'_>),
    ) -> Result<(), DecodeError> {
        strings::with_scratch(|scratch| self.decode_with(scratch, block, capacity, field))
    }

    #[inline]
    fn decode_with(
        &mut self,
        scratch: &mut Scratch,
        mut block: &[u8],
        capacity: Capacity,
        mut field: impl FnMut(&HeaderField<'_>),
    ) -> Result<(), DecodeError> {
        let longest = capacity.bytes;
        let mut budget = Budget::of(capacity);
        let mut field = |read: &HeaderField<'_>| {
            budget.take(read)?;
            field(read);
            Some(())
        };
        let mut resized = 0;
        let mut begun = false;
        while let Some(first) = block.first().copied() {
            match first {
                0x80.. => {
                    let index = integer::read(&mut block, 7).ok_or(DecodeError)?;
                    field(&self.table.get(index).ok_or(DecodeError)?).ok_or(DecodeError)?;
                    begun = true;
                }
                0x20..=0x3f => {
                    // Permitted only before the first field, and at most twice (RFC 7541, section 4.2).
                    resized += 1;
                    let size = integer::read(&mut block, 5).ok_or(DecodeError)?;
                    if begun || resized > 2 || self.table.resize(size).is_none() {
                        return Err(DecodeError);
                    }
                }
                _ => {
                    self.literal(scratch, &mut block, first, longest, &mut field).ok_or(DecodeError)?;
                    begun = true;
                }
            }
        }
        Ok(())
    }

    /// Decodes a literal field.
    #[inline]
    fn literal(
        &mut self,
        scratch: &mut Scratch,
        block: &mut &[u8],
        first: u8,
        longest: usize,
        field: &mut impl FnMut(&HeaderField<'_>) -> Option<()>,
    ) -> Option<()> {
        let is_added = first & 0x40 != 0;
        let index = integer::read(block, if is_added { 6 } else { 4 })?;
        if let Some(entry) = ENTRIES.get(index.wrapping_sub(1)) {
            let value = match strings::read(block, 7, &mut scratch.value, longest)? {
                Text::Plain(value) => value,
                Text::Decoded => &scratch.value,
            };
            let read = HeaderField { value, is_valid: false, ..*entry };
            field(&read)?;
            if is_added {
                self.table.add(&read);
            }
            return Some(());
        }
        let mut known = KnownName::Unknown;
        let plain_name = if index == 0 {
            strings::read(block, 7, &mut scratch.name, longest)?
        } else {
            let entry = self.table.get(index)?;
            known = entry.known;
            // Copied, since adding the field may change the table.
            scratch.name.clear();
            scratch.name.extend_from_slice(entry.name);
            Text::Decoded
        };
        let plain_value = strings::read(block, 7, &mut scratch.value, longest)?;
        let name = if let Text::Plain(name) = plain_name { name } else { &scratch.name };
        let value = if let Text::Plain(value) = plain_value { value } else { &scratch.value };
        let read = HeaderField { name, value, known, is_valid: false };
        field(&read)?;
        if is_added {
            self.table.add(&read);
        }
        Some(())
    }

    /// Size of the dynamic table in bytes, as the RFC defines it.
    pub fn table_size(&self) -> usize {
        self.table.size()
    }
}

/// Encodes a block into a slice. Never adds to the peer's dynamic table, so that a block is independent of its
/// connection.
pub(super) struct Writer<'a> {
    room: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(room: &'a mut [u8]) -> Self {
        Self { room, at: 0 }
    }

    pub(super) fn length(&self) -> usize {
        self.at
    }

    /// Writes a field that is an entry of the static table.
    #[inline]
    fn indexed(&mut self, index: usize) -> Option<()> {
        self.integer(index, 7, 0x80)
    }

    /// Writes a field whose name is at an index of the static table.
    #[inline]
    fn named(&mut self, index: usize, value: &[u8]) -> Option<()> {
        self.integer(index, 4, 0)?;
        self.string(value)
    }

    #[inline]
    fn string(&mut self, text: &[u8]) -> Option<()> {
        self.integer(text.len(), 7, 0)?;
        let (place, _) = self.room.get_mut(self.at..)?.split_at_mut_checked(text.len())?;
        place.copy_from_slice(text);
        self.at += text.len();
        Some(())
    }

    #[inline]
    fn integer(&mut self, value: usize, prefix: u32, kind: u8) -> Option<()> {
        let room = self.room.get_mut(self.at..)?;
        if value < (1 << prefix) - 1 {
            *room.first_mut()? = kind | value as u8;
            self.at += 1;
        } else {
            self.at += integer::write(value, prefix, kind, room)?;
        }
        Some(())
    }
}

impl FieldWriter for Writer<'_> {
    const HOST_IS_AUTHORITY: bool = false;

    #[inline]
    fn method(&mut self, known: Method, text: &[u8]) -> Option<()> {
        match known {
            Method::Get => self.indexed(2),
            Method::Post => self.indexed(3),
            _ => self.named(2, text),
        }
    }

    #[inline]
    fn scheme(&mut self, scheme: &[u8]) -> Option<()> {
        match scheme {
            b"http" => self.indexed(6),
            b"https" => self.indexed(7),
            _ => self.named(6, scheme),
        }
    }

    #[inline]
    fn authority(&mut self, authority: &[u8]) -> Option<()> {
        self.named(1, authority)
    }

    #[inline]
    fn path(&mut self, path: &[u8]) -> Option<()> {
        match path {
            b"/" => self.indexed(4),
            _ => self.named(4, path),
        }
    }

    #[inline]
    fn status(&mut self, status: u16) -> Option<()> {
        match status {
            200 => self.indexed(8),
            204 => self.indexed(9),
            206 => self.indexed(10),
            304 => self.indexed(11),
            400 => self.indexed(12),
            404 => self.indexed(13),
            500 => self.indexed(14),
            _ => self.named(8, &status_digits(status)),
        }
    }

    #[inline]
    fn content_length(&mut self, value: &[u8]) -> Option<()> {
        self.named(28, value)
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match static_name(name) {
            0 => {
                self.integer(0, 4, 0)?;
                self.string(name)?;
                self.string(value)
            }
            index => self.named(index, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::budget;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        base::hex::decode(&digits).unwrap()
    }

    fn decode(decoder: &mut Decoder, block: &str) -> Result<String, DecodeError> {
        let mut text = String::new();
        decoder.decode(&bytes(block), 1000, |name, value| {
            let [name, value] = [name, value].map(|part| String::from_utf8_lossy(part).into_owned());
            text.push_str(&format!("{name}: {value}\n"));
        })?;
        Ok(text)
    }

    /// RFC 7541, appendix C.3 to C.6: plain and Huffman-coded, with tables of 4,096 and 256 bytes.
    #[test]
    fn blocks_of_the_rfc() {
        let requests = [
            ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n",
            ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache\n",
            ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value\n",
        ];
        let plain = [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ];
        let huffman = [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ];
        for blocks in [plain, huffman] {
            let mut decoder = Decoder::new(4096);
            for (block, expected) in blocks.iter().zip(requests) {
                assert_eq!(decode(&mut decoder, block).as_deref(), Ok(expected));
            }
            assert_eq!(decoder.table_size(), 164);
        }
        let mut decoder = Decoder::new(256);
        let answers = [
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
              63c7 8f0b 97c8 e9ae 82ae 43d3",
                222,
                "302",
            ),
            ("4883 640e ffc1 c0bf", 222, "307"),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
              b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                215,
                "200",
            ),
        ];
        for (block, size, status) in answers {
            let text = decode(&mut decoder, block).unwrap();
            assert!(text.starts_with(&format!(":status: {status}\ncache-control: private\n")), "{text}");
            assert_eq!(decoder.table_size(), size);
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        // No such entry, index 0, strings that end early or are too long, a size above the advertised one, a size
        // update after a field, three size updates.
        for block in ["be", "80", "8286 8441 0f77", "40", "40 8a 00", "3f e2 1f", "82 20", "20 20 20 82"] {
            assert_eq!(decode(&mut Decoder::new(4096), block), Err(DecodeError), "{block}");
        }
        let long = format!("40 01 61 7f d2 0e {}", "61".repeat(2001));
        assert!(decode(&mut Decoder::new(4096), &long).is_err());
    }

    /// One entry as large as the table, referenced by every byte of a block.
    #[test]
    fn a_block_is_not_read_beyond_its_bound() {
        let text = [b'v'; 4000];
        for reference in [&[0xbe][..], &[0x7e, 0], &[0x0f, 0x2f, 0]] {
            let mut decoder = Decoder::new(4096);
            let mut block = vec![0x40, 0x7f, (4000_usize - 127) as u8 | 0x80, ((4000 - 127) >> 7) as u8];
            block.extend_from_slice(&text);
            block.push(0);
            assert_eq!(decoder.decode(&block, 4096, |_, _| {}), Ok(()));
            let mut fields = 0;
            let bomb = reference.repeat(16_384);
            assert_eq!(decoder.decode(&bomb, 4096, |_, _| fields += 1), Err(DecodeError), "{reference:x?}");
            assert_eq!(fields, budget::EXPANSION * 4096 / 4032);
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let mut room = [0; 400];
        let mut writer = Writer::new(&mut room);
        writer.indexed(8).unwrap();
        writer.named(8, b"418").unwrap();
        writer.field(b"server", b"weir").unwrap();
        writer.field(b"x-long", &[b'v'; 300]).unwrap();
        assert_eq!(writer.field(b"x", &[b'v'; 100]), None);
        let length = 1 + 5 + 2 + 5 + 8 + 3 + 300;
        let mut text = String::new();
        Decoder::new(0)
            .decode(&room[..length], 1000, |name, value| {
                text += &format!("{}={};", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            })
            .unwrap();
        assert_eq!(text, format!(":status=200;:status=418;server=weir;x-long={};", "v".repeat(300)));
    }
}
