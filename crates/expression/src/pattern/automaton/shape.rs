//! Simplifies patterns as trees before an automaton is built. The omitted parts do not affect whether there is a match
//! (both ends), or where matches begin (the end only). Must never be used for the text of a group.

use super::extent::Extent;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Repetition};

/// Maximum number of alternatives that are searched individually.
const MOST_ALTERNATIVES: usize = 64;

/// A pattern, simplified for each query.
#[derive(Debug)]
pub struct Shape {
    /// For whether it matches.
    pub whether: Hir,
    /// For where matches begin: each alternative, in order, or the whole pattern.
    pub whence: Vec<Hir>,
    /// The extents of the matches, one for each entry of `whence`.
    pub extents: Vec<Extent>,
    /// The whole pattern without groups and nested repetitions.
    pub tree: Hir,
}

impl Shape {
    /// Parses a pattern in the syntax of the `regex` crates. `None`: it is invalid.
    pub fn new(text: &str, ignore_case: bool) -> Option<Self> {
        let tree = Self::tree(text, ignore_case)?;
        let plain = plain(&tree);
        let whole = trimmed(&plain, Side::End);
        let whether = trimmed(&whole, Side::Start);
        let (whence, extents) = alternatives(&tree).unwrap_or_else(|| (vec![whole], vec![Extent::of(&tree)]));
        Some(Self { whether, whence, extents, tree: plain })
    }

    /// Returns the unmodified tree of such a pattern.
    pub fn tree(text: &str, ignore_case: bool) -> Option<Hir> {
        let mut builder = ParserBuilder::new();
        builder.utf8(false).unicode(false).case_insensitive(ignore_case).build().parse(text).ok()
    }
}

/// Returns the alternatives, if it matters which one matches: the extents of some are known without a search.
fn alternatives(mut tree: &Hir) -> Option<(Vec<Hir>, Vec<Extent>)> {
    while let HirKind::Capture(capture) = tree.kind() {
        tree = &capture.sub;
    }
    let HirKind::Alternation(all) = tree.kind() else { return None };
    let properties = tree.properties();
    // Assertions are decided a byte later, and an empty match cannot be attributed to one alternative.
    if all.len() > MOST_ALTERNATIVES
        || !properties.look_set().is_empty()
        || properties.minimum_len().is_none_or(|least| least == 0)
        || Extent::of(tree) != Extent::Unknown
    {
        return None;
    }
    let extents: Vec<Extent> = all.iter().map(Extent::of).collect();
    let whence = || all.iter().map(|one| trimmed(&plain(one), Side::End)).collect();
    extents.iter().any(|extent| *extent != Extent::Unknown).then(|| (whence(), extents))
}

/// An end of a pattern.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Start,
    End,
}

/// Removes groups and nested repetitions.
fn plain(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
        HirKind::Capture(capture) => plain(&capture.sub),
        HirKind::Repetition(repetition) => repeated(plain(&repetition.sub), repetition.min, repetition.max),
        HirKind::Concat(all) => Hir::concat(all.iter().map(plain).collect()),
        HirKind::Alternation(all) => Hir::alternation(all.iter().map(plain).collect()),
    }
}

/// Builds `sub{min,max}`.
fn repeated(sub: Hir, min: u32, max: Option<u32>) -> Hir {
    if max == Some(0) {
        return Hir::empty();
    }
    if sub.properties().maximum_len() == Some(0) {
        // It consumes nothing: one repetition is as good as several.
        return if min == 0 { Hir::empty() } else { sub };
    }
    let min = if is_optional(&sub) { 0 } else { min };
    match sub.kind() {
        _ if (min, max) == (1, Some(1)) => sub,
        // From 0 or 1 on the products of the counts are contiguous.
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

/// Whether it matches the empty text at any position.
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

/// Removes the parts on that side that a match does not need: `x*y` matches where `y` does, and vice versa; likewise
/// `x{2,9}y` and `x{2}y`.
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

/// Replaces repetition counts beyond `most` with unlimited ones: it matches whatever the original does, and more.
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

/// Removes all assertions.
pub fn without_looks(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(_) => Hir::empty(),
        HirKind::Repetition(inner) => repeated(without_looks(&inner.sub), inner.min, inner.max),
        HirKind::Capture(capture) => without_looks(&capture.sub),
        HirKind::Concat(all) => Hir::concat(all.iter().map(without_looks).collect()),
        HirKind::Alternation(all) => Hir::alternation(all.iter().map(without_looks).collect()),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
    }
}
