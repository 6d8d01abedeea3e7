//! Prefix and suffix patterns, indexed by hash: one lookup per possible length. Marks on shorter parts exclude lengths,
//! so that a long list of many lengths costs a few lookups. Must never return another result than comparing one after
//! the other would.

use super::hash::Key;
use super::index::{Alive, Form, PatternIndex, Texts, Whole};

/// The end of a text that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The beginning: the longest match wins.
    Start,
    /// The end: the first match in the list wins.
    End,
}

impl Side {
    #[inline]
    fn part(self, text: &[u8], length: usize) -> &[u8] {
        match self {
            Self::Start => &text[..length],
            Self::End => &text[text.len() - length..],
        }
    }
}

/// Prefix or suffix patterns.
#[derive(Debug, Clone)]
pub struct Affixes {
    side: Side,
    /// The patterns, indexed by hash.
    pub texts: Whole,
    /// The lengths of the patterns, descending.
    lengths: Vec<usize>,
    count: usize,
    marks: Marks,
}

impl Affixes {
    /// Creates an empty index.
    pub fn new(side: Side, form: Form, key: Key) -> Self {
        let marks = Marks(Box::default());
        Self { side, texts: Whole::new(form, key), lengths: Vec::new(), count: 0, marks }
    }

    /// Reserves capacity for `count` patterns.
    pub fn reserve(&mut self, count: usize, texts: &impl Texts) {
        self.texts.reserve(count, texts);
        if self.count == 0 && count >= MARKED {
            self.marks = Marks::of(count * 4);
        }
    }

    /// Adds the pattern at an index of the list.
    pub fn insert(&mut self, at: PatternIndex, texts: &impl Texts) {
        let own = texts.key(at);
        if let Err(place) = self.lengths.binary_search_by(|length| own.len().cmp(length)) {
            self.lengths.insert(place, own.len());
        }
        self.texts.insert(at, texts);
        self.count += 1;
        if self.count >= MARKED && self.count > self.marks.0.len() / 4 {
            self.marks = Marks::of(self.count * 8);
            self.texts.places().for_each(|at| self.marks.set(self.side, &self.texts, texts.key(at)));
        } else if !self.marks.0.is_empty() {
            self.marks.set(self.side, &self.texts, own);
        }
    }

    /// Returns the index of the winning pattern, and its length.
    #[inline]
    pub fn find(&self, text: &[u8], texts: &impl Texts, alive: Alive<'_>) -> Option<(PatternIndex, usize)> {
        if let [length] = *self.lengths {
            let part = (length <= text.len()).then(|| self.side.part(text, length))?;
            return Some((self.texts.find(part, texts, alive)?, length));
        }
        self.find_among(text, texts, alive)
    }

    /// The same for patterns of several lengths.
    fn find_among(&self, text: &[u8], texts: &impl Texts, alive: Alive<'_>) -> Option<(PatternIndex, usize)> {
        let seen = if self.lengths.len() > FEW { self.marks.see(self.side, &self.texts, text) } else { MarkSet::ALL };
        let longest = self.lengths.partition_point(|length| *length > text.len());
        let fitting = self.lengths[longest..].iter().filter(|length| seen.may_have(**length));
        let mut found =
            fitting.filter_map(|length| Some((self.texts.find(self.side.part(text, *length), texts, alive)?, *length)));
        match self.side {
            Side::Start => found.next(),
            Side::End => found.min(),
        }
    }
}

/// Number of patterns from which on marks are kept.
const MARKED: usize = 256;

/// Number of lengths that are looked up without marks.
const FEW: usize = 3;

/// Length in bytes of the shortest marked part; each further one is twice as long.
const SHORTEST: usize = 8;

/// Number of marked parts of a text.
const LEVELS: usize = 7;

/// The bit for patterns longer than the next part.
const BEYOND: u32 = 1 << 31;

/// For parts of 8, 16, 32 bytes and so on, the lengths of longer patterns that begin with the part: a bit for each
/// range of lengths up to the next part, and one for those beyond. Indexed by hash alone: a collision only adds bits,
/// and costs a lookup without a match.
#[derive(Debug, Clone)]
struct Marks(Box<[u32]>);

impl Marks {
    fn of(places: usize) -> Self {
        Self(vec![0; places.next_power_of_two()].into_boxed_slice())
    }

    fn place(&self, hash: u64) -> usize {
        hash as usize & (self.0.len() - 1)
    }

    fn set(&mut self, side: Side, whole: &Whole, text: &[u8]) {
        let Some((own, bit)) = level(text.len()) else { return };
        for level in 0..=own {
            let place = self.place(whole.hash_of_pattern(side.part(text, SHORTEST << level)));
            self.0[place] |= if level < own { BEYOND } else { bit };
        }
    }

    fn see(&self, side: Side, whole: &Whole, text: &[u8]) -> MarkSet {
        if self.0.is_empty() {
            return MarkSet::ALL;
        }
        let mut seen = MarkSet([0; LEVELS]);
        for (level, bits) in seen.0.iter_mut().enumerate() {
            let length = SHORTEST << level;
            if length >= text.len() {
                break;
            }
            *bits = self.0[self.place(whole.hash_of_text(side.part(text, length)))];
            if *bits & BEYOND == 0 {
                break;
            }
        }
        seen
    }
}

/// The marks found for a text.
struct MarkSet([u32; LEVELS]);

impl MarkSet {
    /// No information: every length is possible.
    const ALL: Self = Self([u32::MAX; LEVELS]);

    fn may_have(&self, length: usize) -> bool {
        level(length).is_none_or(|(level, bit)| self.0[level] & bit != 0)
    }
}

/// Returns the level of the part that marks patterns of that length, and their bit; `None`: they are too short.
fn level(length: usize) -> Option<(usize, u32)> {
    let level = ((length.checked_sub(1)? / SHORTEST).checked_ilog2()? as usize).min(LEVELS - 1);
    let part = SHORTEST << level;
    Some((level, 1 << ((length - part - 1).saturating_mul(31) / part).min(30)))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Texts for Vec<String> {
        fn key(&self, at: PatternIndex) -> &[u8] {
            self[at as usize].as_bytes()
        }
    }

    /// Texts of many lengths with common prefixes and suffixes.
    fn list(count: usize) -> Vec<String> {
        let text = |number: usize| {
            let mixed = number.wrapping_mul(0x9e37_79b9) % 1009;
            (0..mixed % 40).map(|at| char::from(b'a' + (mixed >> (at % 7)) as u8 % 3)).collect()
        };
        (0..count).map(text).collect()
    }

    #[test]
    fn marks_change_no_answer() {
        let all = list(3000);
        for (side, form) in [(Side::Start, Form::Exact), (Side::End, Form::Exact), (Side::Start, Form::AnyCase)] {
            let (mut at_once, mut grown) =
                (Affixes::new(side, form, Key::default()), Affixes::new(side, form, Key::default()));
            at_once.reserve(all.len(), &all);
            for at in 0..all.len() as PatternIndex {
                at_once.insert(at, &all);
                grown.insert(at, &all);
            }
            assert!(!at_once.marks.0.is_empty() && !grown.marks.0.is_empty());
            for number in 0..500 {
                let text = format!("{}{}{}", all[number * 3], all[number + 7], all[number * 5]);
                let matches = |pattern: &str| match side {
                    Side::Start => text.starts_with(pattern),
                    Side::End => text.ends_with(pattern),
                };
                let hits = all.iter().enumerate().filter(|(_, pattern)| matches(pattern));
                let expected = match side {
                    Side::Start => {
                        hits.map(|(at, pattern)| (std::cmp::Reverse(pattern.len()), at)).min().map(|best| best.1)
                    }
                    Side::End => hits.map(|(at, _)| at).min(),
                };
                for affixes in [&at_once, &grown] {
                    let found = affixes.find(text.as_bytes(), &all, &|_| true).map(|found| found.0 as usize);
                    assert_eq!(found, expected, "{text} {side:?}");
                }
            }
        }
    }

    #[test]
    fn few_looks_are_left_of_many_lengths() {
        let all: Vec<String> = (0..2000).map(|number| format!("/{number:05}{}", "x".repeat(number % 50))).collect();
        let mut affixes = Affixes::new(Side::Start, Form::Exact, Key::default());
        affixes.reserve(all.len(), &all);
        (0..all.len() as PatternIndex).for_each(|at| affixes.insert(at, &all));
        let text = format!("{}/behind", all[1949]);
        let seen = affixes.marks.see(affixes.side, &affixes.texts, text.as_bytes());
        let looks = affixes.lengths.iter().filter(|length| **length <= text.len() && seen.may_have(**length)).count();
        assert_eq!(affixes.lengths.len(), 50);
        assert!((1..=12).contains(&looks), "{looks}");
    }

    #[test]
    fn every_length_has_its_level() {
        assert_eq!([0, 1, 8].map(level), [None; 3]);
        assert_eq!([9, 16, 17, 32, 33].map(|length| level(length).map(|found| found.0)), [0, 0, 1, 1, 2].map(Some));
        assert_eq!(level(usize::MAX).map(|found| found.0), Some(LEVELS - 1));
    }
}
