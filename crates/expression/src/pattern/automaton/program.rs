//! The instructions of an automaton, in the direction of the text or against it. Must never exceed its size limit.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// One instruction. The next one is given by its index.
#[derive(Debug, Clone, Copy)]
pub enum Inst {
    /// Consumes a byte between the two.
    Range(u8, u8, u32),
    /// Consumes a byte of several ranges: the index of the first one in `ranges`, and their number.
    Ranges(u32, u16, u32),
    /// Continues at several instructions: the index of the first one in `splits`, and their number.
    Split(u32, u32),
    /// Continues if the assertion holds.
    Look(Assertion, u32),
    /// Reports a match of the pattern with that number.
    Match(u32),
}

/// The family of an instruction without one.
pub const ALONE: u32 = u32::MAX;

/// An assertion: consumes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assertion {
    /// The start of the text.
    Start,
    /// The end of the text.
    End,
    /// A word boundary.
    Word,
    /// Not a word boundary.
    NotWord,
}

/// Instructions and their operands.
#[derive(Debug, Default)]
pub struct Program {
    pub insts: Vec<Inst>,
    /// Inclusive ranges of bytes.
    pub ranges: Vec<(u8, u8)>,
    /// Targets of splits.
    pub splits: Vec<u32>,
    /// The family of each instruction, or [`ALONE`]; empty if no instruction has one. The instructions of a family are
    /// copies of a counted repetition; the one with the highest number matches whatever the others match.
    pub families: Vec<u32>,
    /// The first instruction.
    pub start: u32,
    /// It contains a word boundary assertion.
    pub looks_at_words: bool,
    /// It contains an assertion of the start or the end.
    pub looks_at_ends: bool,
    /// It matches at the start of the reading direction or nowhere.
    pub anchored: bool,
    /// The reading direction.
    pub way: ScanDirection,
    /// Number of patterns.
    pub patterns: usize,
}

/// The program would exceed its size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// The direction in which texts are read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ScanDirection {
    /// From their start.
    #[default]
    Forward,
    /// From their end.
    Backward,
}

impl Program {
    /// Compiles all patterns into at most `most` instructions.
    ///
    /// # Errors
    /// More instructions are needed.
    pub fn new<'h>(patterns: impl Iterator<Item = &'h Hir>, way: ScanDirection, most: usize) -> Result<Self, TooLarge> {
        let mut builder = Builder { program: Self { anchored: true, way, ..Self::default() }, way, most };
        let mut starts = Vec::new();
        for (number, hir) in patterns.enumerate() {
            let prefix = if way == ScanDirection::Forward {
                hir.properties().look_set_prefix()
            } else {
                hir.properties().look_set_suffix()
            };
            let anchor = if way == ScanDirection::Forward { Look::Start } else { Look::End };
            builder.program.anchored &= prefix.contains(anchor);
            let end = builder.emit(Inst::Match(number as u32))?;
            starts.push(builder.hir(hir, end)?);
        }
        builder.program.patterns = starts.len();
        builder.program.start = builder.split(&starts)?;
        let Self { insts, ranges, splits, families, .. } = &mut builder.program;
        if families.iter().all(|family| *family == ALONE) {
            families.clear();
        }
        families.shrink_to_fit();
        insts.shrink_to_fit();
        ranges.shrink_to_fit();
        splits.shrink_to_fit();
        Ok(builder.program)
    }
}

struct Builder {
    program: Program,
    way: ScanDirection,
    most: usize,
}

impl Builder {
    fn emit(&mut self, inst: Inst) -> Result<u32, TooLarge> {
        let at = self.program.insts.len();
        if at + self.program.splits.len() + self.program.ranges.len() / 4 >= self.most {
            return Err(TooLarge);
        }
        self.program.insts.push(inst);
        self.program.families.push(ALONE);
        Ok(at as u32)
    }

    fn split(&mut self, to: &[u32]) -> Result<u32, TooLarge> {
        if let [only] = to {
            return Ok(*only);
        }
        let at = self.program.splits.len() as u32;
        self.program.splits.extend_from_slice(to);
        self.emit(Inst::Split(at, to.len() as u32))
    }

    /// Compiles `hir`, followed by `next`.
    fn hir(&mut self, hir: &Hir, mut next: u32) -> Result<u32, TooLarge> {
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => {
                let mut bytes = literal.0.iter();
                while let Some(byte) = if self.way == ScanDirection::Forward { bytes.next_back() } else { bytes.next() }
                {
                    next = self.emit(Inst::Range(*byte, *byte, next))?;
                }
                Ok(next)
            }
            HirKind::Class(class) => self.class(class, next),
            HirKind::Look(look) => self.look(*look, next),
            HirKind::Capture(capture) => self.hir(&capture.sub, next),
            HirKind::Concat(all) => {
                let mut all = all.iter();
                while let Some(one) = if self.way == ScanDirection::Forward { all.next_back() } else { all.next() } {
                    next = self.hir(one, next)?;
                }
                Ok(next)
            }
            HirKind::Alternation(all) => {
                let to: Result<Vec<u32>, TooLarge> = all.iter().map(|one| self.hir(one, next)).collect();
                self.split(&to?)
            }
            HirKind::Repetition(inner) => self.repetition(&inner.sub, inner.min, inner.max, next),
        }
    }

    fn repetition(&mut self, sub: &Hir, min: u32, max: Option<u32>, next: u32) -> Result<u32, TooLarge> {
        let mut at = next;
        let mut needed = min;
        match max {
            None => {
                let places = self.program.splits.len();
                self.program.splits.extend([next, next]);
                let again = self.emit(Inst::Split(places as u32, 2))?;
                let body = self.hir(sub, again)?;
                self.program.splits[places] = body;
                at = if min == 0 { again } else { body };
                needed = min.saturating_sub(1);
            }
            Some(max) => {
                let first = self.program.insts.len();
                for _ in min..max {
                    let body = self.hir(sub, at)?;
                    at = self.split(&[body, next])?;
                }
                self.relate(first, (max - min) as usize);
            }
        }
        for _ in 0..needed {
            at = self.hir(sub, at)?;
        }
        Ok(at)
    }

    /// Makes families of the instructions from `first` on, which are `copies` copies of the same. Each copy may be
    /// followed by all copies built before it, or by none: a later copy matches whatever an earlier one matches.
    fn relate(&mut self, first: usize, copies: usize) {
        let families = &mut self.program.families[first..];
        if copies < 2 || !families.len().is_multiple_of(copies) {
            return;
        }
        let length = families.len() / copies;
        for (at, family) in families.iter_mut().enumerate().filter(|(_, family)| **family == ALONE) {
            *family = (first + at % length) as u32;
        }
    }

    fn class(&mut self, class: &Class, next: u32) -> Result<u32, TooLarge> {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        match class {
            Class::Bytes(class) => ranges.extend(class.ranges().iter().map(|range| (range.start(), range.end()))),
            // Characters beyond ASCII have been translated to classes of bytes.
            Class::Unicode(class) => {
                for range in class.ranges() {
                    let (Ok(start), Ok(end)) = (u8::try_from(range.start()), u8::try_from(range.end())) else {
                        return Err(TooLarge);
                    };
                    ranges.push((start, end));
                }
            }
        }
        if let [(start, end)] = ranges[..] {
            return self.emit(Inst::Range(start, end, next));
        }
        let at = self.program.ranges.len() as u32;
        self.program.ranges.extend_from_slice(&ranges);
        self.emit(Inst::Ranges(at, ranges.len() as u16, next))
    }

    fn look(&mut self, look: Look, next: u32) -> Result<u32, TooLarge> {
        let forward = self.way == ScanDirection::Forward;
        let looking = match look {
            Look::Start if forward => Assertion::Start,
            Look::End if !forward => Assertion::Start,
            Look::Start | Look::End => Assertion::End,
            Look::WordAscii => Assertion::Word,
            Look::WordAsciiNegate => Assertion::NotWord,
            // Translated patterns contain no other assertions.
            _ => return Err(TooLarge),
        };
        match looking {
            Assertion::Start | Assertion::End => self.program.looks_at_ends = true,
            Assertion::Word | Assertion::NotWord => self.program.looks_at_words = true,
        }
        self.emit(Inst::Look(looking, next))
    }
}
