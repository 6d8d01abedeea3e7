//! Translates patterns from the syntax of HAProxy's library (PCRE2, over bytes) to that of the `regex` crates, whose
//! trees automata are built from. Untranslatable patterns are matched by PCRE2; a loose translation finds the positions
//! worth trying. Must never change the meaning of a pattern, nor loosen it so that it misses a match.

/// Maximum nesting of groups.
const MOST_DEPTH: usize = 100;

/// The translation of `$`: the end, or a final line feed.
const END: &str = r"(?:\n?\z)";

/// A translated pattern.
pub(super) struct Translated {
    /// The translation.
    pub text: String,
    /// The number of unlimited repetitions and back references in the pattern.
    pub repetitions: usize,
    /// Those among which one attempt divides a text, at most. A lookaround gives back no part of what it has taken: it is
    /// reckoned for itself, unless it is asked again and again.
    pub together: usize,
}

/// Replaces a part that cannot be translated.
const ANYTHING: &str = "(?:(?s:.)*)";

/// Replaces an omitted lookaround.
const NOTHING: &str = "(?:)";

/// Larger repetition counts become unlimited.
const FEW: u16 = 64;

/// Translates a pattern; `None`: untranslatable or invalid. `loose`: untranslatable parts may be omitted, so that more
/// is matched. The pattern must be valid then.
pub(super) fn translate(pattern: &[u8], loose: bool) -> Option<Translated> {
    read(pattern, loose, false)
}

/// Translates loosely, with the pattern of each positive lookaround as a group in its place. The result is not for
/// matching: parts that all its matches contain are in each text that the pattern matches.
pub(super) fn demanded(pattern: &[u8]) -> Option<String> {
    read(pattern, true, true).map(|translated| translated.text)
}

fn read(pattern: &[u8], loose: bool, keeps_looks: bool) -> Option<Translated> {
    let plain = without_quotes(pattern);
    let out = String::with_capacity(plain.len() + 16);
    let mut reader =
        Reader { rest: &plain, out, loose, keeps_looks, lines: false, extended: false, counts: Counts::default() };
    reader.alternatives(0)?;
    let Reader { rest, out, counts, .. } = reader;
    let together = counts.most.max(counts.here);
    rest.is_empty().then_some(Translated { text: out, repetitions: counts.all, together })
}

/// Expands `\Q…\E` character by character.
fn without_quotes(pattern: &[u8]) -> Vec<u8> {
    let (mut out, mut rest, mut quoted) = (Vec::with_capacity(pattern.len()), pattern, false);
    while let [byte, behind @ ..] = rest {
        rest = behind;
        match (byte, behind) {
            (b'\\', [b'E', behind @ ..]) => (quoted, rest) = (false, behind),
            (byte, _) if quoted => out.extend(format!("\\x{byte:02x}").bytes()),
            (b'\\', [b'Q', behind @ ..]) => (quoted, rest) = (true, behind),
            (b'\\', [escaped, behind @ ..]) => {
                out.extend([b'\\', *escaped]);
                rest = behind;
            }
            (byte, _) => out.push(*byte),
        }
    }
    out
}

/// The kind of a parsed item.
#[derive(Clone, Copy, PartialEq)]
enum Item {
    /// Consumes text, or is a group.
    Atom,
    /// An assertion; HAProxy's library does not allow it to be repeated.
    Assertion,
    /// It contains the end of the text: nothing may follow.
    End,
    /// A comment, a setting.
    Nothing,
}

struct Reader<'a> {
    rest: &'a [u8],
    out: String,
    /// Untranslatable parts are omitted.
    loose: bool,
    /// Positive lookarounds become groups; otherwise they are omitted, as negative ones always are.
    keeps_looks: bool,
    /// `^` and `$` match at line ends (`(?m)`).
    lines: bool,
    /// Blanks are ignored (`(?x)`).
    extended: bool,
    counts: Counts,
}

/// Repetitions that may take any number of bytes.
#[derive(Default)]
struct Counts {
    all: usize,
    /// Outside of the lookaround that is read.
    here: usize,
    /// Of one lookaround, in the item that is read.
    looks: usize,
    /// Of one lookaround.
    most: usize,
}

impl Counts {
    fn add(&mut self, repetitions: usize) {
        self.all += repetitions;
        self.here += repetitions;
    }
}

impl Reader<'_> {
    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn take_if(&mut self, wanted: u8) -> bool {
        let found = self.rest.first() == Some(&wanted);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn literal(&mut self, byte: u8) {
        if byte.is_ascii_alphanumeric() {
            self.out.push(char::from(byte));
        } else {
            self.out.push_str(&format!("\\x{byte:02x}"));
        }
    }

    /// Translates up to the end or a closing parenthesis; returns whether it contains the end of the text.
    fn alternatives(&mut self, depth: usize) -> Option<bool> {
        let (mut any, mut ended) = (false, false);
        loop {
            match self.rest.first() {
                None => break,
                Some(b')') if depth > 0 => break,
                Some(b'|') => {
                    self.rest = &self.rest[1..];
                    self.out.push('|');
                    any |= ended;
                    ended = false;
                }
                Some(_) if ended && !self.loose => return None,
                Some(_) => ended = self.repeated(depth)?,
            }
        }
        Some(any || ended)
    }

    /// Translates an item with its quantifier; returns whether it contains the end of the text.
    fn repeated(&mut self, depth: usize) -> Option<bool> {
        if self.skip_blank() {
            return Some(false);
        }
        let before = std::mem::take(&mut self.counts.looks);
        let item = self.item(depth)?;
        while self.skip_blank() {}
        let start = self.out.len();
        let mut repeats = false;
        match self.rest.first() {
            Some(b'*' | b'+' | b'?') => {
                let sign = self.take()?;
                repeats = sign != b'?';
                self.out.push(char::from(sign));
            }
            Some(b'{') => {
                if let Some((text, rest)) = counted(self.rest) {
                    self.rest = rest;
                    let (text, many) = text?;
                    repeats = many;
                    self.out.push_str(&text);
                }
            }
            _ => {}
        }
        if repeats {
            self.counts.add(1);
            // Its lookarounds are asked each time.
            self.counts.here += self.counts.looks;
        }
        self.counts.looks = self.counts.looks.max(before);
        if self.out.len() > start {
            if item != Item::Atom && !self.loose {
                return None;
            }
            if self.take_if(b'?') {
                self.out.push('?');
            } else if self.loose {
                self.take_if(b'+');
            }
            // A possessive quantifier, or a second one.
            let further = matches!(self.rest.first(), Some(b'*' | b'+' | b'?'));
            if further || counted(self.rest).is_some() {
                return None;
            }
        }
        Some(item == Item::End)
    }

    fn item(&mut self, depth: usize) -> Option<Item> {
        match self.take()? {
            b'\\' => self.escape(),
            b'[' => self.class(),
            b'(' => self.group(depth),
            b'.' => {
                self.out.push('.');
                Some(Item::Atom)
            }
            b'^' => {
                self.out.push_str(if self.lines { NOTHING } else { "^" });
                Some(Item::Assertion)
            }
            b'$' => Some(self.end(depth)),
            b'*' | b'+' | b'?' | b')' => None,
            b'{' => {
                let braced = [b"{", self.rest].concat();
                if counted(&braced).is_some() {
                    return None;
                }
                self.literal(b'{');
                Some(Item::Atom)
            }
            byte => {
                self.literal(byte);
                Some(Item::Atom)
            }
        }
    }

    fn end(&mut self, depth: usize) -> Item {
        let is_last = self.rest.iter().all(|byte| *byte == b')') || depth == 0 && self.rest.first() == Some(&b'|');
        if self.loose && (self.lines || !is_last) {
            self.out.push_str(NOTHING);
            return Item::Nothing;
        }
        self.out.push_str(END);
        Item::End
    }

    /// Skips a blank or a comment, if they are ignored.
    fn skip_blank(&mut self) -> bool {
        match self.rest {
            [blank, rest @ ..] if self.extended && matches!(blank, b' ' | b'\t'..=b'\r') => self.rest = rest,
            [b'#', rest @ ..] if self.extended => {
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                self.rest = &rest[end..];
            }
            _ => return false,
        }
        true
    }

    /// Translates an untranslatable escape loosely.
    fn loosely(&mut self, letter: u8) -> Option<Item> {
        match letter {
            b'R' => self.out.push_str("(?:[\\n\\x0b\\x0c\\r\\x85]{1,2})"),
            b'X' => self.out.push_str("(?:(?s:.)+)"),
            b'C' => self.out.push_str("(?s:.)"),
            b'K' | b'G' => {
                self.out.push_str(NOTHING);
                return Some(Item::Nothing);
            }
            b'p' | b'P' | b'o' => {
                let is_name = self.rest.first() == Some(&b'{');
                let end = if is_name { self.rest.iter().position(|byte| *byte == b'}')? } else { 0 };
                self.rest = self.rest.get(end + 1..)?;
                self.out.push_str("(?s:.)");
            }
            b'k' | b'g' | b'1'..=b'9' => {
                let close = match self.rest.first() {
                    Some(b'{') => Some(b'}'),
                    Some(b'<') => Some(b'>'),
                    Some(b'\'') => Some(b'\''),
                    _ => None,
                };
                let end = match close.filter(|_| !letter.is_ascii_digit()) {
                    Some(close) => 2 + self.rest[1..].iter().position(|byte| *byte == close)?,
                    None => {
                        let is_part = |byte: &u8| byte.is_ascii_digit() || letter == b'g' && b"+-".contains(byte);
                        self.rest.iter().take_while(|byte| is_part(byte)).count()
                    }
                };
                self.rest = &self.rest[end..];
                self.counts.add(1);
                self.out.push_str(ANYTHING);
            }
            _ => return None,
        }
        Some(Item::Atom)
    }

    fn escape(&mut self) -> Option<Item> {
        let letter = self.take()?;
        match letter {
            b'd' | b'D' | b'w' | b'W' | b's' | b'S' => {
                self.out.push('\\');
                self.out.push(char::from(letter));
            }
            b'b' | b'B' | b'A' | b'z' => {
                self.out.push('\\');
                self.out.push(char::from(letter));
                return Some(Item::Assertion);
            }
            b'Z' => return Some(self.end(usize::MAX)),
            b'R' | b'X' | b'C' | b'K' | b'G' | b'p' | b'P' | b'o' | b'k' | b'g' | b'1'..=b'9' if self.loose => {
                return self.loosely(letter);
            }
            b'h' => self.out.push_str(r"[\t\x20\xa0]"),
            b'H' => self.out.push_str(r"[^\t\x20\xa0]"),
            b'v' => self.out.push_str(r"[\n\x0b\x0c\r\x85]"),
            b'V' => self.out.push_str(r"[^\n\x0b\x0c\r\x85]"),
            b'N' if self.rest.first() != Some(&b'{') => self.out.push_str(r"[^\n]"),
            letter => {
                let byte = self.escaped(letter)?;
                self.literal(byte);
            }
        }
        Some(Item::Atom)
    }

    /// Returns the byte of an escape, in a class or outside of one.
    fn escaped(&mut self, letter: u8) -> Option<u8> {
        Some(match letter {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'f' => 0x0c,
            b'a' => 0x07,
            b'e' => 0x1b,
            b'c' => {
                let letter = self.take().filter(|letter| matches!(letter, b' '..=b'~'))?;
                letter.to_ascii_uppercase() ^ 0x40
            }
            b'x' if self.take_if(b'{') => {
                let end = self.rest.iter().position(|byte| *byte == b'}')?;
                let digits = std::str::from_utf8(&self.rest[..end]).ok()?;
                let byte = u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
                self.rest = &self.rest[end + 1..];
                byte
            }
            b'x' => self.digits(16, 2),
            b'0' => self.digits(8, 2),
            letter if letter.is_ascii_alphanumeric() => return None,
            other => other,
        })
    }

    /// Parses up to `most` digits.
    fn digits(&mut self, base: u32, most: usize) -> u8 {
        let mut number = 0;
        for _ in 0..most {
            let Some(digit) = self.rest.first().and_then(|byte| char::from(*byte).to_digit(base)) else { break };
            self.rest = &self.rest[1..];
            number = number * base + digit;
        }
        number as u8
    }

    /// Translates a class after its bracket.
    fn class(&mut self) -> Option<Item> {
        self.out.push('[');
        if self.take_if(b'^') {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let byte = self.take()?;
            if byte == b']' && !first {
                break;
            }
            first = false;
            let low = match (byte, self.rest) {
                (b'[', [b':' | b'.' | b'=', ..]) => {
                    self.posix()?;
                    None
                }
                (b'\\', _) => self.class_escape()?,
                (byte, _) => Some(byte),
            };
            match (low, self.rest) {
                (_, [b'-', b']', ..]) | (None, []) => self.single(low),
                (Some(low), [b'-', high, ..]) => {
                    let high = *high;
                    self.rest = &self.rest[2..];
                    let high = match (high, self.rest) {
                        (b'[', [b':' | b'.' | b'=', ..]) => return None,
                        (b'\\', _) => self.class_escape()??,
                        (high, _) => high,
                    };
                    if low > high {
                        return None;
                    }
                    self.out.push_str(&format!("\\x{low:02x}-\\x{high:02x}"));
                }
                (None, [b'-', ..]) => return None,
                _ => self.single(low),
            }
        }
        self.out.push(']');
        Some(Item::Atom)
    }

    fn single(&mut self, byte: Option<u8>) {
        if let Some(byte) = byte {
            self.out.push_str(&format!("\\x{byte:02x}"));
        }
    }

    /// Translates an escape in a class. Inner value: the byte, unless the escape is a set of bytes, which is appended.
    fn class_escape(&mut self) -> Option<Option<u8>> {
        let letter = self.take()?;
        match letter {
            b'd' | b'D' | b'w' | b'W' | b's' | b'S' => {
                self.out.push('\\');
                self.out.push(char::from(letter));
                Some(None)
            }
            b'h' => {
                self.out.push_str(r"\t\x20\xa0");
                Some(None)
            }
            b'v' => {
                self.out.push_str(r"\n\x0b\x0c\r\x85");
                Some(None)
            }
            b'b' => Some(Some(0x08)),
            letter => self.escaped(letter).map(Some),
        }
    }

    /// Translates `[:name:]` after its bracket.
    fn posix(&mut self) -> Option<()> {
        const NAMES: [&str; 14] = [
            "alpha", "lower", "upper", "alnum", "ascii", "blank", "cntrl", "digit", "graph", "print", "punct", "space",
            "word", "xdigit",
        ];
        let end = self.rest.windows(2).position(|pair| pair == b":]")?;
        let name = std::str::from_utf8(self.rest.get(1..end)?).ok().filter(|_| self.rest[0] == b':')?;
        NAMES.iter().find(|known| **known == name.trim_start_matches('^') && name.len() <= known.len() + 1)?;
        self.out.push_str(&format!("[:{name}:]"));
        self.rest = &self.rest[end + 2..];
        Some(())
    }

    /// Translates a group after its parenthesis.
    fn group(&mut self, depth: usize) -> Option<Item> {
        let (extended, start) = (self.extended, self.out.len());
        let (mut looks, mut is_kept) = (false, false);
        if depth >= MOST_DEPTH || self.rest.first() == Some(&b'*') {
            return None;
        }
        if !self.take_if(b'?') {
            self.out.push('(');
        } else {
            match self.rest {
                [b'#', ..] => {
                    let end = self.rest.iter().position(|byte| *byte == b')')?;
                    self.rest = &self.rest[end + 1..];
                    return Some(Item::Nothing);
                }
                [b':', rest @ ..] => {
                    self.rest = rest;
                    self.out.push_str("(?:");
                }
                [b'P', b'<', ..] => self.named(2, b'>')?,
                [b'P', b'=', ..] if self.loose => {
                    let end = self.rest.iter().position(|byte| *byte == b')')?;
                    self.rest = &self.rest[end + 1..];
                    self.counts.add(1);
                    self.out.push_str(ANYTHING);
                    return Some(Item::Atom);
                }
                [b'>' | b'|', rest @ ..] if self.loose => {
                    self.rest = rest;
                    self.out.push_str("(?:");
                }
                [sign @ (b'=' | b'!'), rest @ ..] | [b'<', sign @ (b'=' | b'!'), rest @ ..] if self.loose => {
                    looks = true;
                    is_kept = self.keeps_looks && *sign == b'=';
                    self.rest = rest;
                    self.out.push('(');
                }
                [b'<', ..] => self.named(1, b'>')?,
                [b'\'', ..] => self.named(1, b'\'')?,
                _ => {
                    if self.settings()? {
                        return Some(Item::Nothing);
                    }
                }
            }
        }
        let before = if looks { std::mem::take(&mut self.counts.here) } else { 0 };
        let ended = self.alternatives(depth + 1)?;
        if !self.take_if(b')') {
            return None;
        }
        if looks {
            let own = self.counts.here;
            self.counts.looks = self.counts.looks.max(own);
            self.counts.most = self.counts.most.max(own);
            // Behind a repetition it is asked wherever that may end.
            self.counts.here = if before > 0 { before + own } else { 0 };
        }
        self.extended = extended;
        if looks && !is_kept {
            self.out.truncate(start);
            self.out.push_str(NOTHING);
            return Some(Item::Assertion);
        }
        self.out.push(')');
        if looks {
            return Some(Item::Assertion);
        }
        Some(if ended { Item::End } else { Item::Atom })
    }

    /// Translates a group's name: it begins after `start` bytes and ends at `close`.
    fn named(&mut self, start: usize, close: u8) -> Option<()> {
        let rest = &self.rest[start..];
        let end = rest.iter().position(|byte| *byte == close)?;
        let (name, rest) = (&rest[..end], &rest[end + 1..]);
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if name.is_empty() || name.len() > 32 || name[0].is_ascii_digit() || !name.iter().all(is_word) {
            return None;
        }
        self.out.push_str("(?P<");
        self.out.push_str(std::str::from_utf8(name).ok()?);
        self.out.push('>');
        self.rest = rest;
        Some(())
    }

    /// Translates `(?i)` or `(?i:` after the question mark. True: no group is opened.
    fn settings(&mut self) -> Option<bool> {
        let end = self.rest.iter().position(|byte| matches!(byte, b')' | b':'))?;
        let (flags, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        let mut flags = flags.to_vec();
        if self.loose && !flags.contains(&b'-') {
            self.lines |= flags.contains(&b'm');
            self.extended |= flags.contains(&b'x');
            if flags.windows(2).any(|pair| pair == b"xx") {
                return None;
            }
            flags.retain(|flag| !b"mxnJ".contains(flag));
            if flags.is_empty() {
                let closed = self.rest[end] == b')';
                self.out.push_str(if closed { NOTHING } else { "(?:" });
                self.rest = rest;
                return Some(closed);
            }
        }
        let is_known = !flags.is_empty() && flags.iter().all(|flag| matches!(flag, b'i' | b's' | b'U' | b'-'));
        if !is_known || flags.iter().filter(|flag| **flag == b'-').count() > 1 || flags.ends_with(b"-") {
            return None;
        }
        self.out.push_str("(?");
        self.out.push_str(std::str::from_utf8(&flags).ok()?);
        self.out.push(char::from(self.rest[end]));
        let closed = self.rest[end] == b')';
        self.rest = rest;
        Some(closed)
    }
}

/// A quantifier in braces, and whether its maximum is large.
type Count = (String, bool);

/// Parses a quantifier in braces; returns whether its maximum is large, and the rest: `None` if it is literal text,
/// inner `None` if it is too large or invalid.
fn counted(text: &[u8]) -> Option<(Option<Count>, &[u8])> {
    let end = text.iter().position(|byte| *byte == b'}')?;
    let inside = std::str::from_utf8(text.get(1..end)?).ok().filter(|_| text[0] == b'{')?;
    let (low, high) = inside.split_once(',').map_or((inside, None), |(low, high)| (low, Some(high)));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(low) || high.is_some_and(|high| !high.is_empty() && !is_number(high)) {
        return None;
    }
    let number = |digits: &str| digits.parse::<u16>().ok();
    let many = high.is_some_and(|high| high.is_empty() || number(high).is_none_or(|high| high > FEW));
    let most = high.filter(|high| !high.is_empty()).map(number);
    let fits = number(low).is_some_and(|low| most.is_none_or(|most| most.is_some_and(|most| low <= most)));
    Some((fits.then(|| (format!("{{{inside}}}"), many)), &text[end + 1..]))
}
