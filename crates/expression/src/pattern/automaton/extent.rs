//! Determines the end of a match from its beginning without a search, for patterns that allow it. Must never return
//! another end than PCRE2 would.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// The length of a match.
#[derive(Debug, Default, PartialEq)]
pub enum Extent {
    /// The sum of these parts.
    Parts(Box<[Part]>),
    /// It requires a search.
    #[default]
    Unknown,
}

/// Part of a match.
#[derive(Debug, PartialEq)]
pub enum Part {
    /// A fixed number of bytes.
    Fixed(usize),
    /// As many bytes of a class as follow (a flag per byte), up to a maximum.
    Run(Box<[bool; 256]>, usize),
}

impl Extent {
    /// Computes the extent of the matches of a tree.
    pub fn of(hir: &Hir) -> Self {
        let mut parts = Vec::new();
        let all = match hir.kind() {
            HirKind::Capture(capture) => return Self::of(&capture.sub),
            HirKind::Concat(all) => &all[..],
            _ => std::slice::from_ref(hir),
        };
        for (at, one) in all.iter().enumerate() {
            match part(one, all.get(at + 1)) {
                Some(part) => parts.push(part),
                None => return Self::Unknown,
            }
        }
        Self::Parts(parts.into())
    }

    /// Returns the end of a match that begins there.
    pub fn end(&self, text: &[u8], start: usize) -> Option<usize> {
        let Self::Parts(parts) = self else { return None };
        let mut at = start;
        for part in parts {
            at += match part {
                Part::Fixed(length) => *length,
                Part::Run(bytes, most) => {
                    text.get(at..)?.iter().take(*most).take_while(|byte| bytes[usize::from(**byte)]).count()
                }
            };
        }
        Some(at).filter(|at| *at <= text.len())
    }
}

/// Computes the extent of a tree, if only one length is possible before `next`.
fn part(hir: &Hir, next: Option<&Hir>) -> Option<Part> {
    if let HirKind::Capture(capture) = hir.kind() {
        return part(&capture.sub, next);
    }
    let (shortest, longest) = (hir.properties().minimum_len(), hir.properties().maximum_len());
    if let Some(length) = shortest.filter(|_| shortest == longest) {
        return Some(Part::Fixed(length));
    }
    let HirKind::Repetition(Repetition { min, max, greedy, sub }) = hir.kind() else { return None };
    let bytes = class(sub)?;
    let most = max.map_or(usize::MAX, |max| max as usize);
    match next {
        None if *greedy => Some(Part::Run(bytes, most)),
        None => Some(Part::Fixed(*min as usize)),
        // The repetition ends where the next part can begin.
        Some(next) => {
            let first = first(next)?;
            let apart = bytes.iter().zip(&first[..]).all(|(one, other)| !(*one && *other));
            (apart && max.is_none()).then_some(Part::Run(bytes, most))
        }
    }
}

/// The bytes of a tree that consumes exactly one byte.
fn class(hir: &Hir) -> Option<Box<[bool; 256]>> {
    let mut bytes = Box::new([false; 256]);
    match hir.kind() {
        HirKind::Capture(capture) => return class(&capture.sub),
        HirKind::Literal(literal) if literal.0.len() == 1 => bytes[usize::from(literal.0[0])] = true,
        HirKind::Class(Class::Bytes(class)) => {
            let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            all.for_each(|byte| bytes[usize::from(byte)] = true);
        }
        _ => return None,
    }
    Some(bytes)
}

/// The possible first bytes of a tree that consumes at least one.
fn first(hir: &Hir) -> Option<Box<[bool; 256]>> {
    match hir.kind() {
        HirKind::Capture(capture) => first(&capture.sub),
        HirKind::Literal(literal) => {
            let mut bytes = Box::new([false; 256]);
            bytes[usize::from(*literal.0.first()?)] = true;
            Some(bytes)
        }
        HirKind::Repetition(inner) if inner.min > 0 => first(&inner.sub),
        _ => class(hir),
    }
}
