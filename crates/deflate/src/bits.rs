//! A bit writer, least significant bit first, and a small buffer for output that does not fit into the caller's. Must
//! never know the meaning of the bits.

/// Bits that do not form a whole byte yet.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bits {
    buffer: u64,
    count: u32,
}

impl Bits {
    /// Adds bits: at most 56, including those since the last [`Self::write`].
    #[inline(always)]
    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        debug_assert!(self.count + count < 64 && bits >> count == 0);
        self.buffer |= bits << (self.count & 63);
        self.count += count;
    }

    /// Writes the whole bytes at an index with space for eight; returns the index after them.
    #[inline(always)]
    pub(crate) fn write(&mut self, output: &mut [u8], place: usize) -> usize {
        if let Some(space) = output.get_mut(place..).and_then(<[u8]>::first_chunk_mut::<8>) {
            *space = self.buffer.to_le_bytes();
        }
        let whole = self.count & !7;
        self.buffer >>= whole & 63;
        self.count &= 7;
        place + whole as usize / 8
    }

    /// Pads with zeros to a whole byte.
    pub(crate) fn align(&mut self) {
        self.count = self.count.next_multiple_of(8);
    }
}

/// Size of [`Staging`] in bytes.
const STAGED: usize = 2048;

/// Output that waits for space in the caller's buffer.
pub(crate) struct Staging {
    bytes: [u8; STAGED],
    from: usize,
    to: usize,
}

impl Staging {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; STAGED], from: 0, to: 0 }
    }

    pub(crate) fn clear(&mut self) {
        (self.from, self.to) = (0, 0);
    }

    /// Copies as much as fits into `output`; returns the number of bytes.
    pub(crate) fn drain(&mut self, output: &mut [u8]) -> usize {
        let length = output.len().min(self.to - self.from);
        output[..length].copy_from_slice(&self.bytes[self.from..self.from + length]);
        self.from += length;
        if self.from == self.to {
            self.clear();
        }
        length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.to..self.to + bytes.len()].copy_from_slice(bytes);
        self.to += bytes.len();
    }

    /// Appends the output of a function that gets the buffer and an index, and returns the index after its output.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut [u8], usize) -> usize) {
        self.to = write(&mut self.bytes, self.to);
    }

    /// Adds bits and writes the whole bytes.
    pub(crate) fn put(&mut self, bits: &mut Bits, value: u64, count: u32) {
        bits.put(value, count);
        self.to = bits.write(&mut self.bytes, self.to);
    }
}
