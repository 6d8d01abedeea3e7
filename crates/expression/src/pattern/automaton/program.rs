//! What an automaton is built of: instructions, in the order of the text or against it. Must never be larger than it may.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// One instruction. What follows is told by its place.
#[derive(Debug, Clone, Copy)]
pub enum Inst {
    /// Takes a byte between the two.
    Range(u8, u8, u32),
    /// Takes a byte of one of so many ranges from that place on.
    Ranges(u32, u16, u32),
    /// Goes on at each of so many places, which stand from that one on.
    Split(u32, u32),
    /// Goes on where that holds.
    Look(Looking, u32),
    /// The pattern of that number matches.
    Match(u32),
}

/// The family of an instruction that has none.
pub const ALONE: u32 = u32::MAX;

/// What is looked at and not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looking {
    /// Nothing stands before.
    Start,
    /// Nothing follows.
    End,
    /// One side is part of a word, and the other is not.
    Word,
    /// Both are, or neither is.
    NotWord,
}

/// Instructions and what they refer to.
#[derive(Debug, Default)]
pub struct Program {
    /// All of them.
    pub insts: Vec<Inst>,
    /// Ranges of bytes.
    pub ranges: Vec<(u8, u8)>,
    /// Where splits go on.
    pub splits: Vec<u32>,
    /// The family of each instruction, or [`ALONE`]; empty where all are alone. Of a family, the instruction with the higher
    /// number matches whatever the others match: copies of what is repeated up to so many times.
    pub families: Vec<u32>,
    /// The first one.
    pub start: u32,
    /// It looks at what is part of a word.
    pub looks_at_words: bool,
    /// It looks for the start or the end.
    pub looks_at_ends: bool,
    /// It matches where texts are read from, or nowhere.
    pub anchored: bool,
    /// Which way it reads.
    pub way: Way,
    /// Patterns that it looks for.
    pub patterns: usize,
}

/// It would be larger than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// Which way texts are read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From their start.
    #[default]
    Forward,
    /// From their end.
    Backward,
}

impl Program {
    /// For all those patterns at once, in at most so many instructions.
    ///
    /// # Errors
    /// These do not suffice.
    pub fn new<'h>(patterns: impl Iterator<Item = &'h Hir>, way: Way, most: usize) -> Result<Self, TooLarge> {
        let mut builder = Builder { program: Self { anchored: true, way, ..Self::default() }, way, most };
        let mut starts = Vec::new();
        for (number, hir) in patterns.enumerate() {
            let prefix = if way == Way::Forward {
                hir.properties().look_set_prefix()
            } else {
                hir.properties().look_set_suffix()
            };
            let anchor = if way == Way::Forward { Look::Start } else { Look::End };
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
    way: Way,
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

    /// What takes `hir` and goes on at `next`.
    fn hir(&mut self, hir: &Hir, mut next: u32) -> Result<u32, TooLarge> {
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => {
                let mut bytes = literal.0.iter();
                while let Some(byte) = if self.way == Way::Forward { bytes.next_back() } else { bytes.next() } {
                    next = self.emit(Inst::Range(*byte, *byte, next))?;
                }
                Ok(next)
            }
            HirKind::Class(class) => self.class(class, next),
            HirKind::Look(look) => self.look(*look, next),
            HirKind::Capture(capture) => self.hir(&capture.sub, next),
            HirKind::Concat(all) => {
                let mut all = all.iter();
                while let Some(one) = if self.way == Way::Forward { all.next_back() } else { all.next() } {
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

    /// Makes families of the instructions from that one on, which are so many copies of the same. Each copy may be followed by
    /// all that were built before it, or by none: what an earlier one matches, a later one matches, too.
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
            // Characters beyond ASCII are bytes here, and come in classes of bytes.
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
        let forward = self.way == Way::Forward;
        let looking = match look {
            Look::Start if forward => Looking::Start,
            Look::End if !forward => Looking::Start,
            Look::Start | Look::End => Looking::End,
            Look::WordAscii => Looking::Word,
            Look::WordAsciiNegate => Looking::NotWord,
            // Nothing that is translated asks for others.
            _ => return Err(TooLarge),
        };
        match looking {
            Looking::Start | Looking::End => self.program.looks_at_ends = true,
            Looking::Word | Looking::NotWord => self.program.looks_at_words = true,
        }
        self.emit(Inst::Look(looking, next))
    }
}
