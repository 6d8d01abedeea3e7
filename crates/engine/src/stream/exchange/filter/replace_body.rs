//! `replace-body`, Weir's own: replaces matches in a body while it passes. The result does not depend on the pieces in which the
//! body is received: it is searched in windows of a fixed size, each preceded by the end of the previous one. Holds one window
//! and its result. Must never look into a body that has a content coding, or into a partial body.

use base::buffer::Buffer;
use conn::flow::{FilterOutput, make_output};
use expression::pattern::{Places, Regex, Steps, expand};
use expression::sample::{Direction, Exhausted};
use wire::http::{Framing, Head, Version};

use super::cache::CacheFilter;
use super::compression::is_strong;
use crate::filter::{Event, Filter, FilterContext, Filters, ProxyPair};
use crate::session::Session;
use crate::stream_state::StreamState;

/// Size of a window, in bytes.
const WINDOW: usize = 8 * 1024;
/// Maximum length of a match that is always found: one that begins in the last bytes of a window is searched in the next one.
const MATCH: usize = 4 * 1024;
/// Bytes before a window that its matches can look back at.
const CONTEXT: usize = 256;
/// Bytes of result that are produced before they are written.
const MADE: usize = 64 * 1024;
/// Maximum size of a replacement.
const MOST: usize = 1024 * 1024;

/// Replaces matches in one direction of a stream.
struct ReplaceBodyFilter {
    direction: Direction,
    regex: Regex,
    text: Box<[u8]>,
    /// The response is for a HEAD request.
    head_alone: bool,
    /// Whether the body is processed; `None`: not decided yet.
    active: Option<bool>,
    scanner: Scanner,
}

/// Adds a body replacement by a rule: in a request before all other filters, in a response after caches have stored the server's
/// response, and before the other filters.
pub fn replace_body(filters: &Filters, direction: Direction, regex: &Regex, text: &[u8], head_alone: bool) {
    let filter = Box::new(ReplaceBodyFilter::new(direction, regex.clone(), text, head_alone));
    filters.borrow_mut().attach_after(direction, filter, |before| {
        before.as_kind::<ReplaceBodyFilter>().is_some() || before.as_kind::<CacheFilter>().is_some()
    });
}

/// Adds a body replacement to a request whose stream may have no filters yet.
pub fn replace_request_body(session: &Session, state: &mut StreamState, regex: &Regex, text: &[u8]) {
    let filters = state.filters.get_or_insert_with(|| super::new(session));
    replace_body(filters, Direction::Request, regex, text, false);
}

impl ReplaceBodyFilter {
    fn new(direction: Direction, regex: Regex, text: &[u8], head_alone: bool) -> Self {
        Self { direction, regex, text: text.into(), head_alone, active: None, scanner: Scanner::default() }
    }

    /// Whether the body of a message can be replaced.
    fn fits(&self, head: &Head) -> bool {
        let is_whole = match self.direction {
            Direction::Request => head.version() == Version::Http11 && !head.upgrade,
            Direction::Response => !matches!(head.status(), 0..=199 | 204 | 206 | 304),
        };
        let is_plain =
            head.all(b"content-encoding").all(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"identity"));
        is_whole && is_plain && !head.connection.upgrade
    }
}

/// Removes fields that do not apply to the new body, and changes its framing.
fn describe_new_body(head: &mut Head, head_alone: bool) {
    if matches!(head.framing, Framing::Length(_)) {
        head.frame_in_chunks();
    } else if head_alone {
        head.remove_all(b"content-length");
    }
    for field in [&b"content-md5"[..], b"digest", b"content-digest", b"repr-digest", b"accept-ranges"] {
        head.remove_all(field);
    }
    let etag = head.fields().position(|(name, value)| name == b"etag" && is_strong(value));
    if let Some(index) = etag {
        head.fields.splice_value(index, 0..0, b"W/");
    }
}

impl Filter for ReplaceBodyFilter {
    fn note(&mut self, _: &FilterContext, event: Event<'_>) {
        // The rule runs again on the next response.
        if event == Event::Restarted && self.direction == Direction::Response {
            self.active = Some(false);
        }
    }

    fn negotiate(&mut self, proxies: &ProxyPair<'_>, _: &mut Head) {
        // A FastCGI application receives the length of its request first.
        let is_fcgi = proxies.backend.and_then(|proxy| proxy.backend.as_ref()).is_some_and(|own| own.fcgi.is_some());
        if is_fcgi && self.direction == Direction::Request {
            self.active = Some(false);
        }
    }

    fn head(&mut self, _: &FilterContext, direction: Direction, head: &mut Head) {
        if direction != self.direction || self.active.is_some() {
            return;
        }
        let has_body = !matches!(head.framing, Framing::None | Framing::Length(0));
        let fits = self.fits(head) && (has_body || self.head_alone);
        self.active = Some(fits && has_body);
        if fits {
            describe_new_body(head, self.head_alone);
        }
    }

    fn wants(&self, direction: Direction) -> bool {
        direction == self.direction && self.active == Some(true)
    }

    fn body(
        &mut self,
        _: &FilterContext,
        _: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> FilterOutput {
        make_output(output);
        self.scanner.pass(&self.regex, &self.text, input, output, ended).unwrap_or(FilterOutput::Refused)
    }
}

/// State of a body being processed.
#[derive(Default)]
struct Scanner {
    /// Input: processed context, followed by unprocessed bytes.
    held: Vec<u8>,
    /// Number of processed bytes in it.
    gone: usize,
    /// The window is complete; the value: whether it is the last one.
    window: Option<bool>,
    /// Result of the window, and the number of its bytes already written.
    made: Vec<u8>,
    written: usize,
    places: Places,
}

impl Scanner {
    fn pass(
        &mut self,
        regex: &Regex,
        text: &[u8],
        input: &mut Buffer,
        output: &mut Buffer,
        ended: bool,
    ) -> Result<FilterOutput, Exhausted> {
        loop {
            if !self.write(output) {
                return Ok(FilterOutput::Again);
            }
            if self.window.is_none() && !self.fill(input, ended) {
                return Ok(FilterOutput::Through);
            }
            if output.room() == 0 {
                return Ok(FilterOutput::Again);
            }
            if !self.scan(regex, text)? {
                return Ok(FilterOutput::Again);
            }
        }
    }

    /// Writes the result. Returns false if a part of it is left.
    fn write(&mut self, output: &mut Buffer) -> bool {
        let rest = &self.made[self.written..];
        let length = rest.len().min(output.room());
        let fits = output.push(&rest[..length]);
        debug_assert!(fits, "no more than there is room for");
        self.written += length;
        let all = self.written == self.made.len();
        if all {
            self.made.clear();
            self.written = 0;
        }
        all
    }

    /// Fills the window from the input. Returns false if it is incomplete, or there is none after the last.
    fn fill(&mut self, input: &mut Buffer, ended: bool) -> bool {
        let left = (self.gone + WINDOW).saturating_sub(self.held.len());
        let length = input.len().min(left);
        self.held.extend_from_slice(&input.data()[..length]);
        input.consume(length);
        // Whether it is the last one must not depend on the bytes received so far.
        let is_last = ended && input.is_empty();
        if !is_last && (length < left || input.is_empty()) || is_last && self.held.len() == self.gone {
            return false;
        }
        self.window = Some(is_last);
        true
    }

    /// Replaces matches in the window, up to the size limit of the result. Returns false if the step limit was reached and the
    /// task has to yield.
    fn scan(&mut self, regex: &Regex, text: &[u8]) -> Result<bool, Exhausted> {
        let before = self.gone;
        let Self { held, gone, window, made, places, .. } = self;
        let is_last = *window == Some(true);
        let until = if is_last { held.len() } else { held.len() - MATCH };
        let steps = Steps::for_replacing(held.len());
        let mut search = regex.search(places, held, &steps, true)?;
        while made.len() < MADE {
            // An empty match is possible after the last byte.
            let found = match if *gone < until || is_last { search.next(*gone) } else { Ok(None) } {
                Ok(found) => found,
                Err(Exhausted) if *gone > before => return Ok(false),
                Err(Exhausted) => return Err(Exhausted),
            };
            // A match up to the end of the window may be longer.
            let found = found.filter(|(start, end)| is_last || *start < until && *end < held.len());
            let Some((start, end)) = found else {
                made.extend_from_slice(held.get(*gone..until).unwrap_or_default());
                *gone = until.max(*gone);
                *window = None;
                break;
            };
            made.extend_from_slice(&held[*gone..start]);
            let length = made.len();
            expand(&search, held, text, &mut |bytes| {
                if made.len() - length <= MOST {
                    made.extend_from_slice(bytes);
                }
            });
            if made.len() - length > MOST {
                return Err(Exhausted);
            }
            *gone = end;
            if start == end {
                let Some(byte) = held.get(start) else {
                    *window = None;
                    break;
                };
                made.push(*byte);
                *gone += 1;
            }
        }
        if self.window.is_none() {
            let kept = self.gone.saturating_sub(CONTEXT);
            self.held.drain(..kept);
            self.gone -= kept;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Result of a body that is received and written in such pieces.
    fn replaced(regex: &Regex, text: &[u8], body: &[u8], pieces: &[usize], room: usize) -> Vec<u8> {
        let mut scanner = Scanner::default();
        let (mut out, mut at, mut pieces) = (Vec::new(), 0, pieces.iter().cycle());
        let mut input = Buffer::with_capacity(body.len().max(1));
        loop {
            let next = pieces.next().copied().unwrap_or(usize::MAX).clamp(1, body.len().max(1)).min(body.len() - at);
            input.compact();
            assert!(input.push(&body[at..at + next]));
            at += next;
            let ended = at == body.len();
            loop {
                let mut output = Buffer::with_capacity(room);
                let passed = scanner.pass(regex, text, &mut input, &mut output, ended).unwrap();
                out.extend_from_slice(output.data());
                if passed == FilterOutput::Through {
                    break;
                }
            }
            assert!(scanner.held.len() <= WINDOW + CONTEXT && scanner.made.len() <= MADE + MOST + WINDOW);
            if ended {
                assert!(input.is_empty());
                return out;
            }
        }
    }

    /// Result of the whole body at once.
    fn at_once(regex: &Regex, text: &[u8], body: &[u8]) -> Vec<u8> {
        let (mut places, steps, mut out, mut from) = (Places::default(), Steps::for_replacing(1 << 40), Vec::new(), 0);
        let mut search = regex.search(&mut places, body, &steps, true).unwrap();
        while let Some((start, end)) = search.next(from).unwrap().filter(|_| !body.is_empty()) {
            out.extend_from_slice(&body[from..start]);
            expand(&search, body, text, &mut |bytes| out.extend_from_slice(bytes));
            from = end;
            if start == end {
                out.extend(body.get(start));
                from += 1;
            }
            if from > body.len() {
                return out;
            }
        }
        out.extend_from_slice(&body[from..]);
        out
    }

    #[test]
    fn matches_are_replaced() {
        let rows: &[(&str, &str, &str, &str)] = &[
            ("a", "b", "", ""),
            ("a", "bb", "banana", "bbbnbbnbb"),
            ("(n)(a)", r"\2\1", "banana", "baanan"),
            ("^b", "x", "bb", "xb"),
            ("a$", "x", "banana", "bananx"),
            ("x*", "-", "ab", "-a-b-"),
            ("b*", "-", "abb", "-a--"),
            ("$", "!", "ab", "ab!"),
            ("$", "!", "ab\n", "ab!\n!"),
            (r"\z", "!", "ab\n", "ab\n!"),
            ("(?m)$", "!", "a\nb\n", "a!\nb!\n!"),
            ("(?m)^", ">", "a\nb\n", ">a\n>b\n"),
            ("$", "!", "", ""),
            ("(?<=b)a", "x", "baab", "bxab"),
            ("n", "", "banana", "baaa"),
        ];
        for (pattern, text, body, expected) in rows {
            let regex = Regex::new(pattern, false).unwrap();
            let found = replaced(&regex, text.as_bytes(), body.as_bytes(), &[1], 4);
            assert_eq!(String::from_utf8_lossy(&found), *expected, "{pattern}");
            assert_eq!(at_once(&regex, text.as_bytes(), body.as_bytes()), found, "{pattern}");
        }
    }

    #[test]
    fn matches_across_windows_are_found_and_anchors_hold() {
        for offset in [0, 1, MATCH - 2, MATCH - 1, MATCH, WINDOW - 3, WINDOW - 1, WINDOW, 2 * WINDOW - 2] {
            let mut body = vec![b'.'; 3 * WINDOW];
            body[offset..offset + 4].copy_from_slice(b"host");
            for pattern in ["host", "^host", r"\bhost\b", "(?<=[.])host(?=[.])"] {
                let regex = Regex::new(pattern, false).unwrap();
                let found = replaced(&regex, b"H", &body, &[1000], 1024);
                assert!(found == at_once(&regex, b"H", &body), "{pattern} at {offset}");
            }
        }
    }

    #[test]
    fn a_match_longer_than_half_a_window_stays() {
        let long = [&b"<"[..], &vec![b'a'; WINDOW], b"> <b>"].concat();
        let regex = Regex::new("<[^>]*>", false).unwrap();
        let found = replaced(&regex, b"!", &long, &[777], 1024);
        assert_eq!(found, [&b"<"[..], &vec![b'a'; WINDOW], b"> !"].concat());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn pieces_change_nothing(
            seed in any::<u64>(), length in 0..3 * WINDOW, pieces in prop::collection::vec(1_usize..40_000, 1..6),
            room in 1_usize..20_000, which in 0_usize..8,
        ) {
            let patterns = ["ab", "a+b?", "(a)(b|c)+", "a.{0,30}c", "[abc]{2,9}$", "(?<=a)b(?!c)", "$", "(?m)^|x*$"];
            let pattern = patterns[which];
            let regex = Regex::new(pattern, false).unwrap();
            let mut state = seed | 1;
            let body: Vec<u8> = (0..length).map(|_| {
                state ^= state << 13; state ^= state >> 7; state ^= state << 17;
                b"aabbbcc......\n"[(state % 14) as usize]
            }).collect();
            let expected = replaced(&regex, br"<\1\0>", &body, &[usize::MAX], 65_536);
            prop_assert!(expected == at_once(&regex, br"<\1\0>", &body));
            prop_assert!(replaced(&regex, br"<\1\0>", &body, &pieces, room.max(64)) == expected);
        }
    }
}
