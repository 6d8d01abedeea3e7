//! The encoder of a message: the input, the block being written, and the enclosing format. Owns the order of blocks,
//! flushes and ends. Must never hold more than one block.

use crate::bits::{Bits, Staging};
use crate::block::{Codes, Kind, begin, begin_stored};
use crate::checksum::{Adler, Checksum};
use crate::matches::Window;
use crate::{Flush, Format, Progress};

/// The part of a block that is still to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing.
    Idle,
    /// Its bytes, stored, from this index on.
    Stored(usize),
    /// Its sequences, from this index on, and the index of their bytes.
    Coded(usize, usize),
}

/// The output after a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockEnd {
    Nothing,
    /// A flush marker: an empty stored block, which aligns the output to whole bytes.
    Mark,
    /// The end of the message.
    End,
}

/// A reusable encoder, for one message at a time.
pub struct Encoder {
    format: Format,
    bits_of_window: u8,
    /// Whether blocks are compressed.
    compresses: bool,
    window: Window,
    codes: Box<Codes>,
    bits: Bits,
    staging: Box<Staging>,
    checksum: Checksum,
    /// Number of bytes of the message.
    length: u64,
    phase: Phase,
    then: BlockEnd,
    /// The header of the format has been written.
    begun: bool,
    /// There was input after the last flush marker.
    unmarked: bool,
    /// The end has been written, or waits for space.
    ended: bool,
}

impl Encoder {
    /// Creates an encoder whose matches reach back at most `1 << window` bytes; `window` is 8 to 15, and 8 counts as 9.
    #[must_use]
    pub fn new(format: Format, window: u8) -> Self {
        let bits_of_window = window.clamp(9, 15);
        let mut encoder = Self {
            format,
            bits_of_window,
            compresses: true,
            window: Window::new(bits_of_window),
            codes: Box::new(Codes::new()),
            bits: Bits::default(),
            staging: Box::new(Staging::new()),
            checksum: Checksum::None,
            length: 0,
            phase: Phase::Idle,
            then: BlockEnd::Nothing,
            begun: false,
            unmarked: false,
            ended: false,
        };
        encoder.reset();
        encoder
    }

    /// Begins another message, like a new encoder. Unread output of the last one is dropped.
    pub fn reset(&mut self) {
        self.compresses = true;
        self.window.restart();
        self.bits = Bits::default();
        self.staging.clear();
        self.checksum = match self.format {
            Format::Gzip => Checksum::Crc(crc32fast::Hasher::new()),
            Format::Zlib => Checksum::Adler(Adler::new()),
            Format::Raw => Checksum::None,
        };
        self.length = 0;
        (self.phase, self.then) = (Phase::Idle, BlockEnd::Nothing);
        (self.begun, self.unmarked, self.ended) = (false, false, false);
    }

    /// Sets whether blocks that begin from now on are compressed or stored.
    pub fn set_compresses(&mut self, compresses: bool) {
        self.compresses = compresses;
    }

    /// Encodes as much as there is space for. After a flush, all input can be decoded from the output as soon as a call
    /// leaves space in it. No input is accepted after the end.
    pub fn encode(&mut self, input: &[u8], output: &mut [u8], flush: Flush) -> Progress {
        let (mut taken, mut made) = (0, 0);
        while self.drain(output, &mut made) && !self.ended {
            taken += self.take(&input[taken..]);
            let flush = if taken == input.len() { flush } else { Flush::Later };
            match flush {
                Flush::Later if self.window.is_full() => self.close_block(BlockEnd::Nothing),
                Flush::Now if self.unmarked => self.close_block(BlockEnd::Mark),
                Flush::End => self.close_block(BlockEnd::End),
                Flush::Later | Flush::Now => break,
            }
        }
        let finished = self.ended && self.phase == Phase::Idle && self.staging.is_empty();
        Progress { taken, made, finished }
    }

    /// Adds input to the block.
    fn take(&mut self, input: &[u8]) -> usize {
        if input.is_empty() {
            return 0;
        }
        let taken = self.window.take(input);
        self.checksum.update(&input[..taken]);
        self.length += taken as u64;
        self.unmarked = true;
        taken
    }

    /// Selects the type of the block, and begins to write it.
    fn close_block(&mut self, then: BlockEnd) {
        if !self.begun {
            self.begun = true;
            self.write_header();
        }
        let bytes = self.window.block().len();
        self.then = then;
        let last = then == BlockEnd::End;
        if bytes == 0 && !last {
            return self.finish_block();
        }
        let kind = if self.compresses || bytes == 0 {
            self.window.parse();
            let Self { window, codes, bits, staging, .. } = self;
            begin(&window.histogram, bytes, last, codes, bits, staging)
        } else {
            Kind::Stored
        };
        self.phase = if kind == Kind::Stored {
            begin_stored(bytes, last, &mut self.bits, &mut self.staging);
            Phase::Stored(0)
        } else {
            Phase::Coded(0, 0)
        };
    }

    /// Writes pending output; returns whether nothing is pending.
    fn drain(&mut self, output: &mut [u8], made: &mut usize) -> bool {
        loop {
            *made += self.staging.drain(&mut output[*made..]);
            if !self.staging.is_empty() {
                return false;
            }
            match self.phase {
                Phase::Idle => return true,
                Phase::Stored(done) => {
                    let rest = &self.window.block()[done..];
                    let length = rest.len().min(output.len() - *made);
                    output[*made..*made + length].copy_from_slice(&rest[..length]);
                    *made += length;
                    if length < rest.len() {
                        self.phase = Phase::Stored(done + length);
                        return false;
                    }
                    self.finish_block();
                }
                Phase::Coded(sequence, byte) => self.write_sequences(sequence, byte, output, made),
            }
        }
    }

    /// Writes sequences to the output, and the first one that does not fit to the staging buffer.
    fn write_sequences(&mut self, number: usize, mut byte: usize, output: &mut [u8], made: &mut usize) {
        let (codes, bytes, mut bits) = (&*self.codes, self.window.block_onward(), self.bits);
        let rest = self.window.sequences().get(number..).unwrap_or_default();
        let written = codes.write_sequences(rest, bytes, &mut byte, &mut bits, output, made);
        if let Some(sequence) = rest.get(written) {
            self.staging
                .write(|output, place| codes.write_sequence(*sequence, bytes, &mut byte, &mut bits, output, place));
            (self.bits, self.phase) = (bits, Phase::Coded(number + written + 1, byte));
            return;
        }
        // Fewer literals than a run.
        let literals = &self.window.block()[byte..];
        self.staging.write(|output, place| codes.write_literals(literals, &mut bits, output, place));
        codes.write_end(&mut bits, &mut self.staging);
        self.bits = bits;
        self.finish_block();
    }

    /// Ends the block, and appends the output after it.
    fn finish_block(&mut self) {
        self.window.finish_block();
        self.phase = Phase::Idle;
        match std::mem::replace(&mut self.then, BlockEnd::Nothing) {
            BlockEnd::Nothing => {}
            BlockEnd::Mark => {
                self.unmarked = false;
                begin_stored(0, false, &mut self.bits, &mut self.staging);
            }
            BlockEnd::End => {
                self.ended = true;
                self.bits.align();
                self.staging.put(&mut self.bits, 0, 0);
                self.write_trailer();
            }
        }
    }

    fn write_header(&mut self) {
        match self.format {
            // No name, no time, the fastest algorithm, Unix.
            Format::Gzip => self.staging.push(&[0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 4, 3]),
            Format::Zlib => {
                // The fastest algorithm; the two bytes are a multiple of 31.
                let method = (self.bits_of_window - 8) << 4 | 8;
                let check = 31 - u16::from_be_bytes([method, 0]) % 31;
                self.staging.push(&[method, check as u8 % 31]);
            }
            Format::Raw => {}
        }
    }

    fn write_trailer(&mut self) {
        match &self.checksum {
            Checksum::None => {}
            Checksum::Crc(crc) => {
                self.staging.push(&crc.clone().finalize().to_le_bytes());
                self.staging.push(&(self.length as u32).to_le_bytes());
            }
            Checksum::Adler(adler) => self.staging.push(&adler.sum().to_be_bytes()),
        }
    }
}
