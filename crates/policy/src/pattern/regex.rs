//! Regular expressions over bytes (section 7.1.4), with the syntax of PCRE2, which HAProxy uses. All that can be are matched
//! in linear time, whatever the text; the others, which look around, refer back or forbid backtracking, by PCRE2's
//! interpreter with a bound on its steps. Must never be given a pattern that is compiled while requests wait.

mod translate;

use crate::sample::Exhausted;
use std::fmt;
use std::sync::{Arc, OnceLock};
use translate::translate;

/// A compiled regular expression.
#[derive(Clone)]
pub struct Regex {
    pattern: Box<str>,
    ignore_case: bool,
    engine: Engine,
}

#[derive(Clone)]
enum Engine {
    Linear(Linear),
    Backtracking(Arc<pcre2::bytes::Regex>),
}

#[derive(Clone)]
struct Linear {
    regex: regex::bytes::Regex,
    /// In the library's own syntax.
    text: Box<str>,
    takes_line_end: bool,
    /// The same for texts that end with a line feed, where somebody wants to know what matches.
    exact: Arc<OnceLock<Option<pcre2::bytes::Regex>>>,
}

/// Where the groups of a match are.
pub struct Places(Kind);

enum Kind {
    Linear(regex::bytes::CaptureLocations, Option<pcre2::bytes::CaptureLocations>),
    Backtracking(pcre2::bytes::CaptureLocations),
}

/// Bytes that a compiled pattern may take.
const MOST_MEMORY: usize = 8 << 20;

/// Steps of PCRE2 for one look at a text, at most: a few milliseconds.
const MOST_STEPS: u32 = 250_000;

/// Kibibytes of its memory.
const MOST_HEAP: u32 = 20_000;

/// PCRE2's numbers for its limits: of matching, of memory, of depth and of the heap (pcre2api(3)).
const LIMITS: [i32; 4] = [-47, -48, -53, -63];

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// HAProxy's sentence, with PCRE2's reason.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Self, String> {
        let bytes = config::text::to_bytes(pattern);
        let engine = match linear(&bytes, ignore_case) {
            Some(linear) => Engine::Linear(linear),
            None => Engine::Backtracking(Arc::new(backtracking(pattern, ignore_case)?)),
        };
        Ok(Self { pattern: pattern.into(), ignore_case, engine })
    }

    /// As it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// In the syntax of the library that matches in linear time; `None`: PCRE2 matches it.
    pub fn linear(&self) -> Option<&str> {
        match &self.engine {
            Engine::Linear(linear) => Some(&linear.text),
            Engine::Backtracking(_) => None,
        }
    }

    /// Whether it matches somewhere.
    ///
    /// # Errors
    /// That takes too many steps.
    pub fn is_match(&self, text: &[u8]) -> Result<bool, Exhausted> {
        match &self.engine {
            Engine::Linear(linear) => Ok(linear.regex.is_match(text)),
            Engine::Backtracking(regex) => regex.is_match(text).or_else(bounded),
        }
    }

    /// Room for the groups of a match.
    pub fn places(&self) -> Places {
        Places(match &self.engine {
            Engine::Linear(linear) => Kind::Linear(linear.regex.capture_locations(), None),
            Engine::Backtracking(regex) => Kind::Backtracking(regex.capture_locations()),
        })
    }

    /// The first match from a place on: where it begins and ends.
    ///
    /// # Errors
    /// To find it takes too many steps.
    pub fn find_groups(
        &self,
        places: &mut Places,
        text: &[u8],
        from: usize,
    ) -> Result<Option<(usize, usize)>, Exhausted> {
        match (&self.engine, &mut places.0) {
            (Engine::Linear(linear), Kind::Linear(own, exact)) => {
                *exact = None;
                if linear.takes_line_end && text.ends_with(b"\n") {
                    let compile = || backtracking(&self.pattern, self.ignore_case).ok();
                    let Some(regex) = linear.exact.get_or_init(compile).as_ref() else { return Ok(None) };
                    let places = exact.insert(regex.capture_locations());
                    let found = regex.captures_read_at(places, text, from).or_else(bounded)?;
                    return Ok(found.map(|found| (found.start(), found.end())));
                }
                let found = linear.regex.captures_read_at(own, text, from);
                Ok(found.map(|found| (found.start(), found.end())))
            }
            (Engine::Backtracking(regex), Kind::Backtracking(places)) => {
                let found = regex.captures_read_at(places, text, from).or_else(bounded)?;
                Ok(found.map(|found| (found.start(), found.end())))
            }
            _ => Ok(None),
        }
    }
}

impl Places {
    /// Where the nth group of the last match is; the whole match is the group 0.
    pub fn get(&self, group: usize) -> Option<(usize, usize)> {
        match &self.0 {
            Kind::Linear(_, Some(places)) | Kind::Backtracking(places) => {
                if group < places.len() {
                    places.get(group)
                } else {
                    None
                }
            }
            Kind::Linear(places, None) => places.get(group),
        }
    }
}

fn linear(pattern: &[u8], ignore_case: bool) -> Option<Linear> {
    let translated = translate(pattern)?;
    let regex = regex::bytes::RegexBuilder::new(&translated.text)
        .case_insensitive(ignore_case)
        .unicode(false)
        .size_limit(MOST_MEMORY)
        .build()
        .ok()?;
    let text = translated.text.into();
    Some(Linear { regex, text, takes_line_end: translated.takes_line_end, exact: Arc::default() })
}

fn backtracking(pattern: &str, ignore_case: bool) -> Result<pcre2::bytes::Regex, String> {
    let limits = format!("(*LIMIT_MATCH={MOST_STEPS})(*LIMIT_HEAP={MOST_HEAP})");
    let limited = format!("{limits}{pattern}");
    let built = pcre2::bytes::RegexBuilder::new().caseless(ignore_case).build(&limited);
    built.map_err(|error| {
        let text = error.to_string();
        let reason = text.rsplit_once(": ").map_or(&*text, |(_, reason)| reason);
        let offset = error.offset().unwrap_or(0).saturating_sub(limits.len());
        format!("regex '{pattern}' is invalid (error={reason}, erroffset={offset})")
    })
}

/// PCRE2 has given up: because of a limit, or because the text is none of what the pattern asks for (UTF-8), which it does
/// not match then.
fn bounded<T: Default>(error: pcre2::Error) -> Result<T, Exhausted> {
    if LIMITS.contains(&error.code()) { Err(Exhausted) } else { Ok(T::default()) }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.ignore_case == other.ignore_case
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regex({:?})", self.pattern)
    }
}

#[cfg(test)]
mod tests;
