//! Prints one value of a line: as text, as JSON or as CBOR (configuration manual, section 8.2.6; RFC 8259, RFC 8949). The
//! tables of aliases and the expressions say what the value is, this says how it looks. Must never know an alias.

use super::escape::{Classes, Flags, encoded};
use super::number::{hexadecimal, signed, three};
use super::{cbor, json};
use crate::sample::{Context, Type, Value, cast};

/// How values look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As text.
    Plain,
    /// `+json`.
    Json,
    /// `+cbor`.
    Cbor,
}

/// The type that `%(name:type)` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cast {
    /// None: the value's own.
    #[default]
    Own,
    /// `str`.
    Str,
    /// `sint`.
    Int,
    /// `bool`.
    Bool,
    /// `raw`: as it is, without an encoding.
    Raw,
}

/// Prints one value.
pub struct Printer<'o> {
    /// Where to.
    pub out: &'o mut Vec<u8>,
    /// How.
    pub flags: Flags,
    /// Which form.
    pub form: Form,
    /// Which type.
    pub cast: Cast,
}

impl<'o> Printer<'o> {
    /// A printer of plain text.
    pub fn plain(out: &'o mut Vec<u8>, flags: Flags) -> Self {
        Self { out, flags, form: Form::Plain, cast: Cast::Own }
    }

    /// A number.
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

    /// A count.
    pub fn count(&mut self, number: impl Into<u64>) {
        self.number(i64::try_from(number.into()).unwrap_or(i64::MAX));
    }

    /// A number that will still grow: plain text tells so by a "+".
    pub fn growing(&mut self, number: i64, grows: bool) {
        if grows && self.form == Form::Plain {
            self.out.push(b'+');
        }
        self.number(number);
    }

    /// A number that [`Flags::HEX`] prints with that many digits at least.
    pub fn number_or_hexadecimal(&mut self, number: u64, width: usize) {
        if self.flags.contains(Flags::HEX) {
            self.word(|out| hexadecimal(out, number, width));
        } else {
            self.count(number);
        }
    }

    /// Milliseconds within a second, which plain text prints with three digits.
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

    /// Text that needs neither quotes nor escapes: dates, digits.
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

    /// The same between quotes under [`Flags::QUOTE`].
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

    /// A name, cookie or identifier; what is empty is missing.
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

    /// Text in pieces.
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

    /// What stands for a missing value.
    pub fn absent(&mut self) {
        match self.form {
            Form::Json => self.out.extend_from_slice(b"\"\""),
            Form::Cbor => self.out.push(cbor::NULL),
            Form::Plain if self.flags.contains(Flags::QUOTE) => self.out.extend_from_slice(b"\"\""),
            Form::Plain if self.flags.contains(Flags::MANDATORY) => self.out.push(b'-'),
            Form::Plain => {}
        }
    }

    /// A list that has no entries because there is no place for any; plain text tells nothing of it.
    pub fn nothing(&mut self) {
        match self.form {
            Form::Json => self.out.extend_from_slice(b"null"),
            Form::Cbor => self.out.push(cbor::NULL),
            Form::Plain => {}
        }
    }

    /// A list of texts.
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

    /// A sample under an encoding. False: it was printed as it is, which the encoding has no part in.
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
        // The type that was asked for has been given.
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

/// Text that is put together.
pub struct Pieces<'o> {
    out: &'o mut Vec<u8>,
    flags: Flags,
    /// Each piece is a chunk of CBOR.
    chunked: bool,
}

impl Pieces<'_> {
    /// Appends a text of which bytes of those classes are encoded.
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

    /// Appends texts as if they were one, with a space between two of them.
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

    /// Appends a byte as it is.
    pub fn mark(&mut self, byte: u8) {
        if self.chunked {
            cbor::measured(self.out, cbor::TEXT, |out| out.push(byte));
        } else {
            self.out.push(byte);
        }
    }
}
