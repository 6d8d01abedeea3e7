//! Regular expressions over bytes (section 7.1.4), with the syntax of PCRE2, which HAProxy uses. Whether a pattern matches is
//! told by an automaton, in one pass over the text; which text its groups hold, and patterns that look around, refer back or
//! forbid backtracking, are PCRE2's interpreter's business, which is asked only where a match may begin. Steps of both are
//! counted. Must never go on without steps, nor be given a pattern that is compiled while requests wait.

mod backtracking;
mod translate;

use super::automaton::{Automaton, Extent, Required, Shape, Starts, Steps, Way, relaxed, without_looks};
use crate::sample::Exhausted;
use backtracking::{Backtracking, Groups};
use regex_syntax::hir::{Hir, Look};
use std::fmt;
use std::sync::{Arc, OnceLock};
use translate::{demanded, translate};

/// Instructions of one automaton at most. A pattern that takes more has a looser automaton, and PCRE2 decides.
const MOST_SIZE: usize = 20_000;

/// Repetitions that a looser automaton counts.
const MOST_COUNTED: u32 = 8;

/// Bytes that a worker keeps of the states of one automaton.
const MOST_MEMORY: usize = 192 << 10;

/// Bytes of a rest of a text of which it does not matter how much of it is looked at.
const SHORT: usize = 128;

/// Bytes that are read to learn how far an attempt may look; one that may look further may look at all of the text.
const NEAR: usize = 512;

/// Steps of a match that takes no search.
const MATCH: u64 = 5;

/// A compiled regular expression.
#[derive(Clone)]
pub struct Regex(Arc<Inner>);

struct Inner {
    pattern: Box<str>,
    ignore_case: bool,
    /// The pattern is translated exactly.
    exact: bool,
    forward: OnceLock<Forward>,
    backward: OnceLock<Option<Backward>>,
    /// What reads as far as an attempt to match at a place may look.
    reach: OnceLock<Option<Automaton>>,
    backtracking: Backtracking,
}

/// What tells whether it matches.
#[derive(Default)]
struct Forward {
    /// What a text has to hold, each of it.
    required: Vec<Required>,
    /// `None`: nothing can be told without PCRE2.
    automaton: Option<Automaton>,
    /// The automaton matches where the pattern does, and nowhere else.
    exact: bool,
}

/// What tells where matches begin.
struct Backward {
    automaton: Automaton,
    /// How far the matches of each of its patterns go; none if it also finds places where none begins.
    extents: Vec<Extent>,
}

/// Where the groups of a match are.
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
    /// HAProxy's sentence, with PCRE2's reason.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        let regex = Self::deferred(pattern, ignore_case)?;
        regex.0.forward();
        Ok(regex)
    }

    /// A pattern that is right, and is compiled when it is first asked for.
    ///
    /// # Errors
    /// As of [`Regex::new`].
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
            forward: OnceLock::new(),
            backward: OnceLock::new(),
            reach: OnceLock::new(),
            backtracking,
        })))
    }

    /// As it was written.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// Whether an automaton can tell all there is to tell about a match. Otherwise PCRE2 decides.
    pub fn is_linear(&self) -> bool {
        self.0.exact
    }

    /// Its tree, for an automaton of several; of one that is not linear a tree that matches wherever it does, and elsewhere.
    pub fn shape(&self) -> Option<Hir> {
        self.0.shape().map(|shape| shape.whether)
    }

    /// Whether it matches somewhere.
    ///
    /// # Errors
    /// That takes too many steps.
    pub fn is_match(&self, text: &[u8]) -> Result<bool, Exhausted> {
        self.is_match_within(text, &Steps::for_text(text.len()))
    }

    /// The same with steps that others take, too.
    ///
    /// # Errors
    /// As of [`Regex::is_match`].
    pub fn is_match_within(&self, text: &[u8], steps: &Steps) -> Result<bool, Exhausted> {
        let forward = self.0.forward();
        if !forward.required.iter().all(|required| required.is_in(text)) {
            return Ok(false);
        }
        match &forward.automaton {
            Some(automaton) if !automaton.is_match(text, steps)? => Ok(false),
            Some(_) if forward.exact => Ok(true),
            _ => Ok(self.search(&mut Places::default(), text, (steps, true))?.next(0)?.is_some()),
        }
    }

    /// The same of a pattern that an automaton of its [`Regex::shape`] has found, among others.
    ///
    /// # Errors
    /// As of [`Regex::is_match`].
    pub fn is_confirmed_within(&self, text: &[u8], steps: &Steps) -> Result<bool, Exhausted> {
        match self.0.exact {
            true => Ok(true),
            false => Ok(self.search(&mut Places::default(), text, (steps, true))?.next(0)?.is_some()),
        }
    }

    /// Begins to look for matches, and for what their groups hold if `groups` says so.
    ///
    /// # Errors
    /// That takes too many steps.
    pub fn search<'s>(
        &'s self,
        places: &'s mut Places,
        text: &'s [u8],
        (steps, with_groups): (&'s Steps, bool),
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
        } else if inner.asks_for_begin() {
            // PCRE2 has to be asked from where the search begins, not from where a match may begin.
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

/// Matches in a text, one after the other.
pub struct Search<'s> {
    regex: &'s Inner,
    groups: &'s mut Groups,
    /// Where a match may begin.
    starts: &'s Starts,
    whole: &'s mut Option<(usize, usize)>,
    /// How far matches go, where groups do not matter.
    extents: &'s [Extent],
    /// Where they may begin is not known.
    unanchored: bool,
    text: &'s [u8],
    steps: &'s Steps,
    /// PCRE2's lowest limit did not suffice for the last match.
    takes_more: bool,
}

impl Search<'_> {
    /// The first match from a place on: where it begins and ends.
    ///
    /// # Errors
    /// To find it takes too many steps.
    pub fn next(&mut self, from: usize) -> Result<Option<(usize, usize)>, Exhausted> {
        *self.whole = self.find(from)?;
        Ok(*self.whole)
    }

    fn find(&mut self, from: usize) -> Result<Option<(usize, usize)>, Exhausted> {
        let Inner { pattern, ignore_case, backtracking, .. } = self.regex;
        let mut asker = backtracking.asker((pattern, *ignore_case), self.groups, self.text, self.steps);
        if self.unanchored {
            return asker.search(from);
        }
        let mut from = from;
        while let Some(start) = self.starts.next(from) {
            if !self.regex.exact && backtracking.is_brief() {
                // Each attempt is short: PCRE2 finds the place faster itself.
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

    /// Where the nth group of the last match is; the whole match is the group 0.
    pub fn get(&self, group: usize) -> Option<(usize, usize)> {
        if group == 0 { *self.whole } else { self.groups.get(group).filter(|_| self.whole.is_some()) }
    }
}

impl Inner {
    /// Whether the pattern says `\G`: what it matches depends on where the search begins.
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
            // What stands at the end is seen from there at once.
            let at_end = !at_start && properties.look_set_suffix().contains(Look::End);
            let way = if at_end { Way::Backward } else { Way::Forward };
            let (automaton, exact) = automaton(&shape.whether, way);
            Forward { required: self.required(&shape), automaton, exact: exact && self.exact }
        })
    }

    /// What a text has to hold. Before PCRE2 is asked, more of it is looked for, lookarounds included.
    fn required(&self, shape: &Shape) -> Vec<Required> {
        let demanded = if self.exact { None } else { demanded(&config::text::to_bytes(&self.pattern)) };
        let tree = demanded.and_then(|text| Shape::tree(&text, self.ignore_case));
        let all = tree.map(|tree| Required::all_of(&tree)).unwrap_or_default();
        if all.is_empty() { Required::of(&shape.whether).into_iter().collect() } else { all }
    }

    /// The bytes that an attempt to match at the start of a text may look at. Of a pattern that PCRE2 decides that is all of them.
    fn reach(&self, text: &[u8], steps: &Steps) -> Result<usize, Exhausted> {
        if !self.exact || self.backtracking.is_brief() || text.len() < SHORT {
            return Ok(text.len());
        }
        let make = || {
            let tree = Hir::concat(vec![Hir::look(Look::Start), without_looks(&self.shape()?.tree)]);
            automaton(&tree, Way::Forward).0
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
            if let Ok(automaton) = Automaton::new(whence.iter(), Way::Backward, MOST_SIZE, MOST_MEMORY) {
                return Some(Backward { automaton, extents: if self.exact { extents } else { Vec::new() } });
            }
            let automaton = automaton(&Hir::alternation(whence), Way::Backward).0?;
            Some(Backward { automaton, extents: Vec::new() })
        };
        self.backward.get_or_init(make).as_ref()
    }
}

/// The automaton of a tree, and whether it is exact.
fn automaton(hir: &Hir, way: Way) -> (Option<Automaton>, bool) {
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

/// The version of PCRE2, which decides about patterns that no automaton of bounded size matches.
pub fn pcre2_version() -> (u32, u32) {
    pcre2::version()
}

#[cfg(test)]
mod tests;
