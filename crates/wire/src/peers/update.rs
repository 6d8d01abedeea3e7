//! The data of an entry: data types, their encoding, and the dictionary of server names, each of which is sent once and
//! then replaced by its ID. Must never accept data that is not in the table's definition.

use super::Malformed;
use super::definition::{Definition, KeyKind};
use super::integer::{encode, take, take_bytes, take_u32, take_word};
use super::kind::{Form, form};

/// Number of server names in the dictionary of each direction of a connection.
pub const NAMES: u64 = 128;

/// One element of the data of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datum<'a> {
    /// A number of up to 64 bits.
    Number(u64),
    /// A rate.
    Rate {
        /// Milliseconds since the start of the current period.
        age: u32,
        /// Events in the current period.
        current: u32,
        /// Events in the previous period.
        previous: u32,
    },
    /// The name of a server, with the ID that replaces it from now on.
    Named {
        /// The ID, from 1.
        number: u64,
        name: &'a [u8],
    },
    /// The ID of a name that was sent before; 0 for no server.
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

/// Returns the encoded length of a number.
fn length_of(number: u64) -> u64 {
    let mut out = Vec::with_capacity(super::integer::LONGEST);
    encode(&mut out, number);
    out.len() as u64
}

/// The optional fields that an update contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpdateFields {
    /// The update ID.
    pub number: bool,
    /// The remaining lifetime.
    pub left: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update<'a> {
    /// The update ID; `None` for the last one plus one.
    pub number: Option<u32>,
    /// Remaining lifetime of the entry in milliseconds; `None` for that of the table.
    pub left: Option<u32>,
    pub key: &'a [u8],
    /// Data type, element and value, in ascending order.
    pub data: Vec<(u8, u32, Datum<'a>)>,
}

impl<'a> Update<'a> {
    /// Appends the payload of the message, without its length.
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

    /// Parses the payload of the message, without its length, for the table defined by `definition`.
    ///
    /// # Errors
    /// The payload is not a valid update of that table.
    pub fn decode(mut bytes: &'a [u8], fields: UpdateFields, definition: &Definition) -> Result<Self, Malformed> {
        let number = if fields.number { Some(take_word(&mut bytes)?) } else { None };
        let left = if fields.left { Some(take_word(&mut bytes)?) } else { None };
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
