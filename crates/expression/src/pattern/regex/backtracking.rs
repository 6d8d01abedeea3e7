//! PCRE2's interpreter with limits. It is called at one position of a text after the other, with a low limit first and
//! higher ones when it does not suffice, so that its work can be charged. Must never run without a limit.

use super::super::automaton::Steps;
use crate::sample::Exhausted;
use pcre2::bytes::{CaptureLocations, Regex};
use std::sync::OnceLock;

/// Steps of PCRE2 in one attempt, of a program for each. It counts them anew at each place where it looks for a match.
const LIMITS: [u32; 6] = [6, 60, 1_000, 8_000, 24_000, 72_000];

/// Its heap limit in kibibytes.
const MOST_HEAP: u32 = 20_000;

/// PCRE2's error codes for the limits of matching, memory, depth and heap (pcre2api(3)).
const EXHAUSTED: [i32; 4] = [-47, -48, -53, -63];

/// Our steps per step of PCRE2.
const STEPS: u64 = 8;

/// Our steps per attempt, whatever it does.
const ATTEMPT: u64 = 100;

/// Bytes that PCRE2 scans per step of ours.
const BYTES: u64 = 4;

/// Our steps for each position at which PCRE2 tries a match.
const PLACE: u64 = 20;

/// Length in bytes up to which a text is searched with the lowest limit first.
const SHORT: usize = 256;

/// The bounds of a match.
type Span = (usize, usize);

/// A pattern compiled for PCRE2: anchored at one position, and unanchored.
#[derive(Default)]
pub(super) struct Backtracking {
    at: [OnceLock<Option<Box<Regex>>>; LIMITS.len()],
    anywhere: [OnceLock<Option<Box<Regex>>>; LIMITS.len()],
    /// Number of unlimited repetitions: PCRE2 may try every division of the text among them, and scanning it is not
    /// included in its step count.
    repetitions: usize,
    /// Those among which one attempt divides a text: where that is one, a step runs through nothing.
    together: usize,
}

/// The groups of a match.
#[derive(Default)]
pub(super) struct Groups {
    at: [Option<CaptureLocations>; LIMITS.len()],
    anywhere: [Option<CaptureLocations>; LIMITS.len()],
    /// The program that found the last match: unanchored or not, and its level.
    last: Option<(bool, usize)>,
}

impl Groups {
    pub(super) fn get(&self, group: usize) -> Option<(usize, usize)> {
        let (anywhere, level) = self.last?;
        let places = if anywhere { &self.anywhere } else { &self.at };
        // Groups that the pattern does not have are unset.
        places[level].as_ref().filter(|places| group < places.len())?.get(group)
    }
}

impl Backtracking {
    /// Creates it for a pattern parsed without PCRE2.
    pub(super) fn of_linear(repetitions: usize) -> Self {
        Self { repetitions, together: repetitions, ..Self::default() }
    }

    /// Creates it for any other pattern.
    ///
    /// # Errors
    /// HAProxy's message, with PCRE2's reason.
    pub(super) fn new(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        compile(pattern, ignore_case, LIMITS[0], false)
            .map_err(|(reason, offset)| format!("regex '{pattern}' is invalid (error={reason}, erroffset={offset})"))?;
        let bytes = config::text::to_bytes(pattern);
        let translated = super::translate(&bytes, true);
        let (repetitions, together) =
            translated.map_or((usize::MAX, usize::MAX), |translated| (translated.repetitions, translated.together));
        Ok(Self { repetitions, together, ..Self::default() })
    }

    /// Whether an attempt is short, whatever the length of the text.
    pub(super) fn is_brief(&self) -> bool {
        self.repetitions == 0
    }

    /// Returns a searcher for a text.
    pub(super) fn asker<'s>(
        &'s self,
        pattern: &'s str,
        ignore_case: bool,
        groups: &'s mut Groups,
        text: &'s [u8],
        steps: &'s Steps,
    ) -> Asker<'s> {
        Asker { programs: self, pattern, ignore_case, groups, text, steps }
    }
}

/// Searches a text with PCRE2.
pub(super) struct Asker<'s> {
    programs: &'s Backtracking,
    pattern: &'s str,
    ignore_case: bool,
    groups: &'s mut Groups,
    text: &'s [u8],
    steps: &'s Steps,
}

impl Asker<'_> {
    /// Returns the match that begins at a position, if any, and the level that decided. An attempt reads at most
    /// `reach` bytes; `takes_more`: skip the lowest level.
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
        self.ask(false, start, usize::from(takes_more), |limit| ATTEMPT + through + limit * (STEPS + run))
    }

    /// Returns the first match from a position on.
    pub(super) fn search(&mut self, from: usize) -> Result<Option<Span>, Exhausted> {
        let left = self.text.len() - from;
        // Each level charges for every position: a long text starts with a level that usually suffices.
        let first = usize::from(left > SHORT);
        let left = left as u64;
        let found = self.ask(true, from, first, |limit| ATTEMPT + PLACE * left + limit * STEPS * (1 + left / 64))?;
        Ok(found.0)
    }

    fn ask(
        &mut self,
        anywhere: bool,
        from: usize,
        first: usize,
        cost: impl Fn(u64) -> u64,
    ) -> Result<(Option<Span>, usize), Exhausted> {
        let Self { programs, pattern, ignore_case, groups, text, steps } = self;
        for (level, limit) in LIMITS.iter().enumerate().skip(first) {
            steps.take(cost(u64::from(*limit)))?;
            let (programs, places) = match anywhere {
                true => (&programs.anywhere, &mut groups.anywhere),
                false => (&programs.at, &mut groups.at),
            };
            let make = || compile(pattern, *ignore_case, *limit, !anywhere).ok().map(Box::new);
            let Some(program) = programs[level].get_or_init(make) else { return Ok((None, level)) };
            let places = places[level].get_or_insert_with(|| program.capture_locations());
            match program.captures_read_at(places, text, from) {
                Ok(found) => {
                    groups.last = Some((anywhere, level));
                    return Ok((found.map(|found| (found.start(), found.end())), level));
                }
                Err(error) if EXHAUSTED.contains(&error.code()) => {}
                // The text is not valid for the pattern (UTF-8).
                Err(_) => return Ok((None, level)),
            }
        }
        Err(Exhausted)
    }
}

/// Compiles a program with that limit; `anchored`: it matches only where the search begins. The error is PCRE2's reason
/// and the offset in the pattern.
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
