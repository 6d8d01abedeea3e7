//! Generates nearly valid configurations: from a corpus of valid ones, with a few faults each, by seed. Must never read
//! anything but the corpus.

use std::path::{Path, PathBuf};

/// Folder of the valid configurations, and of the files that they name.
pub fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutations/corpus")
}

/// Returns the valid configurations by name.
pub fn corpus() -> Vec<(String, Vec<u8>)> {
    let entries =
        std::fs::read_dir(corpus_folder()).expect("the corpus is there").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "cfg")).collect();
    files.sort();
    assert!(files.len() >= 10, "the corpus covers the language");
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read(path).expect("a configuration"))).collect()
}

/// Pseudo-random numbers, reproducible by seed (SplitMix64).
pub struct Random(u64);

impl Random {
    /// Creates the sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Lines of words.
type Lines = Vec<Vec<Vec<u8>>>;

/// A kind of fault.
type Fault = fn(&mut Lines, &Lines, &mut Random);

/// Faults in words and lines.
const FAULTS: &[Fault] = &[
    drop_word,
    drop_word,
    repeat_word,
    swap_words,
    word_from_elsewhere,
    word_from_elsewhere,
    drop_line,
    repeat_line,
    swap_lines,
    line_from_elsewhere,
    line_from_elsewhere,
    join_lines,
    typing_mistake,
    typing_mistake,
    number,
    number,
    number,
    long_word,
    nest,
    move_section,
    repeat_section,
];

/// Returns the mutant of that number.
pub fn mutant(corpus: &[(String, Vec<u8>)], seed: u64, number: usize) -> Vec<u8> {
    let mut random = Random::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(number as u64));
    let mut lines = split(&corpus[number % corpus.len()].1);
    let others = split(&random.of(corpus).1);
    for _ in 0..=random.below(3) {
        random.of(FAULTS)(&mut lines, &others, &mut random);
    }
    let mut text = joined(&lines);
    match random.below(16) {
        0 => text.truncate(random.below(text.len() + 1)),
        1 if !text.is_empty() => {
            let at = random.below(text.len());
            text[at] = random.next() as u8;
        }
        2 => text.insert(random.below(text.len() + 1), random.next() as u8),
        _ => {}
    }
    text
}

fn split(text: &[u8]) -> Lines {
    let words = |line: &[u8]| line.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
    text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n').map(words).collect()
}

fn joined(lines: &Lines) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.join(&b' '), b"\n".to_vec()]).flatten().collect()
}

/// Returns a random line with words, and one of its words that is not empty.
fn word(lines: &Lines, random: &mut Random) -> Option<(usize, usize)> {
    let line = random.below(lines.len().max(1));
    let words: Vec<usize> = (0..lines.get(line)?.len()).filter(|at| !lines[line][*at].is_empty()).collect();
    (!words.is_empty()).then(|| (line, *random.of(&words)))
}

fn line(lines: &Lines, random: &mut Random) -> Option<usize> {
    (!lines.is_empty()).then(|| random.below(lines.len()))
}

fn drop_word(lines: &mut Lines, _: &Lines, random: &mut Random) {
    if let Some((line, at)) = word(lines, random) {
        lines[line].remove(at);
    }
}

fn repeat_word(lines: &mut Lines, _: &Lines, random: &mut Random) {
    if let Some((line, at)) = word(lines, random) {
        let again = lines[line][at].clone();
        lines[line].insert(at, again);
    }
}

fn swap_words(lines: &mut Lines, _: &Lines, random: &mut Random) {
    let (Some((line, at)), Some((other, there))) = (word(lines, random), word(lines, random)) else { return };
    let (one, two) = (lines[line][at].clone(), lines[other][there].clone());
    lines[line][at] = two;
    lines[other][there] = one;
}

fn word_from_elsewhere(lines: &mut Lines, others: &Lines, random: &mut Random) {
    let (Some((line, at)), Some((other, there))) = (word(lines, random), word(others, random)) else { return };
    let found = others[other][there].clone();
    if random.below(2) == 0 { lines[line][at] = found } else { lines[line].insert(at + 1, found) }
}

fn drop_line(lines: &mut Lines, _: &Lines, random: &mut Random) {
    if let Some(at) = line(lines, random) {
        lines.remove(at);
    }
}

fn repeat_line(lines: &mut Lines, _: &Lines, random: &mut Random) {
    let (Some(at), Some(to)) = (line(lines, random), line(lines, random)) else { return };
    let again = lines[at].clone();
    lines.insert(to, again);
}

fn swap_lines(lines: &mut Lines, _: &Lines, random: &mut Random) {
    if let (Some(one), Some(two)) = (line(lines, random), line(lines, random)) {
        lines.swap(one, two);
    }
}

fn line_from_elsewhere(lines: &mut Lines, others: &Lines, random: &mut Random) {
    if let (Some(to), Some(from)) = (line(lines, random), line(others, random)) {
        lines.insert(to, others[from].clone());
    }
}

fn join_lines(lines: &mut Lines, _: &Lines, random: &mut Random) {
    if let Some(at) = line(lines, random).filter(|at| at + 1 < lines.len()) {
        let next = lines.remove(at + 1);
        lines[at].extend(next);
    }
}

fn typing_mistake(lines: &mut Lines, _: &Lines, random: &mut Random) {
    let Some((line, at)) = word(lines, random) else { return };
    let word = &mut lines[line][at];
    let letter = random.below(word.len());
    match random.below(3) {
        0 => {
            word.remove(letter);
        }
        1 => word.insert(letter, *random.of(b"aex_-.,:()[]{}%$\"'\\#!/0123456789")),
        _ => {
            let next = (letter + 1).min(word.len() - 1);
            word.swap(letter, next);
        }
    }
}

/// Numbers at the limits of any setting, and invalid ones.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "+3",
    "0x10",
    "3x",
    "3.5",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "99999999999999999999",
    "1e3",
    "",
    "03",
    "1k",
    "1d",
];

fn number(lines: &mut Lines, _: &Lines, random: &mut Random) {
    let of_digits = |word: &Vec<u8>| word.iter().any(u8::is_ascii_digit);
    let found = lines.iter().enumerate();
    let found =
        found.flat_map(|(line, words)| (0..words.len()).filter(|at| of_digits(&words[*at])).map(move |at| (line, at)));
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return;
    }
    let (line, at) = *random.of(&found);
    let word = &mut lines[line][at];
    let start = word.iter().position(u8::is_ascii_digit).unwrap_or(0);
    let length = word[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    word.splice(start..start + length, random.of(NUMBERS).bytes());
}

fn long_word(lines: &mut Lines, _: &Lines, random: &mut Random) {
    let Some((line, at)) = word(lines, random) else { return };
    let times = [100, 1_000, 10_000, 100_000][random.below(4)];
    let part = lines[line][at].clone();
    lines[line][at] = part.iter().copied().cycle().take(times).collect();
}

/// Inserts nested parentheses, braces and quotes.
fn nest(lines: &mut Lines, _: &Lines, random: &mut Random) {
    let Some((line, at)) = word(lines, random) else { return };
    let depth = [3, 30, 300][random.below(3)];
    let (open, close) = *random.of(&[
        ("(", ")"),
        ("%[", "]"),
        ("\"", "\""),
        ("{ ", " }"),
        ("acl(", ")"),
        ("'", "'"),
        ("!", ""),
        ("str(", ")"),
    ]);
    let inner = lines[line][at].clone();
    lines[line][at] = [open.repeat(depth).into_bytes(), inner, close.repeat(depth).into_bytes()].concat();
}

/// Returns the starts of sections, and the end.
fn sections(lines: &Lines) -> Vec<usize> {
    let begins =
        |line: &Vec<Vec<u8>>| line.first().is_some_and(|word| word.first().is_some_and(u8::is_ascii_lowercase));
    (0..lines.len()).filter(|at| begins(&lines[*at])).chain([lines.len()]).collect()
}

fn a_section(lines: &Lines, random: &mut Random) -> Option<(usize, usize)> {
    let starts = sections(lines);
    let at = random.below(starts.len().checked_sub(1).filter(|count| *count > 0)?);
    Some((starts[at], starts[at + 1]))
}

fn move_section(lines: &mut Lines, _: &Lines, random: &mut Random) {
    let Some((start, end)) = a_section(lines, random) else { return };
    let section: Vec<_> = lines.drain(start..end).collect();
    let to = *random.of(&sections(lines));
    lines.splice(to..to, section);
}

fn repeat_section(lines: &mut Lines, _: &Lines, random: &mut Random) {
    let Some((start, end)) = a_section(lines, random) else { return };
    let section = lines[start..end].to_vec();
    let to = *random.of(&sections(lines));
    lines.splice(to..to, section);
}
