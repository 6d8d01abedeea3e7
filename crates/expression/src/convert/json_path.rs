//! Finds a value of JSON by its path, in one pass and without allocation. Must never descend deeper than HAProxy does,
//! and leaves the text after the value unread.

/// Maximum nesting of arrays and objects.
const MOST_DEPTH: usize = 20;

/// A path: `$.key[0].other`; a dot in a key is escaped with a backslash. `None`: matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path(Option<Vec<PathStep>>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(Vec<u8>),
    Index(u64),
}

/// The value at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonValue<'a> {
    Bool(bool),
    /// As written.
    Number(&'a [u8]),
    /// The text between the quotes, as written.
    Text(&'a [u8]),
    /// As written, including the brackets.
    Array(&'a [u8]),
}

impl Path {
    pub(super) fn read(text: &[u8]) -> Self {
        let Some(mut rest) = text.strip_prefix(b"$") else {
            return Self(None);
        };
        let mut steps = Vec::new();
        loop {
            match rest {
                [] => return Self(Some(steps)),
                [b'.', behind @ ..] => {
                    rest = behind;
                    let mut key = Vec::new();
                    while let [byte, behind @ ..] = rest {
                        match (byte, behind) {
                            (b'.' | b'[', _) => break,
                            (b'\\', [escaped, behind @ ..]) => {
                                key.push(*escaped);
                                rest = behind;
                            }
                            _ => {
                                key.push(*byte);
                                rest = behind;
                            }
                        }
                    }
                    steps.push(PathStep::Key(key));
                }
                [b'[', behind @ ..] => {
                    let Some(end) = behind.iter().position(|byte| *byte == b']') else {
                        return Self(None);
                    };
                    let digits = behind[..end].iter().take_while(|byte| byte.is_ascii_digit());
                    let index =
                        digits.fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
                    steps.push(PathStep::Index(if behind[0] == b'-' { u64::MAX } else { index }));
                    rest = &behind[end + 1..];
                }
                _ => return Self(None),
            }
        }
    }
}

/// Returns the value at the path; `None` when there is none, when no sample can hold it, or when the text before it is
/// malformed.
pub(super) fn find<'a>(json: &'a [u8], path: &Path) -> Option<JsonValue<'a>> {
    let steps = path.0.as_deref()?;
    match (Walk { json, at: 0 }).value(Some(steps), 0) {
        Some(Descent::Found(found)) => Some(found),
        Some(Descent::Nothing | Descent::Unusable) | None => None,
    }
}

/// The result of passing a value.
enum Descent<'a> {
    Nothing,
    Found(JsonValue<'a>),
    /// The value was found, but is null or an object.
    Unusable,
}

struct Walk<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.json.get(self.at) {
            self.at += 1;
        }
        self.json.get(self.at).copied()
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// Passes the next value; `None` when the text is malformed. `path`: the remaining steps, if the value is on the
    /// path.
    fn value(&mut self, path: Option<&[PathStep]>, depth: usize) -> Option<Descent<'a>> {
        let is_wanted = path.is_some_and(<[PathStep]>::is_empty);
        let start = (self.peek()?, self.at);
        let found = match start.0 {
            b'{' => return self.object(path, depth),
            b'[' => return self.array(path, depth),
            b'"' => JsonValue::Text(self.string()?),
            b't' => self.word(b"true", JsonValue::Bool(true))?,
            b'f' => self.word(b"false", JsonValue::Bool(false))?,
            b'n' => {
                self.word(b"null", JsonValue::Bool(false))?;
                return Some(if is_wanted { Descent::Unusable } else { Descent::Nothing });
            }
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let rest = &self.json[self.at..];
                let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                self.at += length;
                JsonValue::Number(&rest[..length])
            }
            _ => return None,
        };
        Some(if is_wanted { Descent::Found(found) } else { Descent::Nothing })
    }

    fn word(&mut self, word: &[u8], found: JsonValue<'a>) -> Option<JsonValue<'a>> {
        self.json[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            found
        })
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at + 1;
        let mut at = start;
        loop {
            at += memchr::memchr2(b'"', b'\\', self.json.get(at..)?)?;
            if self.json[at] == b'"' {
                self.at = at + 1;
                return Some(&self.json[start..at]);
            }
            at += 2;
        }
    }

    fn object(&mut self, path: Option<&[PathStep]>, depth: usize) -> Option<Descent<'a>> {
        if depth == MOST_DEPTH {
            return None;
        }
        if path.is_some_and(<[PathStep]>::is_empty) {
            return Some(Descent::Unusable);
        }
        self.at += 1;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(Descent::Nothing);
        }
        loop {
            (self.peek()? == b'"').then_some(())?;
            let key = self.string()?;
            self.take(b':')?;
            let rest = path.and_then(|path| match path.split_first() {
                Some((PathStep::Key(wanted), rest)) if wanted == key => Some(rest),
                _ => None,
            });
            match self.value(rest, depth + 1)? {
                Descent::Nothing => {}
                found => return Some(found),
            }
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(Descent::Nothing);
                }
                _ => return None,
            }
        }
    }

    fn array(&mut self, path: Option<&[PathStep]>, depth: usize) -> Option<Descent<'a>> {
        if depth == MOST_DEPTH {
            return None;
        }
        let is_wanted = path.is_some_and(<[PathStep]>::is_empty);
        let start = self.at;
        self.at += 1;
        let mut index = 0;
        let mut is_closed = self.peek()? == b']';
        while !is_closed {
            let rest = path.and_then(|path| match path.split_first() {
                Some((PathStep::Index(wanted), rest)) if *wanted == index => Some(rest),
                _ => None,
            });
            match self.value(rest, depth + 1)? {
                Descent::Nothing => {}
                found => return Some(found),
            }
            index += 1;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => is_closed = true,
                _ => return None,
            }
        }
        self.at += 1;
        Some(if is_wanted { Descent::Found(JsonValue::Array(&self.json[start..self.at])) } else { Descent::Nothing })
    }
}
