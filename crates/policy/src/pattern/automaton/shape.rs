//! Patterns as trees, made smaller before an automaton is built of them. What is left out makes no difference to whether
//! there is a match (both ends), or to where matches begin (the end alone). Must never be asked which text a group holds.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// A pattern for one question.
#[derive(Debug)]
pub struct Shape {
    /// For whether it matches.
    pub whether: Hir,
    /// For where matches begin.
    pub whence: Hir,
    /// How far they go.
    pub extent: Extent,
}

/// How far a match goes, where that takes no search.
#[derive(Debug, Default, PartialEq)]
pub enum Extent {
    /// Each as many bytes.
    Fixed(usize),
    /// As far as bytes are of a class: whether each is.
    Run(Box<[bool; 256]>),
    /// It takes a search.
    #[default]
    Unknown,
}

impl Extent {
    fn of(hir: &Hir) -> Self {
        let (shortest, longest) = (hir.properties().minimum_len(), hir.properties().maximum_len());
        match hir.kind() {
            _ if shortest.is_some() && shortest == longest => Self::Fixed(shortest.unwrap_or(0)),
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Repetition(inner) if (inner.min, inner.max, inner.greedy) == (1, None, true) => {
                let mut bytes = Box::new([false; 256]);
                match inner.sub.kind() {
                    HirKind::Literal(literal) if literal.0.len() == 1 => bytes[usize::from(literal.0[0])] = true,
                    HirKind::Class(Class::Bytes(class)) => {
                        let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
                        all.for_each(|byte| bytes[usize::from(byte)] = true);
                    }
                    _ => return Self::Unknown,
                }
                Self::Run(bytes)
            }
            _ => Self::Unknown,
        }
    }

    /// Where a match ends that begins there.
    pub fn end(&self, text: &[u8], start: usize) -> Option<usize> {
        match self {
            Self::Fixed(length) => Some(start + length),
            Self::Run(bytes) => {
                let run = text[start..].iter().take_while(|byte| bytes[usize::from(**byte)]);
                Some(start + run.count())
            }
            Self::Unknown => None,
        }
    }
}

impl Shape {
    /// Of a pattern in the syntax of the `regex` crates. `None`: there is no such tree.
    pub fn new(text: &str, ignore_case: bool) -> Option<Self> {
        let parser = ParserBuilder::new().utf8(false).unicode(false).case_insensitive(ignore_case).build().parse(text);
        let tree = parser.ok()?;
        let whence = trimmed(&plain(&tree), Side::End);
        Some(Self { whether: trimmed(&whence, Side::Start), whence, extent: Extent::of(&tree) })
    }
}

/// An end of a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Start,
    End,
}

/// The same with no group, and no repetition of a repetition.
fn plain(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
        HirKind::Capture(capture) => plain(&capture.sub),
        HirKind::Repetition(repetition) => repeated(plain(&repetition.sub), repetition.min, repetition.max),
        HirKind::Concat(all) => Hir::concat(all.iter().map(plain).collect()),
        HirKind::Alternation(all) => Hir::alternation(all.iter().map(plain).collect()),
    }
}

/// `sub{min,max}`.
fn repeated(sub: Hir, min: u32, max: Option<u32>) -> Hir {
    if max == Some(0) {
        return Hir::empty();
    }
    if sub.properties().maximum_len() == Some(0) {
        // It takes nothing: once is as often as it likes.
        return if min == 0 { Hir::empty() } else { sub };
    }
    let min = if is_optional(&sub) { 0 } else { min };
    match sub.kind() {
        _ if (min, max) == (1, Some(1)) => sub,
        // From 0 or 1 on, the numbers of repetitions leave no gap.
        HirKind::Repetition(inner) if inner.min <= 1 => {
            let most = inner.max.zip(max).map(|(inner, outer)| inner.checked_mul(outer));
            match most {
                Some(None) => repetition(sub, min, max),
                most => repetition((*inner.sub).clone(), inner.min * min, most.flatten()),
            }
        }
        _ => repetition(sub, min, max),
    }
}

fn repetition(sub: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(sub) })
}

/// Whether it matches nothing at all, wherever.
fn is_optional(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty => true,
        HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
        HirKind::Repetition(repetition) => repetition.min == 0 || is_optional(&repetition.sub),
        HirKind::Capture(capture) => is_optional(&capture.sub),
        HirKind::Concat(all) => all.iter().all(is_optional),
        HirKind::Alternation(all) => all.iter().any(is_optional),
    }
}

/// Without what a match need not have on that side: where `x*y` matches, `y` does, and the other way round; as for `x{2,9}y`
/// and `x{2}y`.
fn trimmed(hir: &Hir, side: Side) -> Hir {
    if is_optional(hir) {
        return Hir::empty();
    }
    match hir.kind() {
        HirKind::Alternation(all) => Hir::alternation(all.iter().map(|one| trimmed(one, side)).collect()),
        HirKind::Concat(all) => {
            let mut left: Vec<Hir> = all.clone();
            loop {
                let at = if side == Side::Start { 0 } else { left.len().saturating_sub(1) };
                match left.get(at) {
                    None => return Hir::empty(),
                    Some(edge) if is_optional(edge) => {
                        left.remove(at);
                    }
                    Some(edge) => {
                        left[at] = trimmed(edge, side);
                        return Hir::concat(left);
                    }
                }
            }
        }
        HirKind::Repetition(inner) => {
            let edge = trimmed(&inner.sub, side);
            let rest = repeated((*inner.sub).clone(), inner.min - 1, Some(inner.min - 1));
            Hir::concat(if side == Side::Start { vec![edge, rest] } else { vec![rest, edge] })
        }
        _ => hir.clone(),
    }
}

/// The same with numbers of repetitions beyond `most` taken for any: it matches whatever the other one does, and more.
pub fn relaxed(hir: &Hir, most: u32) -> Hir {
    match hir.kind() {
        HirKind::Repetition(inner) => {
            let max = inner.max.filter(|max| *max <= most);
            repeated(relaxed(&inner.sub, most), inner.min.min(most), max)
        }
        HirKind::Capture(capture) => relaxed(&capture.sub, most),
        HirKind::Concat(all) => Hir::concat(all.iter().map(|one| relaxed(one, most)).collect()),
        HirKind::Alternation(all) => Hir::alternation(all.iter().map(|one| relaxed(one, most)).collect()),
        _ => hir.clone(),
    }
}
