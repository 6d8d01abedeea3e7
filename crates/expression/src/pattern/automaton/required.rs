//! A part that a text must contain to match: searched first, at the speed of `memchr`. Must never exclude a match.

use aho_corasick::packed::Searcher;
use memchr::memmem::Finder;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Maximum number of prefixes that are searched at once.
const MOST_BEGINNINGS: usize = 64;

/// Maximum number of parts that are searched one after the other.
const MOST_PARTS: usize = 3;

/// A part of this weight is rare enough to be preferred to prefixes.
const RARE: u32 = 8;

/// A part of every match.
#[derive(Debug)]
pub enum Required {
    /// One of up to three bytes.
    Byte([u8; 3]),
    /// A text.
    Text(Box<Finder<'static>>),
    /// A text in lower case, matched in either case, and the position of its rarest byte.
    AnyCase(Box<[u8]>, usize),
    /// One of several texts.
    Any(Box<Searcher>),
}

impl Required {
    /// Returns the best part of a pattern; `None`: it has none.
    pub fn of(hir: &Hir) -> Option<Self> {
        let mut best = BestPart { part: None, worth: 0 };
        visit(hir, &mut |worth, part| best.offer(worth, part));
        match best.part {
            Some(Self::Text(_)) => best.part,
            part if best.worth >= RARE => part,
            part => beginnings(hir).or(part),
        }
    }

    /// Returns up to [`MOST_PARTS`] parts, the rarest first, of a pattern whose positive lookarounds are groups. A
    /// match contains all of them.
    pub fn all_of(hir: &Hir) -> Vec<Self> {
        let mut all: Vec<(u32, Self)> = Vec::new();
        visit(hir, &mut |worth, part| {
            if worth >= RARE {
                all.push((worth, part()));
            }
        });
        words(hir, &mut all);
        all.sort_by_key(|(worth, _)| std::cmp::Reverse(*worth));
        all.into_iter().map(|(_, part)| part).take(MOST_PARTS).collect()
    }

    /// Whether a text contains it.
    #[inline]
    pub fn is_in(&self, text: &[u8]) -> bool {
        match self {
            Self::Byte([one, other, third]) if one == third && one == other => memchr::memchr(*one, text).is_some(),
            Self::Byte([one, other, third]) => memchr::memchr3(*one, *other, *third, text).is_some(),
            Self::Text(finder) => finder.find(text).is_some(),
            Self::AnyCase(wanted, rarest) => has_any_case(text, wanted, *rarest),
            Self::Any(searcher) => searcher.find(text).is_some(),
        }
    }
}

/// Whether a text contains a word in either case; `wanted` is in lower case.
fn has_any_case(text: &[u8], wanted: &[u8], rarest: usize) -> bool {
    let byte = wanted[rarest];
    let mut places = memchr::memchr2_iter(byte, byte.to_ascii_uppercase(), text);
    places.any(|at| {
        let start = at.checked_sub(rarest);
        let part = start.and_then(|start| text.get(start..start + wanted.len()));
        part.is_some_and(|part| part.eq_ignore_ascii_case(wanted))
    })
}

/// Returns the prefixes of which each match begins with one. For anchored patterns an automaton is as fast.
fn beginnings(hir: &Hir) -> Option<Required> {
    let properties = hir.properties();
    if properties.look_set_prefix().contains(Look::Start) || properties.look_set_suffix().contains(Look::End) {
        return None;
    }
    let mut all = Extractor::new().extract(hir);
    all.optimize_for_prefix_by_preference();
    let all = all.literals().filter(|all| (1..=MOST_BEGINNINGS).contains(&all.len()))?;
    if all.iter().any(|literal| literal.len() < 2) {
        return None;
    }
    Searcher::new(all.iter().map(|literal| literal.as_bytes())).map(|searcher| Required::Any(Box::new(searcher)))
}

struct BestPart {
    part: Option<Required>,
    worth: u32,
}

impl BestPart {
    fn offer(&mut self, worth: u32, part: &dyn Fn() -> Required) {
        if worth > self.worth {
            (self.worth, self.part) = (worth, Some(part()));
        }
    }
}

/// Visits the parts of every match: their weight, and their constructor.
fn visit(hir: &Hir, offer: &mut dyn FnMut(u32, &dyn Fn() -> Required)) {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let worth = literal.0.iter().map(|byte| rarity(*byte)).sum();
            match literal.0[..] {
                [byte] => offer(worth, &|| Required::Byte([byte; 3])),
                _ => offer(worth, &|| Required::Text(Box::new(Finder::new(&literal.0).into_owned()))),
            }
        }
        HirKind::Class(class) => {
            if let Some(bytes) = few(class) {
                let worth = bytes.iter().map(|byte| rarity(*byte)).min().unwrap_or(0) / 2;
                offer(worth.max(1), &|| Required::Byte(bytes));
            }
        }
        HirKind::Repetition(inner) if inner.min > 0 => visit(&inner.sub, offer),
        HirKind::Capture(capture) => visit(&capture.sub, offer),
        HirKind::Concat(all) => all.iter().for_each(|one| visit(one, offer)),
        // No single alternative is required.
        _ => {}
    }
}

/// Visits the texts of every match, in either case.
fn words(hir: &Hir, all: &mut Vec<(u32, Required)>) {
    match hir.kind() {
        HirKind::Repetition(inner) if inner.min > 0 => words(&inner.sub, all),
        HirKind::Capture(capture) => words(&capture.sub, all),
        HirKind::Concat(parts) => {
            let (mut word, mut has_letters) = (Vec::new(), false);
            for part in parts {
                match part.kind() {
                    HirKind::Literal(literal) => word.extend(literal.0.to_ascii_lowercase()),
                    HirKind::Class(class) if letter(class).is_some() => {
                        word.extend(letter(class));
                        has_letters = true;
                    }
                    _ => {
                        add_word(std::mem::take(&mut word), std::mem::take(&mut has_letters), all);
                        words(part, all);
                    }
                }
            }
            add_word(word, has_letters, all);
        }
        _ => {}
    }
}

fn add_word(word: Vec<u8>, has_letters: bool, all: &mut Vec<(u32, Required)>) {
    let rarest = (0..word.len()).max_by_key(|at| rarity(word[*at]));
    if let Some(rarest) = rarest.filter(|_| has_letters && word.len() > 1) {
        let worth = word.iter().map(|byte| rarity(*byte)).sum();
        all.push((worth, Required::AnyCase(word.into(), rarest)));
    }
}

/// Returns the letter, in lower case, of a class that contains exactly its two cases.
fn letter(class: &Class) -> Option<u8> {
    let [upper, lower, same] = few(class)?;
    (upper != lower && lower == same && upper.to_ascii_lowercase() == lower).then_some(lower)
}

/// Returns the bytes of a class, if there are at most three.
fn few(class: &Class) -> Option<[u8; 3]> {
    let Class::Bytes(class) = class else { return None };
    let count: usize = class.ranges().iter().map(|range| usize::from(range.end() - range.start()) + 1).sum();
    let mut bytes = class.ranges().iter().flat_map(|range| range.start()..=range.end());
    let first = bytes.next().filter(|_| count <= 3)?;
    let second = bytes.next().unwrap_or(first);
    Some([first, second, bytes.next().unwrap_or(second)])
}

/// The approximate rarity of a byte in requests.
fn rarity(byte: u8) -> u32 {
    match byte {
        b'e' | b'a' | b'o' | b't' | b'i' | b'n' | b's' | b'r' | b'/' | b' ' | b'.' => 2,
        b'a'..=b'z' | b'0'..=b'9' | b'-' | b'=' | b'&' | b'%' => 4,
        b'A'..=b'Z' | b'_' | b':' | b';' | b',' => 5,
        _ => 8,
    }
}
