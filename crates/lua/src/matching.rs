//! Lua's patterns (Lua manual, section 6.4.1), matched with counted steps, so that a search can be aborted. Must never
//! execute more than a bounded number of steps after that.

/// Maximum number of captures, as in Lua.
const MOST_CAPTURES: usize = 32;
/// Maximum nesting of repetitions and captures, as in Lua.
const MOST_DEPTH: u32 = 200;
/// Steps between two calls of `go_on`.
const STEPS: u32 = 1 << 15;

/// Reasons why a search failed.
#[derive(Debug, PartialEq)]
pub(crate) enum Fault {
    /// The pattern is malformed: Lua's message.
    Malformed(String),
    /// It was aborted.
    Stopped,
}

type MatchResult = Result<Option<usize>, Fault>;

/// The extent of a capture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Extent {
    /// The capture is not closed.
    Open,
    /// A position capture: an empty pair of parentheses.
    Place,
    /// Length in bytes.
    Length(usize),
}

fn malformed(why: &str) -> Fault {
    Fault::Malformed(why.to_owned())
}

/// A search in a text.
pub(crate) struct Search<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<(usize, Extent)>,
    depth: u32,
    steps: u32,
    go_on: &'a dyn Fn() -> bool,
}

impl<'a> Search<'a> {
    /// `go_on`: called regularly; false aborts the search.
    pub(crate) fn new(text: &'a [u8], pattern: &'a [u8], go_on: &'a dyn Fn() -> bool) -> Self {
        Self { text, pattern, captures: Vec::new(), depth: 0, steps: 0, go_on }
    }

    /// Returns the captures of the last match: start and extent of each.
    pub(crate) fn captures(&self) -> &[(usize, Extent)] {
        &self.captures
    }

    /// Matches at `start`; returns the end of the match.
    pub(crate) fn at(&mut self, start: usize) -> MatchResult {
        self.captures.clear();
        self.depth = 0;
        self.step()?;
        self.go(start, 0)
    }

    fn step(&mut self) -> Result<(), Fault> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(STEPS) && !(self.go_on)() { Err(Fault::Stopped) } else { Ok(()) }
    }

    fn deeper(&mut self, at: usize, item: usize) -> MatchResult {
        if self.depth == MOST_DEPTH {
            return Err(malformed("pattern too complex"));
        }
        self.depth += 1;
        let found = self.go(at, item);
        self.depth -= 1;
        found
    }

    /// Matches the pattern from `item` on.
    fn go(&mut self, mut at: usize, mut item: usize) -> MatchResult {
        loop {
            self.step()?;
            let Some(first) = self.pattern.get(item) else { return Ok(Some(at)) };
            let next = self.pattern.get(item + 1).copied();
            let passed = match (first, next) {
                (b'(', Some(b')')) => return self.begin(at, item + 2, Extent::Place),
                (b'(', _) => return self.begin(at, item + 1, Extent::Open),
                (b')', _) => return self.end(at, item + 1),
                (b'$', None) => return Ok((at == self.text.len()).then_some(at)),
                (b'%', Some(b'b')) => self.balanced(at, item + 2)?.map(|end| (end, item + 4)),
                (b'%', Some(b'f')) => self.frontier(at, item + 2)?.map(|item| (at, item)),
                (b'%', Some(digit @ b'0'..=b'9')) => self.again(at, digit)?.map(|end| (end, item + 2)),
                _ => {
                    let end = self.class_end(item)?;
                    let fits = self.fits(at, item, end);
                    match self.pattern.get(end) {
                        Some(b'?') => {
                            if fits && let Some(found) = self.deeper(at + 1, end + 1)? {
                                return Ok(Some(found));
                            }
                            Some((at, end + 1))
                        }
                        Some(b'*') => return self.longest(at, 0, item, end),
                        Some(b'+') if fits => return self.longest(at, 1, item, end),
                        Some(b'-') => return self.shortest(at, item, end),
                        _ => fits.then_some((at + 1, end)),
                    }
                }
            };
            match passed {
                Some(both) => (at, item) = both,
                None => return Ok(None),
            }
        }
    }

    fn begin(&mut self, at: usize, item: usize, extent: Extent) -> MatchResult {
        if self.captures.len() >= MOST_CAPTURES {
            return Err(malformed("too many captures"));
        }
        self.captures.push((at, extent));
        let found = self.deeper(at, item)?;
        if found.is_none() {
            self.captures.pop();
        }
        Ok(found)
    }

    fn end(&mut self, at: usize, item: usize) -> MatchResult {
        let open = self.captures.iter().rposition(|(_, extent)| *extent == Extent::Open);
        let open = open.ok_or_else(|| malformed("invalid pattern capture"))?;
        self.captures[open].1 = Extent::Length(at - self.captures[open].0);
        let found = self.deeper(at, item)?;
        if found.is_none() {
            self.captures[open].1 = Extent::Open;
        }
        Ok(found)
    }

    /// `%1`: matches the contents of a capture.
    fn again(&mut self, at: usize, digit: u8) -> MatchResult {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        let captured = index.and_then(|index| self.captures.get(index)).copied();
        let (start, length) = match captured {
            Some((start, Extent::Length(length))) => (start, length),
            Some((_, Extent::Place)) => return Ok(None),
            _ => return Err(malformed(&format!("invalid capture index %{}", i32::from(digit) - i32::from(b'0')))),
        };
        for _ in 0..length / 64 {
            self.step()?;
        }
        let is_there = self.text[at..].starts_with(&self.text[start..start + length]);
        Ok(is_there.then_some(at + length))
    }

    /// `%bxy`: matches a balanced pair.
    fn balanced(&mut self, at: usize, item: usize) -> MatchResult {
        let (Some(open), Some(close)) = (self.pattern.get(item).copied(), self.pattern.get(item + 1).copied()) else {
            return Err(malformed("malformed pattern (missing arguments to '%b')"));
        };
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for place in at + 1..self.text.len() {
            self.step()?;
            let byte = self.text[place];
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(place + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: matches at a frontier; returns where the pattern continues.
    fn frontier(&mut self, at: usize, item: usize) -> MatchResult {
        if self.pattern.get(item) != Some(&b'[') {
            return Err(malformed("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(item)?;
        let before = at.checked_sub(1).map_or(0, |before| self.text[before]);
        let here = self.text.get(at).copied().unwrap_or(0);
        let set = &self.pattern[item..end];
        Ok((!in_set(before, set) && in_set(here, set)).then_some(end))
    }

    /// Greedy repetition.
    fn longest(&mut self, at: usize, least: usize, item: usize, end: usize) -> MatchResult {
        let mut count = least;
        while self.fits(at + count, item, end) {
            self.step()?;
            count += 1;
        }
        loop {
            if let Some(found) = self.deeper(at + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == least {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// Lazy repetition.
    fn shortest(&mut self, mut at: usize, item: usize, end: usize) -> MatchResult {
        loop {
            if let Some(found) = self.deeper(at, end + 1)? {
                return Ok(Some(found));
            }
            if !self.fits(at, item, end) {
                return Ok(None);
            }
            at += 1;
        }
    }

    /// Returns the end of the class that begins at `item`.
    fn class_end(&self, item: usize) -> Result<usize, Fault> {
        match self.pattern[item] {
            b'%' if item + 1 >= self.pattern.len() => Err(malformed("malformed pattern (ends with '%')")),
            b'%' => Ok(item + 2),
            b'[' => {
                let mut place = item + 1;
                if self.pattern.get(place) == Some(&b'^') {
                    place += 1;
                }
                loop {
                    let byte = self.pattern.get(place).ok_or_else(|| malformed("malformed pattern (missing ']')"))?;
                    place += 1;
                    if *byte == b'%' && place < self.pattern.len() {
                        place += 1;
                    }
                    if self.pattern.get(place) == Some(&b']') {
                        return Ok(place + 1);
                    }
                }
            }
            _ => Ok(item + 1),
        }
    }

    fn fits(&self, at: usize, item: usize, end: usize) -> bool {
        let Some(byte) = self.text.get(at).copied() else { return false };
        match self.pattern[item] {
            b'.' => true,
            b'%' => in_class(byte, self.pattern[item + 1]),
            b'[' => in_set(byte, &self.pattern[item..end]),
            other => other == byte,
        }
    }
}

/// Whether a byte is in a set; `set` includes the brackets.
fn in_set(byte: u8, set: &[u8]) -> bool {
    let last = set.len() - 1;
    let is_complement = set[1] == b'^';
    let mut place = if is_complement { 2 } else { 1 };
    while place < last {
        let fits = if set[place] == b'%' {
            place += 1;
            in_class(byte, set[place])
        } else if set[place + 1] == b'-' && place + 2 < last {
            place += 2;
            (set[place - 2]..=set[place]).contains(&byte)
        } else {
            set[place] == byte
        };
        if fits {
            return !is_complement;
        }
        place += 1;
    }
    is_complement
}

fn in_class(byte: u8, class: u8) -> bool {
    let fits = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b'\t'..=b'\r' | b' '),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        // Removed from the manual, but supported by Lua.
        b'z' => byte == 0,
        _ => return class == byte,
    };
    fits != class.is_ascii_uppercase()
}

/// Whether all items of a pattern are complete.
fn is_complete(pattern: &[u8]) -> bool {
    let search = Search::new(&[], pattern, &|| true);
    let mut item = 0;
    while let Some(first) = pattern.get(item) {
        let end = match (first, pattern.get(item + 1)) {
            (b'%', Some(b'b')) if item + 3 < pattern.len() => Ok(item + 4),
            (b'%', Some(b'b')) => return false,
            (b'%', Some(b'f')) if pattern.get(item + 2) != Some(&b'[') => return false,
            (b'%', Some(b'f')) => search.class_end(item + 2),
            _ => search.class_end(item),
        };
        match end {
            Ok(end) => item = end,
            Err(_) => return false,
        }
    }
    true
}

/// Returns the maximum length of a text that Lua's own functions can search for a pattern within a number of steps; -1:
/// they would raise an error.
pub(crate) fn longest_text(pattern: &[u8], steps: f64) -> i64 {
    if !is_complete(pattern) {
        return -1;
    }
    // From each start, each repetition may be tried at each length, and each capture may be compared entirely.
    let mut power = u32::from(pattern.first() != Some(&b'^'));
    let mut place = 0;
    while let Some(byte) = pattern.get(place) {
        let next = pattern.get(place + 1);
        match byte {
            b'%' => {
                power += u32::from(matches!(next, Some(b'b' | b'0'..=b'9')));
                place += 1;
            }
            b'[' => place += set_length(&pattern[place..]),
            b'*' | b'+' | b'-' => power += 1,
            _ => {}
        }
        place += 1;
    }
    let items = pattern.len().max(1) as f64;
    (steps / items).powf(1.0 / f64::from(power.max(1))) as i64
}

/// Returns the number of bytes of a set after its first bracket; all if it is not closed.
fn set_length(set: &[u8]) -> usize {
    let mut place = if set.get(1) == Some(&b'^') { 2 } else { 1 };
    loop {
        place += if set.get(place) == Some(&b'%') { 2 } else { 1 };
        if set.get(place).is_none_or(|byte| *byte == b']') {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with patterns of all kinds: the result equals Lua's.
    #[test]
    fn finds_what_lua_finds() {
        let lua = mlua::Lua::new();
        let find: mlua::Function =
            lua.load("return function(...) return pcall(string.find, ...) end").eval().expect("one");
        let texts = [
            "",
            "a",
            "hello world",
            "k = v; k2=v2",
            "((a)(b))c",
            "THE (quick) fox",
            "aaa",
            "a-b]c^",
            "\0x\u{7f}%",
            "abcabc",
        ];
        let patterns = [
            "",
            "a",
            ".",
            ".*",
            ".-",
            ".+",
            "a*",
            "a?b",
            "a-b",
            "^a",
            "^(.-)=(.*)$",
            "(%w+)%s*=%s*(%w+)",
            "%b()",
            "%f[%w]%w+",
            "%f[^%z]",
            "()ll()",
            "(a)(b)(c)%1",
            "(.)%1",
            "[%a_]+",
            "[^%s]+$",
            "[]]",
            "[^]]",
            "[a-]",
            "[%]x]",
            "%",
            "[a",
            "[%",
            "%b",
            "%bx",
            "%f",
            "%1",
            "(%2)",
            "x?)",
            "(a",
            "x(",
            "$",
            "a$b",
            "%$",
            "%z",
            "%Z",
            "%C",
            "%P+",
            "%x%X",
            "[a-c%d]*",
            "(a*(.)%w(%s*))",
            "^",
            "^^",
            "a**",
            "*a",
            "?",
            "-",
            "[a-%%]",
            "%f[a]a",
            "((a)+)",
        ];
        for (text, pattern) in texts.iter().flat_map(|text| patterns.map(|pattern| (*text, pattern))) {
            let native: mlua::MultiValue = find.call((text, pattern)).expect("values");
            let mut search =
                Search::new(text.as_bytes(), pattern.strip_prefix('^').unwrap_or(pattern).as_bytes(), &|| true);
            let starts = if pattern.starts_with('^') { 0..=0 } else { 0..=text.len() };
            let mut found = Ok(None);
            for start in starts {
                found = search.at(start).map(|end| end.map(|end| (start, end)));
                if found != Ok(None) {
                    break;
                }
            }
            let native: Vec<mlua::Value> = native.into_iter().skip(1).collect();
            match found {
                Ok(Some((start, end))) if search.captures().iter().all(|(_, extent)| *extent != Extent::Open) => {
                    let places = (native[0].as_usize(), native[1].as_usize());
                    assert_eq!(places, (Some(start + 1), Some(end)), "{text:?} {pattern:?}");
                    assert_eq!(native.len() - 2, search.captures().len(), "{text:?} {pattern:?}");
                }
                // An unclosed capture is reported when the captures are read.
                Ok(Some(_)) => {
                    assert!(native[0].to_string().expect("text").contains("unfinished capture"), "{pattern:?}")
                }
                Ok(None) => assert!(native[0].is_nil(), "{text:?} {pattern:?} {native:?}"),
                Err(Fault::Malformed(why)) => {
                    assert!(native[0].to_string().expect("text").ends_with(&why), "{text:?} {pattern:?} {native:?}");
                }
                Err(Fault::Stopped) => panic!("nobody stops it"),
            }
        }
    }

    #[test]
    fn ends_when_it_is_told_to() {
        let text = vec![b'a'; 200];
        let asked = std::cell::Cell::new(0);
        let go_on = || asked.replace(asked.get() + 1) < 3;
        let mut search = Search::new(&text, b".-.-.-.-.-.-.-.-.-b", &go_on);
        assert_eq!((search.at(0), asked.get()), (Err(Fault::Stopped), 4));
    }

    #[test]
    fn patterns_with_many_repetitions_are_for_short_texts() {
        for (pattern, expected) in [
            ("abc", 3_333_333),
            ("^a*", 3_333_333),
            ("a*b-", 135),
            ("(.)%1", 1_414),
            ("[^]a-z-]", 1_250_000),
            ("a%", -1),
            ("[a", -1),
            ("%bx", -1),
        ] {
            let longest = longest_text(pattern.as_bytes(), 1e7);
            assert!((longest - expected).abs() <= 1, "{pattern}: {longest}");
        }
    }
}
