//! The data of an entry: which kinds there are, how each is written, and the names of servers, which are sent once and
//! then by number. Must never take data that the table's definition does not name.

use super::Malformed;
use super::definition::{Definition, KeyKind};
use super::integer::{encode, take, take_bytes, take_u32, take_word};

/// How many names of servers each side of a connection remembers.
pub const NAMES: u64 = 128;

/// How a kind of data is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A number of 32 bits.
    Number,
    /// A number of 64 bits.
    Large,
    /// A rate: the age of its period and the events of two.
    Rate,
    /// The name of a server.
    Server,
}

/// Kinds of data that are known, by their numbers: the bits of a definition.
pub const KINDS: u8 = 27;

/// How the kind of that number is written.
pub const fn form(kind: u8) -> Form {
    match kind {
        13 | 15 => Form::Large,
        3 | 5 | 8 | 10 | 12 | 14 | 16 | 18 | 21 | 24 | 26 => Form::Rate,
        19 => Form::Server,
        _ => Form::Number,
    }
}

/// Whether the kind of that number is an array.
pub const fn is_array(kind: u8) -> bool {
    matches!(kind, 22..=24)
}

/// One element of the data of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datum<'a> {
    /// A number; those of 32 bits too.
    Number(u64),
    /// A rate: how many milliseconds ago its period began, events in it, events of the one before.
    Rate {
        /// Milliseconds since the period began.
        age: u32,
        /// Events in it.
        current: u32,
        /// Events of the one before.
        previous: u32,
    },
    /// The name of a server, with the number that it is known by from now on.
    Named {
        /// Its number, from 1.
        number: u64,
        /// Its name.
        name: &'a [u8],
    },
    /// The number of a name that was told before; 0: no server.
    Known(u64),
}

impl Datum<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Number(number) => encode(out, number),
            Self::Rate { age, current, previous } => {
                for number in [age, current, previous] {
                    encode(out, number.into());
                }
            }
            Self::Known(0) => encode(out, 0),
            Self::Known(number) => {
                encode(out, length_of(number));
                encode(out, number);
            }
            Self::Named { number, name } => {
                let length = length_of(number) + length_of(name.len() as u64) + name.len() as u64;
                encode(out, length);
                encode(out, number);
                encode(out, name.len() as u64);
                out.extend_from_slice(name);
            }
        }
    }

    fn take<'a>(form: Form, bytes: &mut &'a [u8]) -> Result<Datum<'a>, Malformed> {
        Ok(match form {
            Form::Number => Datum::Number(take_u32(bytes)?.into()),
            Form::Large => Datum::Number(take(bytes)?),
            Form::Rate => Datum::Rate { age: take_u32(bytes)?, current: take_u32(bytes)?, previous: take_u32(bytes)? },
            Form::Server => {
                let length = take(bytes)?;
                let mut inner = take_bytes(bytes, length)?;
                if inner.is_empty() {
                    return Ok(Datum::Known(0));
                }
                let number = take(&mut inner)?;
                if number == 0 || number > NAMES {
                    return Err(Malformed::Value);
                }
                if inner.is_empty() {
                    return Ok(Datum::Known(number));
                }
                let length = take(&mut inner)?;
                let name = take_bytes(&mut inner, length)?;
                if !inner.is_empty() || name.is_empty() {
                    return Err(Malformed::Length);
                }
                Datum::Named { number, name }
            }
        })
    }
}

/// How many bytes a number takes.
fn length_of(number: u64) -> u64 {
    let mut out = Vec::with_capacity(super::integer::LONGEST);
    encode(&mut out, number);
    out.len() as u64
}

/// An update of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update<'a> {
    /// Its number; `None`: one more than the last.
    pub number: Option<u32>,
    /// Milliseconds that the entry stays; `None`: as long as the table says.
    pub left: Option<u32>,
    /// The key.
    pub key: &'a [u8],
    /// Its data, by kind and element, in their order.
    pub data: Vec<(u8, u32, Datum<'a>)>,
}

impl<'a> Update<'a> {
    /// Appends what stands behind the message's length.
    pub fn encode(&self, definition: &Definition, out: &mut Vec<u8>) {
        for word in [self.number, self.left].into_iter().flatten() {
            out.extend_from_slice(&word.to_be_bytes());
        }
        match definition.key {
            KeyKind::Text => {
                encode(out, self.key.len() as u64);
                out.extend_from_slice(self.key);
            }
            KeyKind::Integer => out.extend_from_slice(self.key),
            _ => {
                let length = (definition.key_length as usize).min(self.key.len());
                out.extend_from_slice(&self.key[..length]);
                out.resize(out.len() + definition.key_length as usize - length, 0);
            }
        }
        for (_, _, datum) in &self.data {
            datum.encode(out);
        }
    }

    /// Reads what stands behind the message's length, for the table that was defined last.
    ///
    /// # Errors
    /// It is no update of that table.
    pub fn decode(
        mut bytes: &'a [u8],
        (has_number, has_left): (bool, bool),
        definition: &Definition,
    ) -> Result<Self, Malformed> {
        let number = if has_number { Some(take_word(&mut bytes)?) } else { None };
        let left = if has_left { Some(take_word(&mut bytes)?) } else { None };
        let length = match definition.key {
            KeyKind::Text => take(&mut bytes)?,
            KeyKind::Integer => 4,
            _ => definition.key_length.into(),
        };
        let key = take_bytes(&mut bytes, length)?;
        let mut data = Vec::new();
        for store in &definition.stores {
            for element in 0..store.elements {
                data.push((store.kind, element, Datum::take(form(store.kind), &mut bytes)?));
            }
        }
        if bytes.is_empty() { Ok(Self { number, left, key, data }) } else { Err(Malformed::Length) }
    }
}
