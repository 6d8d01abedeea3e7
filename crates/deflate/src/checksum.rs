//! The checksums of the formats around DEFLATE: CRC-32 (RFC 1952) and Adler-32 (RFC 1950). Must never know a format.

/// The maximum number of bytes whose sums fit into 32 bits.
const PART: usize = 5552;
const MODULUS: u32 = 65_521;

/// Adler-32.
pub(crate) struct Adler {
    one: u32,
    two: u32,
}

impl Adler {
    pub(crate) fn new() -> Self {
        Self { one: 1, two: 0 }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(PART) {
            for byte in part {
                self.one += u32::from(*byte);
                self.two += self.one;
            }
            self.one %= MODULUS;
            self.two %= MODULUS;
        }
    }

    pub(crate) fn sum(&self) -> u32 {
        self.two << 16 | self.one
    }
}

/// The checksum of a format.
pub(crate) enum Checksum {
    None,
    Crc(crc32fast::Hasher),
    Adler(Adler),
}

impl Checksum {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::None => {}
            Self::Crc(crc) => crc.update(bytes),
            Self::Adler(adler) => adler.update(bytes),
        }
    }
}
