//! Substring and regular expression patterns that are searched all at once. A few are compared one after the other.
//! Must never return another result than comparing one after the other would.

use super::automaton::{Automaton, ScanDirection, Steps};
use super::index::{Alive, PatternIndex, Texts};
use super::string::{compare, delimits, trimmed};
use super::{Method, Regex};
use crate::sample::Exhausted;
use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::Arc;

/// Number of patterns from which on they are searched at once.
const MANY: usize = 8;

/// Maximum number of instructions of the automaton for regular expressions.
const MOST_SIZE: usize = 500_000;

/// Memory limit in bytes of a worker's cached states for one set. When it is exceeded, the states are cleared and
/// rebuilt.
const MOST_STATES: usize = 4 << 20;

/// Maximum total length of texts that are searched at once, in bytes: their automaton takes many times that.
const MOST_TEXT: usize = 4 << 20;

/// Texts that match a substring of the sample (`sub`), or one between delimiters (`dir`, `dom`).
#[derive(Debug, Clone)]
pub struct Parts {
    method: Method,
    ignore_case: bool,
    all: Vec<PatternIndex>,
    index: Option<Arc<PartIndex>>,
}

#[derive(Debug)]
struct PartIndex {
    automaton: AhoCorasick,
    /// The list indexes of the automaton's patterns.
    places: Vec<PatternIndex>,
    /// Empty texts, which the automaton does not contain.
    empty: Vec<PatternIndex>,
}

impl Parts {
    /// Creates an empty set.
    pub fn new(method: Method, ignore_case: bool) -> Self {
        Self { method, ignore_case, all: Vec::new(), index: None }
    }

    /// Adds the text at an index of the list.
    pub fn insert(&mut self, at: PatternIndex) {
        self.all.push(at);
        self.index = None;
    }

    /// Builds the automaton, if there are many texts.
    pub fn build(&mut self, texts: &impl Texts) {
        let length: usize = self.all.iter().map(|at| texts.key(*at).len()).sum();
        if self.all.len() < MANY || length > MOST_TEXT {
            return;
        }
        let part = |at: &PatternIndex| trimmed(self.method, texts.key(*at));
        let (empty, places): (Vec<_>, Vec<_>) = self.all.iter().copied().partition(|at| part(at).is_empty());
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::Standard).ascii_case_insensitive(self.ignore_case);
        if let Ok(automaton) = builder.build(places.iter().map(part)) {
            self.index = Some(Arc::new(PartIndex { automaton, places, empty }));
        }
    }

    /// Returns the index of the first pattern that the text matches.
    pub fn find(&self, text: &[u8], texts: &impl Texts, alive: Alive<'_>) -> Option<PatternIndex> {
        let matches = |at: &&PatternIndex| compare(self.method, text, texts.key(**at), self.ignore_case) && alive(**at);
        let Some(index) = &self.index else { return self.all.iter().find(matches).copied() };
        let mut best = index.empty.iter().find(matches).copied();
        for found in index.automaton.find_overlapping_iter(text) {
            let at = index.places[found.pattern().as_usize()];
            if best.is_none_or(|best| at < best) && self.stands_alone(text, found.range()) && alive(at) {
                best = Some(at);
                if self.all.first() == best.as_ref() {
                    break;
                }
            }
        }
        best
    }

    /// Whether a part is between delimiters, if the method requires it.
    fn stands_alone(&self, text: &[u8], part: std::ops::Range<usize>) -> bool {
        let is_delimiter = |at: usize| text.get(at).is_none_or(|byte| delimits(self.method, *byte));
        self.method == Method::Sub || (part.start == 0 || is_delimiter(part.start - 1)) && is_delimiter(part.end)
    }
}

/// Regular expression patterns.
#[derive(Debug, Clone)]
pub struct Regexes {
    ignore_case: bool,
    /// Each expression, and its list index. `None`: it is only part of the automaton.
    all: Vec<(Option<Regex>, PatternIndex)>,
    /// The automaton for most of them.
    index: Option<Arc<RegexIndex>>,
    /// Indexes in `all` of the expressions that are not in the automaton.
    others: Vec<usize>,
    /// Expressions are being loaded, to be searched at once later; `Some(true)`: each may also be requested
    /// individually.
    loading: Option<bool>,
}

#[derive(Debug)]
struct RegexIndex {
    automaton: Automaton,
    /// Indexes in `all` of the automaton's patterns.
    members: Vec<usize>,
}

impl Regexes {
    /// Creates an empty set.
    pub fn new(ignore_case: bool) -> Self {
        Self { ignore_case, all: Vec::new(), index: None, others: Vec::new(), loading: None }
    }

    /// Announces that many will be added, followed by [`Regexes::build`]. `single`: each may also be requested
    /// individually.
    pub fn load(&mut self, single: bool) {
        self.loading = Some(single);
    }

    /// Adds the expression at an index of the list.
    ///
    /// # Errors
    /// HAProxy's message about it.
    pub fn insert(&mut self, pattern: &str, at: PatternIndex) -> Result<(), String> {
        let regex = Regex::deferred(pattern, self.ignore_case)?;
        self.others.push(self.all.len());
        self.all.push((Some(regex), at));
        Ok(())
    }

    /// Returns the expressions that are kept individually: at least all that are not in the automaton.
    pub fn all(&self) -> impl Iterator<Item = &Regex> {
        self.all.iter().filter_map(|(single, _)| single.as_ref())
    }

    /// Builds the automaton, if there are many expressions.
    pub fn build(&mut self) {
        let loading = self.loading.take();
        self.index = self.index_of_all().map(Arc::new);
        let Some(index) = &self.index else { return };
        self.others = (0..self.all.len()).filter(|place| index.members.binary_search(place).is_err()).collect();
        if loading == Some(false) {
            for place in &index.members {
                let (single, _) = &mut self.all[*place];
                *single = single.take().filter(|regex| !regex.is_linear());
            }
        }
    }

    fn index_of_all(&self) -> Option<RegexIndex> {
        let shapes = self.all.iter().map(|(single, _)| single.as_ref().and_then(Regex::shape)).enumerate();
        let (members, shapes): (Vec<_>, Vec<_>) = shapes.filter_map(|(place, shape)| Some((place, shape?))).unzip();
        if members.len() < MANY {
            return None;
        }
        let automaton = Automaton::new(shapes.iter(), ScanDirection::Forward, MOST_SIZE, MOST_STATES).ok()?;
        Some(RegexIndex { automaton, members })
    }

    /// Returns the list index of the first one that matches.
    ///
    /// # Errors
    /// The steps are exhausted.
    pub fn find(&self, text: &[u8], alive: Alive<'_>, steps: &Steps) -> Result<Option<PatternIndex>, Exhausted> {
        let is_linear = |place: usize| self.all[place].0.as_ref().is_none_or(Regex::is_linear);
        let (mut found, mut asked): (Option<usize>, Vec<usize>) = (None, Vec::new());
        if let Some(index) = &self.index {
            let mut met: Vec<u64> = Vec::new();
            index.automaton.each(text, steps, |pattern| {
                let place = index.members[pattern as usize];
                if found.is_some_and(|found| found <= place) || !alive(self.all[place].1) {
                    return;
                }
                if is_linear(place) {
                    found = Some(place);
                    return;
                }
                // PCRE2 decides below, once per pattern, whether it really matches.
                met.resize(index.members.len() / 64 + 1, 0);
                let (word, bit) = (pattern as usize / 64, 1 << (pattern % 64));
                if met[word] & bit == 0 {
                    met[word] |= bit;
                    asked.push(place);
                }
            })?;
        }
        asked.sort_unstable();
        let (mut asked, mut others) = (asked.into_iter().peekable(), self.others.iter().copied().peekable());
        while let Some((place, is_met)) = match (asked.peek(), others.peek()) {
            (Some(one), Some(other)) if one > other => others.next().map(|place| (place, false)),
            (None, _) => others.next().map(|place| (place, false)),
            _ => asked.next().map(|place| (place, true)),
        } {
            if found.is_some_and(|found| found <= place) {
                break;
            }
            let (single, at) = &self.all[place];
            let Some(regex) = single.as_ref().filter(|_| alive(*at)) else { continue };
            let matches =
                if is_met { regex.is_confirmed_within(text, steps) } else { regex.is_match_within(text, steps) };
            if matches? {
                return Ok(Some(*at));
            }
        }
        Ok(found.map(|place| self.all[place].1))
    }

    /// Returns the expression at a list index, if expressions are kept individually.
    pub fn get(&self, at: PatternIndex) -> Option<&Regex> {
        let found = self.all.binary_search_by_key(&at, |(_, place)| *place).ok()?;
        self.all[found].0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 12] =
        ["", "a", "b/c", "/b/c/", "www.example.org", "ample.org", "x.AMPLE.org", "ab", "bc?d", "zzz", "/a?b", "c"];

    #[test]
    fn many_are_found_as_few_are() {
        let list: &[&str] = &["zz", "/b/c/", "ample", "ample.org", "b", "c", "AB", "ab", "/", "d", "bc", "a", "ab"];
        for method in [Method::Sub, Method::Dir, Method::Dom] {
            for ignore_case in [false, true] {
                let mut few = Parts::new(method, ignore_case);
                (0..list.len() as u32).for_each(|at| few.insert(at));
                let mut many = few.clone();
                many.build(&list);
                assert!(many.index.is_some());
                for text in TEXTS {
                    for dead in 0..=list.len() as u32 {
                        let find = |parts: &Parts| parts.find(text.as_bytes(), &list, &|at| at != dead);
                        assert_eq!(find(&many), find(&few), "{method:?} {text} {dead}");
                    }
                }
            }
        }
    }

    #[test]
    fn many_expressions_are_found_as_few_are() {
        let list = ["zz$", "^b", "(?=w)w", "ample", "org$", "b/c", "(a)(?!x)", "AB", "[?]", "d", "bc", "a", "^$", "^"];
        let add = |regexes: &mut Regexes, list: &[&str]| {
            let first = regexes.all.len();
            for (at, pattern) in list.iter().enumerate() {
                regexes.insert(pattern, (first + at) as u32).expect("a pattern");
            }
        };
        for (ignore_case, loading) in
            [false, true].into_iter().flat_map(|case| [None, Some(false), Some(true)].map(|loading| (case, loading)))
        {
            let (mut few, mut many) = (Regexes::new(ignore_case), Regexes::new(ignore_case));
            many.loading = loading;
            add(&mut few, &list);
            add(&mut many, &list);
            many.build();
            assert!(many.index.is_some() && many.get(2).is_some());
            assert_eq!(many.get(0).is_some() && many.get(11).is_some(), loading != Some(false));
            // Later additions are checked after them.
            add(&mut few, &["x"]);
            add(&mut many, &["x"]);
            for text in TEXTS.iter().chain(&["x.y"]) {
                for dead in 0..=list.len() as u32 {
                    let steps = || Steps::for_text(text.len());
                    let find = |regexes: &Regexes| regexes.find(text.as_bytes(), &|at| at != dead, &steps());
                    assert_eq!(find(&many), find(&few), "{text} {dead}");
                }
            }
        }
    }

    /// With mostly PCRE2 patterns, the automaton selects those that may match.
    #[test]
    fn those_of_pcre2_are_asked_where_they_may_match() {
        let mut regexes = Regexes::new(false);
        regexes.load(false);
        for at in 0..12 {
            let pattern = if at < 9 { format!("(?=a)a{at}") } else { format!("b{at}") };
            regexes.insert(&pattern, at).expect("a pattern");
        }
        regexes.build();
        assert!(regexes.index.is_some() && regexes.get(0).is_some() && regexes.get(10).is_none());
        assert_eq!(regexes.find(b"b10", &|_| true, &Steps::for_text(3)), Ok(Some(10)));
        assert_eq!(regexes.find(b"a3", &|_| true, &Steps::for_text(2)), Ok(Some(3)));
    }
}
