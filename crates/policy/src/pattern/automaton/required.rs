//! What a text must hold to match: looked for before anything else, at the speed of `memchr`. Must never miss a match.

use aho_corasick::packed::Searcher;
use memchr::memmem::Finder;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Beginnings that are looked for at once, at most.
const MOST_BEGINNINGS: usize = 64;

/// A byte that is worth that is rarer than beginnings.
const RARE: u32 = 8;

/// A part that every match has.
#[derive(Debug)]
pub enum Required {
    /// One of up to three bytes.
    Byte([u8; 3]),
    /// A text.
    Text(Box<Finder<'static>>),
    /// One of some texts.
    Any(Box<Searcher>),
}

impl Required {
    /// The best one of a pattern; `None`: it has none.
    pub fn of(hir: &Hir) -> Option<Self> {
        let mut best = Best { part: None, worth: 0 };
        visit(hir, &mut best);
        match best.part {
            Some(Self::Text(_)) => best.part,
            part if best.worth >= RARE => part,
            part => beginnings(hir).or(part),
        }
    }

    /// Whether a text has it.
    #[inline]
    pub fn is_in(&self, text: &[u8]) -> bool {
        match self {
            Self::Byte([one, other, third]) if one == third && one == other => memchr::memchr(*one, text).is_some(),
            Self::Byte([one, other, third]) => memchr::memchr3(*one, *other, *third, text).is_some(),
            Self::Text(finder) => finder.find(text).is_some(),
            Self::Any(searcher) => searcher.find(text).is_some(),
        }
    }
}

/// The texts of which each match begins with one. Where matches stand at an end of the text, an automaton is as fast.
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

struct Best {
    part: Option<Required>,
    worth: u32,
}

impl Best {
    fn offer(&mut self, worth: u32, part: impl FnOnce() -> Required) {
        if worth > self.worth {
            (self.worth, self.part) = (worth, Some(part()));
        }
    }
}

/// Goes through what is in every match.
fn visit(hir: &Hir, best: &mut Best) {
    match hir.kind() {
        HirKind::Literal(literal) => {
            let worth = literal.0.iter().map(|byte| rarity(*byte)).sum();
            match literal.0[..] {
                [byte] => best.offer(worth, || Required::Byte([byte; 3])),
                _ => best.offer(worth, || Required::Text(Box::new(Finder::new(&literal.0).into_owned()))),
            }
        }
        HirKind::Class(class) => {
            if let Some(bytes) = few(class) {
                let worth = bytes.iter().map(|byte| rarity(*byte)).min().unwrap_or(0) / 2;
                best.offer(worth.max(1), || Required::Byte(bytes));
            }
        }
        HirKind::Repetition(inner) if inner.min > 0 => visit(&inner.sub, best),
        HirKind::Capture(capture) => visit(&capture.sub, best),
        HirKind::Concat(all) => all.iter().for_each(|one| visit(one, best)),
        // Of alternatives, none has to be there.
        _ => {}
    }
}

/// The bytes of a class, if they are at most three.
fn few(class: &Class) -> Option<[u8; 3]> {
    let Class::Bytes(class) = class else { return None };
    let count: usize = class.ranges().iter().map(|range| usize::from(range.end() - range.start()) + 1).sum();
    let mut bytes = class.ranges().iter().flat_map(|range| range.start()..=range.end());
    let first = bytes.next().filter(|_| count <= 3)?;
    let second = bytes.next().unwrap_or(first);
    Some([first, second, bytes.next().unwrap_or(second)])
}

/// How seldom a byte is in what clients send, roughly.
fn rarity(byte: u8) -> u32 {
    match byte {
        b'e' | b'a' | b'o' | b't' | b'i' | b'n' | b's' | b'r' | b'/' | b' ' | b'.' => 2,
        b'a'..=b'z' | b'0'..=b'9' | b'-' | b'=' | b'&' | b'%' => 4,
        b'A'..=b'Z' | b'_' | b':' | b';' | b',' => 5,
        _ => 8,
    }
}
