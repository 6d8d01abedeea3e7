//! Prints one value of a line: as text, as JSON or as CBOR (configuration manual, section 8.2.6; RFC 8259, RFC 8949).
//! The tables of aliases and the expressions supply the value, this file its representation. Must never depend on a
//! particular alias.

use super::escape::{Classes, Flags, encoded};
use super::number::{hexadecimal, signed, three};
use super::{cbor, json};
use crate::sample::{Context, Type, Value, cast};

/// The representation of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As text.
    Plain,
    /// `+json`.
    Json,
    /// `+cbor`.
    Cbor,
}

/// The output type of `%(name:type)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cast {
    /// The value's own type.
    #[default]
    Own,
    /// `str`.
    Str,
    /// `sint`.
    Int,
    /// `bool`.
    Bool,
    /// `raw`: unencoded.
    Raw,
}

/// Prints one value.
pub struct Printer<'o> {
    /// The output buffer.
    pub out: &'o mut Vec<u8>,
    pub flags: Flags,
    pub form: Form,
    pub cast: Cast,
}

impl<'o> Printer<'o> {
    /// Creates a printer of plain text.
    pub fn plain(out: &'o mut Vec<u8>, flags: Flags) -> Self {
        Self { out, flags, form: Form::Plain, cast: Cast::Own }
    }

    /// Prints a number.
    pub fn number(&mut self, number: i64) {
        match (self.form, self.cast) {
            (Form::Plain, _) => signed(self.out, number),
            (Form::Json, Cast::Str) => {
                self.out.push(b'"');
                signed(self.out, number);
                self.out.push(b'"');
            }
            (Form::Json, Cast::Bool) => self.boolean(number != 0),
            (Form::Json, _) => signed(self.out, number),
            (Form::Cbor, Cast::Bool) => self.boolean(number != 0),
            (Form::Cbor, _) => cbor::integer(self.out, number),
        }
    }

    /// Prints a count.
    pub fn count(&mut self, number: impl Into<u64>) {
        self.number(i64::try_from(number.into()).unwrap_or(i64::MAX));
    }

    /// Prints a number; in plain text a "+" marks one that may still grow.
    pub fn growing(&mut self, number: i64, grows: bool) {
        if grows && self.form == Form::Plain {
            self.out.push(b'+');
        }
        self.number(number);
    }

    /// Prints a number; with [`Flags::HEX`] in hexadecimal with at least that many digits.
    pub fn number_or_hexadecimal(&mut self, number: u64, width: usize) {
        if self.flags.contains(Flags::HEX) {
            self.word(|out| hexadecimal(out, number, width));
        } else {
            self.count(number);
        }
    }

    /// Prints milliseconds within a second, in plain text with three digits.
    pub fn millis(&mut self, millis: u32) {
        if self.form == Form::Plain && !self.flags.contains(Flags::HEX) {
            three(self.out, millis);
        } else {
            self.number_or_hexadecimal(millis.into(), 2);
        }
    }

    fn boolean(&mut self, flag: bool) {
        match self.form {
            Form::Json => self.out.extend_from_slice(if flag { b"true" } else { b"false" }),
            Form::Cbor => cbor::boolean(self.out, flag),
            Form::Plain => self.out.push(b'0' + u8::from(flag)),
        }
    }

    /// Prints text that needs neither quotes nor escapes: dates, digits.
    pub fn word(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self.form {
            Form::Plain => write(self.out),
            Form::Json => {
                self.out.push(b'"');
                write(self.out);
                self.out.push(b'"');
            }
            Form::Cbor => cbor::measured(self.out, cbor::TEXT, write),
        }
    }

    /// Prints such text, between quotes with [`Flags::QUOTE`].
    pub fn quoted_word(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let quotes = self.form == Form::Plain && self.flags.contains(Flags::QUOTE);
        if quotes {
            self.out.push(b'"');
        }
        self.word(write);
        if quotes {
            self.out.push(b'"');
        }
    }

    /// Prints a name, cookie or identifier; an empty one counts as missing.
    pub fn name(&mut self, name: Option<&[u8]>) {
        match (name.filter(|name| !name.is_empty()), self.form) {
            (None, _) => self.absent(),
            (Some(name), Form::Plain) => self.text(|text| text.put(name, Classes::NAME)),
            (Some(name), Form::Json) => json::string(self.out, name, true),
            (Some(name), Form::Cbor) => cbor::measured(self.out, cbor::TEXT, |out| {
                encoded(out, name, Classes::NAME, Flags::NONE);
            }),
        }
    }

    /// Prints text in pieces.
    pub fn text(&mut self, write: impl FnOnce(&mut Pieces<'_>)) {
        match self.form {
            Form::Plain => {
                let quotes = self.flags.contains(Flags::QUOTE);
                if quotes {
                    self.out.push(b'"');
                }
                write(&mut Pieces { out: self.out, flags: self.flags, chunked: false });
                if quotes {
                    self.out.push(b'"');
                }
            }
            Form::Json => {
                self.out.push(b'"');
                let start = self.out.len();
                write(&mut Pieces { out: self.out, flags: Flags::NONE, chunked: false });
                json::escape_from(self.out, start);
                self.out.push(b'"');
            }
            Form::Cbor => {
                self.out.push(cbor::CHUNKED_TEXT);
                write(&mut Pieces { out: self.out, flags: Flags::NONE, chunked: true });
                self.out.push(cbor::BREAK);
            }
        }
    }

    /// Prints a missing value.
    pub fn absent(&mut self) {
        match self.form {
            Form::Json => self.out.extend_from_slice(b"\"\""),
            Form::Cbor => self.out.push(cbor::NULL),
            Form::Plain if self.flags.contains(Flags::QUOTE) => self.out.extend_from_slice(b"\"\""),
            Form::Plain if self.flags.contains(Flags::MANDATORY) => self.out.push(b'-'),
            Form::Plain => {}
        }
    }

    /// Prints the list of captures when none is declared; nothing in plain text.
    pub fn nothing(&mut self) {
        match self.form {
            Form::Json => self.out.extend_from_slice(b"null"),
            Form::Cbor => self.out.push(cbor::NULL),
            Form::Plain => {}
        }
    }

    /// Prints a list of texts.
    pub fn list<'t>(&mut self, texts: impl Iterator<Item = Option<&'t [u8]>>) {
        match self.form {
            Form::Json => self.out.push(b'['),
            Form::Cbor => self.out.push(cbor::LIST),
            Form::Plain => {}
        }
        for (place, text) in texts.enumerate() {
            if place > 0 {
                self.out.extend_from_slice(match self.form {
                    Form::Json => b", ",
                    Form::Plain => b" ",
                    Form::Cbor => b"",
                });
            }
            let missing: &[u8] = if self.flags.contains(Flags::QUOTE) { b"" } else { b"-" };
            self.text(|out| out.put(text.unwrap_or(missing), Classes::FIELD));
        }
        match self.form {
            Form::Json => self.out.push(b']'),
            Form::Cbor => self.out.push(cbor::BREAK),
            Form::Plain => {}
        }
    }

    /// Prints a sample in an encoding. False: it was printed unencoded.
    pub fn sample<'a>(&mut self, context: &Context<'a>, value: Option<Value<'a>>) -> bool {
        let kind = match self.cast {
            Cast::Own => None,
            Cast::Str => Some(Type::Str),
            Cast::Int => Some(Type::Int),
            Cast::Bool => Some(Type::Bool),
            Cast::Raw => Some(Type::Bin),
        };
        let value = value.and_then(|value| match kind {
            Some(kind) => cast(value.kind(), kind).and_then(|cast| cast(context, value)),
            None => Some(value),
        });
        if self.cast == Cast::Raw {
            self.out.extend_from_slice(value.and_then(|value| value.bytes()).unwrap_or_default());
            return false;
        }
        // The value has been cast to the requested type.
        self.cast = Cast::Own;
        match value {
            None => self.absent(),
            Some(Value::Bool(flag)) => self.boolean(flag),
            Some(Value::Int(number)) => self.number(number),
            Some(Value::Bin(bytes)) if self.form == Form::Cbor => {
                self.out.push(cbor::CHUNKED_BYTES);
                cbor::measured(self.out, cbor::BYTES, |out| out.extend_from_slice(bytes));
                self.out.push(cbor::BREAK);
            }
            Some(other) => match (context.as_text(other), self.form) {
                (None | Some(b""), _) => self.absent(),
                (Some(text), Form::Cbor) => {
                    cbor::measured(self.out, cbor::TEXT, |out| out.extend_from_slice(text));
                }
                (Some(text), _) => json::string(self.out, text, false),
            },
        }
        true
    }
}

/// A text built from pieces.
pub struct Pieces<'o> {
    out: &'o mut Vec<u8>,
    flags: Flags,
    /// Each piece is a CBOR chunk.
    chunked: bool,
}

impl Pieces<'_> {
    /// Appends a text, encoding the bytes of those classes.
    pub fn put(&mut self, text: &[u8], classes: Classes) {
        if !self.chunked {
            return encoded(self.out, text, classes, self.flags);
        }
        let mut rest = text;
        while let Some(place) = rest.iter().position(|byte| classes.has(*byte)) {
            let literal = |out: &mut Vec<u8>| out.extend_from_slice(&rest[..place]);
            cbor::measured(self.out, cbor::TEXT, literal);
            let byte = &rest[place..=place];
            cbor::measured(self.out, cbor::TEXT, |out| encoded(out, byte, classes, Flags::NONE));
            rest = &rest[place + 1..];
        }
        if !rest.is_empty() {
            cbor::measured(self.out, cbor::TEXT, |out| out.extend_from_slice(rest));
        }
    }

    /// Appends texts separated by spaces, as one piece.
    pub fn put_joined<'t>(&mut self, texts: impl Iterator<Item = &'t [u8]>, classes: Classes) {
        if self.chunked {
            let whole: Vec<&[u8]> = texts.collect();
            return self.put(&whole.join(&b' '), classes);
        }
        for (place, text) in texts.enumerate() {
            if place > 0 {
                self.out.push(b' ');
            }
            self.put(text, classes);
        }
    }

    /// Appends a byte unencoded.
    pub fn mark(&mut self, byte: u8) {
        if self.chunked {
            cbor::measured(self.out, cbor::TEXT, |out| out.push(byte));
        } else {
            self.out.push(byte);
        }
    }
}
