//! A set of processors, by the system's numbers. Must never query the system for existing ones.

use std::fmt;

/// Upper bound of the processor numbers in a set.
pub const MOST_PROCESSORS: u32 = 1024;

const WORD: u32 = u64::BITS;
const WORDS: usize = (MOST_PROCESSORS / WORD) as usize;

/// A set of processors.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessorSet {
    words: [u64; WORDS],
}

impl ProcessorSet {
    /// The empty set.
    pub const EMPTY: Self = Self { words: [0; WORDS] };

    /// Adds a processor; numbers out of range are ignored.
    pub fn insert(&mut self, number: u32) {
        if let Some(word) = self.words.get_mut((number / WORD) as usize) {
            *word |= 1 << (number % WORD);
        }
    }

    /// Whether it contains a processor.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.words.get((number / WORD) as usize).is_some_and(|word| word >> (number % WORD) & 1 == 1)
    }

    /// Returns the number of processors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..MOST_PROCESSORS).filter(|number| self.contains(*number))
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |left, right| left | right)
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |left, right| left & right)
    }

    fn combine(&self, other: &Self, with: impl Fn(u64, u64) -> u64) -> Self {
        let mut words = self.words;
        words.iter_mut().zip(other.words).for_each(|(word, other)| *word = with(*word, other));
        Self { words }
    }
}

impl Default for ProcessorSet {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl FromIterator<u32> for ProcessorSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut set = Self::EMPTY;
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

/// Formats it as the kernel does: `0-3,8`.
impl fmt::Display for ProcessorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while numbers.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for ProcessorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_reads_as_it_is_written() {
        let rows: &[(&[u32], &str)] = &[
            (&[], ""),
            (&[0], "0"),
            (&[3, 1, 2, 0], "0-3"),
            (&[0, 2, 3, 63, 64, 65, 1023], "0,2-3,63-65,1023"),
            (&[1024, 5], "5"),
        ];
        for (numbers, text) in rows {
            let set: ProcessorSet = numbers.iter().copied().collect();
            assert_eq!(set.to_string(), *text);
            assert_eq!(set.len(), set.iter().count(), "{text}");
            assert_eq!(set.is_empty(), text.is_empty(), "{text}");
        }
    }

    #[test]
    fn sets_combine() {
        let left: ProcessorSet = (0..4).collect();
        let right: ProcessorSet = (2..70).collect();
        assert_eq!(left.union(&right).to_string(), "0-69");
        assert_eq!(left.intersection(&right).to_string(), "2-3");
        assert!(!left.contains(4) && !left.contains(100_000));
    }
}
