//! Regular expressions over bytes (section 7.1.4), with the syntax of PCRE2, which HAProxy uses. An automaton decides
//! in one pass over the text whether a pattern matches. PCRE2's interpreter determines the text of groups, and handles
//! lookarounds, back references and atomic groups; it is called only where a match may begin. Steps of both are
//! counted. Must never continue without steps, nor compile a pattern while requests wait.

mod ahead;
mod backtracking;
mod translate;

use super::automaton::{Automaton, Extent, Required, ScanDirection, Shape, Starts, Steps, relaxed, without_looks};
use crate::sample::Exhausted;
use backtracking::{Backtracking, Groups};
use regex_syntax::hir::{Hir, Look};
use std::fmt;
use std::sync::{Arc, OnceLock};
use translate::{demanded, translate};

/// Maximum number of instructions of one automaton. A larger pattern gets a relaxed automaton, and PCRE2 decides.
const MOST_SIZE: usize = 20_000;

/// Maximum repetition count in a relaxed automaton.
const MOST_COUNTED: u32 = 8;

/// Memory limit in bytes of a worker's cached states of one automaton.
const MOST_MEMORY: usize = 192 << 10;

/// Length in bytes up to which the rest of a text need not be limited for an attempt.
const SHORT: usize = 128;

/// Bytes read to determine the reach of an attempt; beyond them the reach is the whole text.
const NEAR: usize = 512;

/// Steps charged for a match that needs no search.
const MATCH: u64 = 5;

/// A compiled regular expression. A clone shares the automata.
#[derive(Clone)]
pub struct Regex(Arc<Inner>);

struct Inner {
    pattern: Box<str>,
    ignore_case: bool,
    /// The pattern was translated exactly.
    exact: bool,
    /// The first match from a position on begins there, or at the start of a later line.
    begins_with_lines: bool,
    forward: OnceLock<Forward>,
    backward: OnceLock<Option<Backward>>,
    /// Determines how far an attempt to match at a position may read.
    reach: OnceLock<Option<Automaton>>,
    backtracking: Backtracking,
}

/// Decides whether the pattern matches.
#[derive(Default)]
struct Forward {
    /// Parts that a text must all contain.
    required: Vec<Required>,
    /// `None`: only PCRE2 can decide.
    automaton: Option<Automaton>,
    /// The automaton matches exactly where the pattern does.
    exact: bool,
}

/// Finds the positions where matches begin.
struct Backward {
    automaton: Automaton,
    /// The extents of the matches of each of its patterns; empty if it may also find positions where no match begins.
    extents: Vec<Extent>,
}

/// The offsets of a match's groups.
#[derive(Default)]
pub struct Places {
    groups: Groups,
    starts: Starts,
    /// The last match.
    whole: Option<(usize, usize)>,
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// HAProxy's message, with PCRE2's reason.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        let regex = Self::deferred(pattern, ignore_case)?;
        regex.0.forward();
        Ok(regex)
    }

    /// Validates a pattern, and compiles it on first use.
    ///
    /// # Errors
    /// As for [`Regex::new`].
    pub fn deferred(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        let translated = translate(&config::text::to_bytes(pattern), false);
        let text = translated.as_ref().filter(|translated| Shape::new(&translated.text, ignore_case).is_some());
        let backtracking = match text {
            Some(translated) => Backtracking::of_linear(translated.repetitions),
            None => Backtracking::new(pattern, ignore_case)?,
        };
        Ok(Self(Arc::new(Inner {
            pattern: pattern.into(),
            ignore_case,
            exact: text.is_some(),
            begins_with_lines: text.is_none() && ahead::begins_with_lines(pattern.as_bytes()),
            forward: OnceLock::new(),
            backward: OnceLock::new(),
            reach: OnceLock::new(),
            backtracking,
        })))
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// Whether an automaton alone decides about a match. Otherwise PCRE2 decides.
    pub fn is_linear(&self) -> bool {
        self.0.exact
    }

    /// Returns the tree for an automaton of several patterns; the tree of a non-linear pattern matches wherever the
    /// pattern does, and elsewhere.
    pub fn shape(&self) -> Option<Hir> {
        self.0.shape().map(|shape| shape.whether)
    }

    /// Whether it matches anywhere.
    ///
    /// # Errors
    /// The steps are exhausted.
    pub fn is_match(&self, text: &[u8]) -> Result<bool, Exhausted> {
        self.is_match_within(text, &Steps::for_text(text.len()))
    }

    /// The same with shared steps.
    ///
    /// # Errors
    /// As for [`Regex::is_match`].
    pub fn is_match_within(&self, text: &[u8], steps: &Steps) -> Result<bool, Exhausted> {
        let forward = self.0.forward();
        if !forward.required.iter().all(|required| required.is_in(text)) {
            return Ok(false);
        }
        match &forward.automaton {
            Some(automaton) if !automaton.is_match(text, steps)? => Ok(false),
            Some(_) if forward.exact => Ok(true),
            _ => Ok(self.search(&mut Places::default(), text, steps, true)?.next(0)?.is_some()),
        }
    }

    /// Confirms a match that an automaton of several [`Regex::shape`]s has found.
    ///
    /// # Errors
    /// As for [`Regex::is_match`].
    pub fn is_confirmed_within(&self, text: &[u8], steps: &Steps) -> Result<bool, Exhausted> {
        match self.0.exact {
            true => Ok(true),
            false => Ok(self.search(&mut Places::default(), text, steps, true)?.next(0)?.is_some()),
        }
    }

    /// Starts a search for matches; with `groups` also for the text of their groups.
    ///
    /// # Errors
    /// The steps are exhausted.
    pub fn search<'s>(
        &'s self,
        places: &'s mut Places,
        text: &'s [u8],
        steps: &'s Steps,
        with_groups: bool,
    ) -> Result<Search<'s>, Exhausted> {
        let (inner, forward) = (&*self.0, self.0.forward());
        let Places { groups, starts, whole } = places;
        *whole = None;
        let mut unanchored = forward.automaton.is_none();
        let mut extents = &[][..];
        if !forward.required.iter().all(|required| required.is_in(text)) {
            starts.clear(text.len());
        } else if let Some(automaton) = forward.automaton.as_ref().filter(|automaton| automaton.is_anchored()) {
            starts.clear(text.len());
            if automaton.is_match(text, steps)? {
                starts.set(0);
            }
        } else if inner.begins_with_lines {
            starts.clear(text.len());
            starts.set(0);
            memchr::memchr_iter(b'\n', text).for_each(|end| starts.set(end + 1));
        } else if inner.asks_for_begin() {
            // PCRE2 must start where the search begins, not where a match may begin.
            unanchored = true;
        } else if let Some(backward) = inner.backward() {
            backward.automaton.starts(text, starts, steps)?;
            extents = if with_groups { &[] } else { &backward.extents };
        } else {
            unanchored = true;
        }
        Ok(Search { regex: inner, groups, starts, whole, extents, unanchored, text, steps, takes_more: false })
    }
}

/// The successive matches in a text.
pub struct Search<'s> {
    regex: &'s Inner,
    groups: &'s mut Groups,
    /// Positions where a match may begin.
    starts: &'s Starts,
    whole: &'s mut Option<(usize, usize)>,
    /// The extents of matches, if groups are not needed.
    extents: &'s [Extent],
    /// The positions where matches begin are unknown.
    unanchored: bool,
    text: &'s [u8],
    steps: &'s Steps,
    /// PCRE2's lowest limit did not suffice for the last match.
    takes_more: bool,
}

impl Search<'_> {
    /// Returns the bounds of the first match from a position on.
    ///
    /// # Errors
    /// The steps are exhausted.
    pub fn next(&mut self, from: usize) -> Result<Option<(usize, usize)>, Exhausted> {
        *self.whole = self.find(from)?;
        Ok(*self.whole)
    }

    fn find(&mut self, from: usize) -> Result<Option<(usize, usize)>, Exhausted> {
        let Inner { pattern, ignore_case, backtracking, .. } = self.regex;
        let mut asker = backtracking.asker(pattern, *ignore_case, self.groups, self.text, self.steps);
        if self.unanchored {
            return asker.search(from);
        }
        let mut from = from;
        let mut begin = Some(from).filter(|_| self.regex.begins_with_lines);
        while let Some(start) = begin.take().or_else(|| self.starts.next(from)) {
            if !self.regex.exact && backtracking.is_brief() {
                // Each attempt is short: PCRE2 finds the position faster itself.
                return asker.search(start);
            }
            if let Some(extent) = self.extents.get(self.starts.pattern(start))
                && let Some(end) = extent.end(self.text, start)
            {
                self.steps.take(MATCH)?;
                return Ok(Some((start, end)));
            }
            let reach = self.regex.reach(&self.text[start..], self.steps)?;
            let (found, level) = asker.at(start, reach, self.takes_more)?;
            if found.is_some() {
                self.takes_more = level > 0;
                return Ok(found);
            }
            from = start + 1;
        }
        Ok(None)
    }

    /// Returns the bounds of the nth group of the last match; group 0 is the whole match.
    pub fn get(&self, group: usize) -> Option<(usize, usize)> {
        if group == 0 { *self.whole } else { self.groups.get(group).filter(|_| self.whole.is_some()) }
    }
}

impl Inner {
    /// Whether the pattern contains `\G`: its matches depend on where the search begins.
    fn asks_for_begin(&self) -> bool {
        !self.exact && self.pattern.contains("\\G")
    }

    fn shape(&self) -> Option<Shape> {
        let pattern = config::text::to_bytes(&self.pattern);
        let translated = translate(&pattern, false).filter(|_| self.exact).or_else(|| translate(&pattern, true))?;
        Shape::new(&translated.text, self.ignore_case)
    }

    fn forward(&self) -> &Forward {
        self.forward.get_or_init(|| {
            let Some(shape) = self.shape() else { return Forward::default() };
            let properties = shape.whether.properties();
            let at_start = properties.look_set_prefix().contains(Look::Start);
            // An anchor at the end is decided sooner when reading backwards.
            let at_end = !at_start && properties.look_set_suffix().contains(Look::End);
            let way = if at_end { ScanDirection::Backward } else { ScanDirection::Forward };
            let (automaton, exact) = automaton(&shape.whether, way);
            Forward { required: self.required(&shape), automaton, exact: exact && self.exact }
        })
    }

    /// Returns parts that a text must contain. For PCRE2 patterns they include parts of lookarounds.
    fn required(&self, shape: &Shape) -> Vec<Required> {
        let demanded = if self.exact { None } else { demanded(&config::text::to_bytes(&self.pattern)) };
        let tree = demanded.and_then(|text| Shape::tree(&text, self.ignore_case));
        let all = tree.map(|tree| Required::all_of(&tree)).unwrap_or_default();
        if all.is_empty() { Required::of(&shape.whether).into_iter().collect() } else { all }
    }

    /// Returns the number of bytes that an attempt to match at the start of a text may read. For PCRE2 patterns that is
    /// the whole text.
    fn reach(&self, text: &[u8], steps: &Steps) -> Result<usize, Exhausted> {
        if !self.exact || self.backtracking.is_brief() || text.len() < SHORT {
            return Ok(text.len());
        }
        let make = || {
            let tree = Hir::concat(vec![Hir::look(Look::Start), without_looks(&self.shape()?.tree)]);
            automaton(&tree, ScanDirection::Forward).0
        };
        match self.reach.get_or_init(make) {
            Some(automaton) => {
                let near = &text[..text.len().min(NEAR)];
                let reach = automaton.reach(near, steps)?;
                Ok(if reach < near.len() { reach } else { text.len() })
            }
            None => Ok(text.len()),
        }
    }

    fn backward(&self) -> Option<&Backward> {
        let make = || {
            let Shape { whence, extents, .. } = self.shape()?;
            if let Ok(automaton) = Automaton::new(whence.iter(), ScanDirection::Backward, MOST_SIZE, MOST_MEMORY) {
                return Some(Backward { automaton, extents: if self.exact { extents } else { Vec::new() } });
            }
            let automaton = automaton(&Hir::alternation(whence), ScanDirection::Backward).0?;
            Some(Backward { automaton, extents: Vec::new() })
        };
        self.backward.get_or_init(make).as_ref()
    }
}

/// Builds the automaton of a tree; returns whether it is exact.
fn automaton(hir: &Hir, way: ScanDirection) -> (Option<Automaton>, bool) {
    let exact = Automaton::new([hir].into_iter(), way, MOST_SIZE, MOST_MEMORY);
    let is_exact = exact.is_ok();
    let found = exact.or_else(|_| {
        let relaxed = relaxed(hir, MOST_COUNTED);
        Automaton::new([&relaxed].into_iter(), way, MOST_SIZE, MOST_MEMORY)
    });
    (found.ok(), is_exact)
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.0.pattern == other.0.pattern && self.0.ignore_case == other.0.ignore_case
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", self.0.pattern)
    }
}

/// The version of PCRE2, which matches patterns without an exact automaton.
pub fn pcre2_version() -> (u32, u32) {
    pcre2::version()
}

#[cfg(test)]
mod tests;
