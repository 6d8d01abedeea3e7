//! Splits a line into words: blanks, comments, quotes, escapes and variables (configuration manual, sections 2.2 and
//! 2.3). Must never interpret a keyword or look beyond its line.

use std::borrow::Cow;

/// Maximum number of words of a line, as in HAProxy.
pub const MAX_WORDS: usize = 64;
/// Maximum number of bytes that variables may add to a line.
pub const MAX_EXPANSION: usize = 1 << 20;

/// One word with the place of each of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Token {
    pub text: Vec<u8>,
    /// Offset in the line that each byte comes from. All bytes of a variable's value share the offset of the `$`.
    pub places: Vec<u32>,
    /// Offset of its first byte, including quotes.
    pub start: u32,
    /// Offset after its last byte, including quotes.
    pub end: u32,
    /// Whether any part of it was quoted.
    pub quoted: bool,
}

/// Error in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LexErrorKind {
    /// A quote that is never closed.
    UnmatchedQuote,
    /// `${` without `}`, or with an unexpected character in it.
    UnmatchedBrace,
    /// A variable's name starts with a digit or another forbidden character.
    ForbiddenName,
    /// A variable's name starts with a dot and is not a pseudo-variable.
    UnknownPseudoVariable,
    /// `[` after a variable's name that is not `[*]`.
    InvalidExpansion,
    /// `\x` without two hexadecimal digits.
    InvalidHexadecimal,
    /// More than [`MAX_WORDS`] words.
    TooManyWords {
        /// The last word that fits.
        last: Vec<u8>,
        /// Offset of that word.
        at: usize,
    },
    /// Variables add more than [`MAX_EXPANSION`] bytes.
    TooLarge,
}

/// An error and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LexError {
    pub kind: LexErrorKind,
    /// Offset of the first wrong byte.
    pub start: usize,
    /// Offset after the last wrong byte.
    pub end: usize,
}

impl LexError {
    /// Returns HAProxy's sentence.
    pub fn message(&self) -> String {
        let position = self.start + 1;
        match &self.kind {
            LexErrorKind::UnmatchedQuote => format!("unmatched quote at position {position}:"),
            LexErrorKind::UnmatchedBrace => {
                format!("unmatched brace in environment variable name at position {position}:")
            }
            LexErrorKind::ForbiddenName | LexErrorKind::UnknownPseudoVariable => {
                format!("forbidden first char in environment variable name at position {position}:")
            }
            LexErrorKind::InvalidExpansion => {
                format!("truncated or invalid word expansion sequence at position {position}:")
            }
            LexErrorKind::InvalidHexadecimal => {
                format!("truncated or invalid hexadecimal sequence at position {position}:")
            }
            LexErrorKind::TooManyWords { last, at } => format!(
                "too many words, truncating after word {MAX_WORDS}, position {}: <{}>.",
                at + 1,
                crate::text::from_bytes(last)
            ),
            LexErrorKind::TooLarge => {
                format!(
                    "environment variables add more than {MAX_EXPANSION} bytes to this line at position {position}:"
                )
            }
        }
    }

    /// Returns a hint that may help.
    pub fn hint(&self) -> &'static str {
        match self.kind {
            LexErrorKind::UnmatchedQuote => {
                "close the quote on the same line, or write \\\" or \\' if the quote itself is meant"
            }
            LexErrorKind::UnmatchedBrace => "write \"${NAME}\", \"${NAME-default}\" or \"${NAME[*]}\"",
            LexErrorKind::ForbiddenName => {
                "a name starts with a letter or '_'; write \\$ or use single quotes if the dollar sign itself is meant"
            }
            LexErrorKind::InvalidExpansion => "only [*] may stand behind the name: \"${NAME[*]}\"",
            LexErrorKind::InvalidHexadecimal => "write \\x and two hexadecimal digits, like \\x0a",
            LexErrorKind::UnknownPseudoVariable => "the names that start with a dot are .FILE, .LINE and .SECTION",
            LexErrorKind::TooManyWords { .. } => "put long lists into a file, or repeat the keyword on several lines",
            LexErrorKind::TooLarge => "a variable is expanded far too often here",
        }
    }
}

/// Lookup of variables by name. Names with a leading dot are pseudo-variables.
pub trait Variables {
    /// Returns the value; `None` if the variable does not exist.
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>>;
}

/// Treatment of comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comments {
    /// `#` starts a comment: lines of a file.
    Skipped,
    /// `#` is an ordinary character: conditions on the command line.
    Kept,
}

/// Splits a line into words. A carriage return or a line feed ends the line, also inside a quote, which is an error;
/// after a blank it is a blank too, as in HAProxy.
///
/// # Errors
/// The first error in the line.
pub fn lex(line: &[u8], variables: &dyn Variables, comments: Comments) -> Result<Vec<Token>, LexError> {
    let mut lexer = Lexer { line, variables, comments, at: 0, words: Vec::new(), word: None, quote: None, expanded: 0 };
    lexer.run()?;
    Ok(lexer.words)
}

/// Whether an unprotected byte separates words.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0B | 0x0C)
}

const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

struct Lexer<'a> {
    line: &'a [u8],
    variables: &'a dyn Variables,
    comments: Comments,
    at: usize,
    words: Vec<Token>,
    /// The word that is being built; `None` between words.
    word: Option<Token>,
    /// Offset of the open quote.
    quote: Option<usize>,
    /// Bytes that variables have added so far.
    expanded: usize,
}

impl Lexer<'_> {
    fn run(&mut self) -> Result<(), LexError> {
        self.skip_blanks();
        while let Some(byte) = self.peek(0) {
            match byte {
                _ if is_line_end(byte) => break,
                b'#' if self.comments == Comments::Skipped => break,
                b'"' => self.weak()?,
                b'\'' => self.strong()?,
                b'\\' => self.escape(false)?,
                _ if is_blank(byte) => {
                    self.finish_word();
                    self.skip_blanks();
                }
                _ => {
                    self.push(byte, self.at)?;
                    self.at += 1;
                }
            }
        }
        self.finish_word();
        Ok(())
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.line.get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek(0).is_some_and(|byte| is_blank(byte) || is_line_end(byte)) {
            self.at += 1;
        }
    }

    /// Returns the word that is being built, and starts one if there is none.
    fn word(&mut self, from: usize) -> Result<&mut Token, LexError> {
        if self.word.is_none() && self.words.len() == MAX_WORDS {
            let last = self.words.last().cloned().unwrap_or_default();
            let kind = LexErrorKind::TooManyWords { last: last.text, at: last.start as usize };
            return Err(LexError { kind, start: self.quote.unwrap_or(from), end: self.line.len() });
        }
        let start = offset(self.quote.unwrap_or(from));
        let word = self.word.get_or_insert_with(|| Token { start, end: start, ..Token::default() });
        word.quoted |= self.quote.is_some();
        Ok(word)
    }

    fn push(&mut self, byte: u8, from: usize) -> Result<(), LexError> {
        let word = self.word(from)?;
        word.text.push(byte);
        word.places.push(offset(from));
        word.end = offset(from + 1);
        Ok(())
    }

    fn finish_word(&mut self) {
        self.words.extend(self.word.take());
    }

    /// Reads `'…'`: nothing is interpreted.
    fn strong(&mut self) -> Result<(), LexError> {
        let open = self.at;
        let stop = self.line[open + 1..].iter().position(|&byte| byte == b'\'' || is_line_end(byte));
        let length = stop.filter(|&length| self.line[open + 1 + length] == b'\'');
        let close = open
            + 1
            + length.ok_or_else(|| LexError { kind: LexErrorKind::UnmatchedQuote, start: open, end: open + 1 })?;
        self.quote = Some(open);
        self.word(open)?;
        for at in open + 1..close {
            self.push(self.line[at], at)?;
        }
        self.word(open)?.end = offset(close + 1);
        self.quote = None;
        self.at = close + 1;
        Ok(())
    }

    /// Reads `"…"`: escapes and variables are interpreted.
    fn weak(&mut self) -> Result<(), LexError> {
        let open = self.at;
        // `""` is an empty word, but `"${LIST[*]}"` with an empty list is no word.
        let mut lists = false;
        self.quote = Some(open);
        self.at += 1;
        loop {
            let Some(byte) = self.peek(0).filter(|&byte| !is_line_end(byte)) else {
                return Err(LexError { kind: LexErrorKind::UnmatchedQuote, start: open, end: open + 1 });
            };
            match byte {
                b'"' => break,
                b'\\' => self.escape(true)?,
                b'$' => lists |= self.variable()?,
                _ => {
                    self.push(byte, self.at)?;
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        if self.word.is_some() || !lists {
            self.word(open)?.end = offset(self.at);
        }
        self.quote = None;
        Ok(())
    }

    /// Reads a backslash, inside double quotes or outside of quotes.
    fn escape(&mut self, quoted: bool) -> Result<(), LexError> {
        let from = self.at;
        let (byte, length) = match self.peek(1) {
            Some(byte @ (b' ' | b'\\' | b'\'' | b'"')) => (byte, 2),
            Some(b'#') if self.comments == Comments::Skipped => (b'#', 2),
            Some(b'$') if quoted => (b'$', 2),
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b't') => (b'\t', 2),
            Some(b'x') => {
                let digit = |ahead| self.peek(ahead).and_then(base::hex::digit);
                let (Some(high), Some(low)) = (digit(2), digit(3)) else {
                    let end = self.line.len().min(from + 4);
                    return Err(LexError { kind: LexErrorKind::InvalidHexadecimal, start: from, end });
                };
                (high << 4 | low, 4)
            }
            // Not an escape sequence: the backslash is kept.
            _ => (b'\\', 1),
        };
        self.push(byte, from)?;
        self.at += length;
        if let Some(word) = &mut self.word {
            word.end = offset(self.at);
        }
        Ok(())
    }

    /// Reads `$NAME`, `${NAME}`, `${NAME-default}`, `${NAME[*]}`. Returns whether it was a list.
    fn variable(&mut self) -> Result<bool, LexError> {
        let reference = Reference::parse(self.line, self.at)?;
        let name = String::from_utf8_lossy(reference.name);
        let value = self.variables.value(&name);
        if value.is_none() && name.starts_with('.') {
            let end = reference.name_at + reference.name.len();
            return Err(LexError { kind: LexErrorKind::UnknownPseudoVariable, start: reference.name_at, end });
        }
        let value = value.or(reference.default.map(Cow::Borrowed)).unwrap_or_default();
        self.expanded += value.len();
        if self.expanded > MAX_EXPANSION {
            return Err(LexError { kind: LexErrorKind::TooLarge, start: self.at, end: reference.end });
        }
        if !reference.list {
            self.word(self.at)?;
        }
        for &byte in value.iter() {
            if reference.list && (is_blank(byte) || is_line_end(byte)) {
                self.finish_word();
            } else {
                self.push(byte, self.at)?;
                if let Some(word) = &mut self.word {
                    word.end = offset(reference.end);
                }
            }
        }
        self.at = reference.end;
        Ok(reference.list)
    }
}

/// Saturates: lines longer than `u32::MAX` do not occur, since files are limited.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Syntax of a reference to a variable.
struct Reference<'a> {
    name: &'a [u8],
    name_at: usize,
    list: bool,
    default: Option<&'a [u8]>,
    /// Offset after it.
    end: usize,
}

impl<'a> Reference<'a> {
    fn parse(line: &'a [u8], dollar: usize) -> Result<Self, LexError> {
        let byte = |at: usize| line.get(at).copied();
        let error = |kind, start, end: usize| Err(LexError { kind, start, end: end.min(line.len()).max(start) });
        let braced = byte(dollar + 1) == Some(b'{');
        let name_at = dollar + 1 + usize::from(braced);
        let pseudo = byte(name_at) == Some(b'.');
        if !pseudo && !byte(name_at).is_some_and(|first| first.is_ascii_alphabetic() || first == b'_') {
            return error(LexErrorKind::ForbiddenName, name_at, name_at + 1);
        }
        let mut end = name_at + 1;
        while byte(end).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            end += 1;
        }
        let mut reference = Self { name: &line[name_at..end], name_at, list: false, default: None, end };
        if !braced {
            return Ok(reference);
        }
        if byte(end) == Some(b'[') {
            if !line[end..].starts_with(b"[*]") {
                return error(LexErrorKind::InvalidExpansion, end, end + 3);
            }
            reference.list = true;
            end += 3;
        }
        if byte(end) == Some(b'-') {
            let length = line[end + 1..].iter().position(|&byte| byte == b'}');
            let Some(length) = length else { return error(LexErrorKind::UnmatchedBrace, dollar + 1, line.len()) };
            reference.default = Some(&line[end + 1..end + 1 + length]);
            end += 1 + length;
        }
        if byte(end) != Some(b'}') {
            return error(LexErrorKind::UnmatchedBrace, dollar + 1, end);
        }
        reference.end = end + 1;
        Ok(reference)
    }
}

#[cfg(test)]
mod tests;
