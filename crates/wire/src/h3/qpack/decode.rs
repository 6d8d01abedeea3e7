//! Decodes field sections (RFC 9204, section 4.5). Owns the streams that wait for an insertion; must never wait itself.

use super::acknowledgments::Acknowledgments;
use super::dynamic::Dynamic;
use super::instructions::InstructionReader;
use super::prefix::Prefix;
use super::static_table;
use crate::fields::budget::Budget;
use crate::fields::field::{Capacity, HeaderField};
use crate::fields::integer;
use crate::fields::strings::{self, Scratch, Text};
use crate::h3::error::{Error, ErrorCode};

/// The advertised limits of a decoder. The default is the static table alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableLimits {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY: the largest dynamic table in bytes.
    pub capacity: u32,
    /// SETTINGS_QPACK_BLOCKED_STREAMS: the number of streams that may wait for an insertion.
    pub blocked: u16,
}

/// Result of decoding a field section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All fields were passed.
    Complete,
    /// No field was passed: the section refers to entries that were not received yet.
    Blocked,
}

/// A field section that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionError {
    /// It is invalid. The connection has to be closed.
    Failed,
    /// Its fields exceed the capacity of a message several times.
    Excessive,
}

impl From<SectionError> for Error {
    fn from(error: SectionError) -> Self {
        match error {
            SectionError::Failed => Self::connection(ErrorCode::QpackDecompressionFailed),
            // RFC 9204, section 7.4.
            SectionError::Excessive => Self::stream(ErrorCode::QpackDecompressionFailed),
        }
    }
}

/// A stream that waits.
#[derive(Debug)]
struct Waiting {
    stream: u64,
    /// The number of insertions that its section needs.
    required: u64,
}

/// Decodes the field sections of one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    dynamic: Dynamic,
    instructions: InstructionReader,
    acknowledgments: Acknowledgments,
    waiting: Vec<Waiting>,
    /// The largest number of streams that may wait.
    most_waiting: usize,
}

impl Decoder {
    /// Creates a decoder with the limits that were advertised; does not allocate.
    pub fn new(limits: TableLimits) -> Self {
        Self {
            dynamic: Dynamic::new(limits.capacity),
            instructions: InstructionReader::default(),
            acknowledgments: Acknowledgments::default(),
            waiting: Vec::new(),
            most_waiting: usize::from(limits.blocked),
        }
    }

    /// Decodes the next field section of a stream, of a message whose fields have a capacity, and passes its fields to
    /// `field` in order. A message that exceeds the capacity by less than the factor of [`Budget`] is passed as well.
    /// A section that is blocked has to be decoded again after [`Self::take_unblocked`] has returned its stream.
    ///
    /// # Errors
    /// It is no field section, too many streams wait, or its fields exceed the capacity several times; in the last case
    /// the reading of the stream ends, and [`Self::cancel`] has to be called.
    pub fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        capacity: Capacity,
        field: impl FnMut(&HeaderField<'_>),
    ) -> Result<Progress, SectionError> {
        let mut rest = section;
        let prefix = Prefix::read(&mut rest, &self.dynamic).ok_or(SectionError::Failed)?;
        if prefix.required > self.dynamic.inserted() {
            return self.wait(stream, prefix.required);
        }
        let lines = Lines { dynamic: &self.dynamic, prefix, longest: capacity.bytes };
        strings::with_scratch(|scratch| lines.read(scratch, rest, Budget::of(capacity), field))?;
        if prefix.required > 0 {
            self.acknowledgments.acknowledge(stream, prefix.required);
        }
        Ok(Progress::Complete)
    }

    /// Lets a stream wait.
    #[cold]
    fn wait(&mut self, stream: u64, required: u64) -> Result<Progress, SectionError> {
        self.waiting.retain(|waiting| waiting.stream != stream);
        if self.waiting.len() >= self.most_waiting {
            return Err(SectionError::Failed);
        }
        self.waiting.push(Waiting { stream, required });
        Ok(Progress::Blocked)
    }

    /// Applies the next bytes of the peer's encoder stream.
    ///
    /// # Errors
    /// An instruction is invalid.
    pub fn read_instructions(&mut self, input: &[u8]) -> Result<(), Error> {
        self.instructions.read(input, &mut self.dynamic).ok_or(Error::connection(ErrorCode::QpackEncoderStreamError))
    }

    /// Returns a stream that waited, and whose field section can be decoded now.
    pub fn take_unblocked(&mut self) -> Option<u64> {
        let inserted = self.dynamic.inserted();
        let index = self.waiting.iter().position(|waiting| waiting.required <= inserted)?;
        Some(self.waiting.swap_remove(index).stream)
    }

    /// Ends the reading of a stream before all its field sections were decoded.
    pub fn cancel(&mut self, stream: u64) {
        self.waiting.retain(|waiting| waiting.stream != stream);
        if self.dynamic.announced() > 0 {
            self.acknowledgments.cancel(stream);
        }
    }

    /// Returns the bytes to send on the decoder stream.
    pub fn output(&mut self) -> &[u8] {
        self.acknowledgments.output(self.dynamic.inserted())
    }

    /// Removes the first `count` bytes of the output, which were sent.
    pub fn advance(&mut self, count: usize) {
        self.acknowledgments.advance(count);
    }

    /// Size of the dynamic table in bytes, as the RFC defines it.
    pub fn table_size(&self) -> usize {
        self.dynamic.size()
    }

    /// The number of bytes of an incomplete instruction.
    pub fn held(&self) -> usize {
        self.instructions.held()
    }
}

/// The field lines of a section.
struct Lines<'t> {
    dynamic: &'t Dynamic,
    prefix: Prefix,
    /// Half the largest length of a string in bytes.
    longest: usize,
}

impl Lines<'_> {
    #[inline]
    fn read(
        &self,
        scratch: &mut Scratch,
        mut section: &[u8],
        mut budget: Budget,
        mut field: impl FnMut(&HeaderField<'_>),
    ) -> Result<(), SectionError> {
        let mut field = |read: &HeaderField<'_>| {
            budget.take(read).ok_or(SectionError::Excessive)?;
            field(read);
            Ok(())
        };
        while let Some(first) = section.first().copied() {
            match first {
                0x80.. => field(&self.indexed(&mut section, first).ok_or(SectionError::Failed)?)?,
                0x40..=0x7f => {
                    let is_static = first & 0x10 != 0;
                    let index = integer::read(&mut section, 4).ok_or(SectionError::Failed)?;
                    let entry = if is_static { static_table::get(index) } else { self.relative(index) };
                    field(&self.named(entry, &mut section, scratch).ok_or(SectionError::Failed)?)?;
                }
                0x20..=0x3f => field(&self.literal(&mut section, scratch).ok_or(SectionError::Failed)?)?,
                0x10..=0x1f => {
                    let index = integer::read(&mut section, 4).ok_or(SectionError::Failed)?;
                    field(&self.post_base(index).ok_or(SectionError::Failed)?)?;
                }
                _ => {
                    let index = integer::read(&mut section, 3).ok_or(SectionError::Failed)?;
                    let entry = self.post_base(index);
                    field(&self.named(entry, &mut section, scratch).ok_or(SectionError::Failed)?)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a reference to an entry.
    #[inline]
    fn indexed(&self, section: &mut &[u8], first: u8) -> Option<HeaderField<'_>> {
        let index = integer::read(section, 6)?;
        if first & 0x40 != 0 { static_table::get(index) } else { self.relative(index) }
    }

    /// Reads the value of a field with the name of an entry.
    #[inline]
    fn named<'f, 's: 'f>(
        &self,
        entry: Option<HeaderField<'f>>,
        section: &mut &'s [u8],
        scratch: &'f mut Scratch,
    ) -> Option<HeaderField<'f>> {
        let value = match strings::read(section, 7, &mut scratch.value, self.longest)? {
            Text::Plain(value) => value,
            Text::Decoded => &scratch.value,
        };
        Some(HeaderField { value, is_valid: false, ..entry? })
    }

    /// Reads a name and a value.
    #[inline]
    fn literal<'f, 's: 'f>(&self, section: &mut &'s [u8], scratch: &'f mut Scratch) -> Option<HeaderField<'f>> {
        let name = match strings::read(section, 3, &mut scratch.name, self.longest)? {
            Text::Plain(name) => name,
            Text::Decoded => &scratch.name,
        };
        let value = match strings::read(section, 7, &mut scratch.value, self.longest)? {
            Text::Plain(value) => value,
            Text::Decoded => &scratch.value,
        };
        Some(HeaderField::new(name, value))
    }

    /// Returns the entry at an index relative to the base (RFC 9204, section 3.2.5).
    #[inline]
    fn relative(&self, index: usize) -> Option<HeaderField<'_>> {
        self.absolute(self.prefix.base.checked_sub(1)?.checked_sub(index as u64)?)
    }

    /// Returns the entry at an index from the base on (RFC 9204, section 3.2.6).
    #[inline]
    fn post_base(&self, index: usize) -> Option<HeaderField<'_>> {
        self.absolute(self.prefix.base.checked_add(index as u64)?)
    }

    fn absolute(&self, index: u64) -> Option<HeaderField<'_>> {
        if index < self.prefix.required { self.dynamic.get(index) } else { None }
    }
}
