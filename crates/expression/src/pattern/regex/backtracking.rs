//! PCRE2's interpreter with a bound. It is asked at one place of a text after the other, with few steps first and more where
//! these do not suffice, so that what it has done is known about. Must never run without a limit of its own.

use super::super::automaton::Steps;
use crate::sample::Exhausted;
use pcre2::bytes::{CaptureLocations, Regex};
use std::sync::OnceLock;

/// Steps of PCRE2 in one attempt, of a program for each. It counts them anew at each place where it looks for a match.
const LIMITS: [u32; 6] = [6, 60, 1_000, 8_000, 24_000, 72_000];

/// Kibibytes of its memory.
const MOST_HEAP: u32 = 20_000;

/// PCRE2's numbers for its limits: of matching, of memory, of depth and of the heap (pcre2api(3)).
const EXHAUSTED: [i32; 4] = [-47, -48, -53, -63];

/// Steps of ours for one of PCRE2's.
const STEPS: u64 = 8;

/// Steps of an attempt, whatever it does.
const ATTEMPT: u64 = 100;

/// Bytes that PCRE2 runs through in a step of ours.
const BYTES: u64 = 4;

/// Steps for each place at which PCRE2 looks whether a match begins.
const PLACE: u64 = 20;

/// Bytes of a text that is searched with the lowest limit first.
const SHORT: usize = 256;

/// Where a match begins and ends.
type Span = (usize, usize);

/// A pattern as PCRE2 matches it: at one place, and wherever it likes.
#[derive(Default)]
pub(super) struct Backtracking {
    at: [OnceLock<Option<Box<Regex>>>; LIMITS.len()],
    anywhere: [OnceLock<Option<Box<Regex>>>; LIMITS.len()],
    /// Repetitions that may take any number of bytes: each way to divide the text among them may be tried, and running
    /// through it is none of the steps that PCRE2 counts.
    repetitions: usize,
    /// Those among which one attempt divides a text: where that is one, a step runs through nothing.
    together: usize,
}

/// What the groups of a match hold.
#[derive(Default)]
pub(super) struct Groups {
    at: [Option<CaptureLocations>; LIMITS.len()],
    anywhere: [Option<CaptureLocations>; LIMITS.len()],
    /// The program that found the last match.
    last: Option<(bool, usize)>,
}

impl Groups {
    pub(super) fn get(&self, group: usize) -> Option<(usize, usize)> {
        let (anywhere, level) = self.last?;
        let places = if anywhere { &self.anywhere } else { &self.at };
        // Groups that the pattern does not have hold nothing.
        places[level].as_ref().filter(|places| group < places.len())?.get(group)
    }
}

impl Backtracking {
    /// Of a pattern that was understood without PCRE2.
    pub(super) fn of_linear(repetitions: usize) -> Self {
        Self { repetitions, together: repetitions, ..Self::default() }
    }

    /// Of one that was not.
    ///
    /// # Errors
    /// HAProxy's sentence, with PCRE2's reason.
    pub(super) fn new(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        compile(pattern, ignore_case, LIMITS[0], false)
            .map_err(|(reason, offset)| format!("regex '{pattern}' is invalid (error={reason}, erroffset={offset})"))?;
        let bytes = config::text::to_bytes(pattern);
        let translated = super::translate(&bytes, true);
        let (repetitions, together) =
            translated.map_or((usize::MAX, usize::MAX), |translated| (translated.repetitions, translated.together));
        Ok(Self { repetitions, together, ..Self::default() })
    }

    /// Whether an attempt is short, however long the text.
    pub(super) fn is_brief(&self) -> bool {
        self.repetitions == 0
    }

    /// What asks PCRE2 about a text.
    pub(super) fn asker<'s>(
        &'s self,
        pattern: (&'s str, bool),
        groups: &'s mut Groups,
        text: &'s [u8],
        steps: &'s Steps,
    ) -> Asker<'s> {
        Asker { programs: self, pattern, groups, text, steps }
    }
}

/// Asks PCRE2 about a text.
pub(super) struct Asker<'s> {
    programs: &'s Backtracking,
    pattern: (&'s str, bool),
    groups: &'s mut Groups,
    text: &'s [u8],
    steps: &'s Steps,
}

impl Asker<'_> {
    /// The match that begins at a place, if there is one, and the level that told. An attempt looks at no more than `reach`
    /// bytes; `takes_more`: the lowest level is not worth trying.
    pub(super) fn at(
        &mut self,
        start: usize,
        reach: usize,
        takes_more: bool,
    ) -> Result<(Option<Span>, usize), Exhausted> {
        let reach = reach as u64;
        // Between two repetitions there are as many ways to divide the text as it has bytes.
        let run = if self.programs.together > 1 { reach / 100 } else { 0 };
        let through = if self.programs.repetitions > 0 { reach / BYTES } else { 0 };
        self.ask(false, (start, usize::from(takes_more)), |limit| ATTEMPT + through + limit * (STEPS + run))
    }

    /// The first match from a place on.
    pub(super) fn search(&mut self, from: usize) -> Result<Option<Span>, Exhausted> {
        let left = self.text.len() - from;
        // Each place is charged for at each level: a long text begins with a level that mostly suffices.
        let first = usize::from(left > SHORT);
        let left = left as u64;
        let found = self.ask(true, (from, first), |limit| ATTEMPT + PLACE * left + limit * STEPS * (1 + left / 64))?;
        Ok(found.0)
    }

    fn ask(
        &mut self,
        anywhere: bool,
        (from, first): (usize, usize),
        cost: impl Fn(u64) -> u64,
    ) -> Result<(Option<Span>, usize), Exhausted> {
        let Self { programs, pattern, groups, text, steps } = self;
        for (level, limit) in LIMITS.iter().enumerate().skip(first) {
            steps.take(cost(u64::from(*limit)))?;
            let (programs, places) = match anywhere {
                true => (&programs.anywhere, &mut groups.anywhere),
                false => (&programs.at, &mut groups.at),
            };
            let (pattern, ignore_case) = *pattern;
            let make = || compile(pattern, ignore_case, *limit, !anywhere).ok().map(Box::new);
            let Some(program) = programs[level].get_or_init(make) else { return Ok((None, level)) };
            let places = places[level].get_or_insert_with(|| program.capture_locations());
            match program.captures_read_at(places, text, from) {
                Ok(found) => {
                    groups.last = Some((anywhere, level));
                    return Ok((found.map(|found| (found.start(), found.end())), level));
                }
                Err(error) if EXHAUSTED.contains(&error.code()) => {}
                // The text is none of what the pattern asks for (UTF-8).
                Err(_) => return Ok((None, level)),
            }
        }
        Err(Exhausted)
    }
}

/// A program with that limit; `anchored`: it matches where it is asked to begin, or not at all. The error is PCRE2's reason
/// and its place in the pattern.
fn compile(pattern: &str, ignore_case: bool, limit: u32, anchored: bool) -> Result<Regex, (String, usize)> {
    let limits = format!("(*LIMIT_MATCH={limit})(*LIMIT_HEAP={MOST_HEAP})");
    let limited = match anchored {
        true => format!("{limits}\\G(?:{pattern}\\E)"),
        false => format!("{limits}{pattern}"),
    };
    pcre2::bytes::RegexBuilder::new().caseless(ignore_case).build(&limited).map_err(|error| {
        let text = error.to_string();
        let reason = text.rsplit_once(": ").map_or(&*text, |(_, reason)| reason);
        (reason.to_owned(), error.offset().unwrap_or(0).saturating_sub(limits.len()))
    })
}
