//! Table definitions, which a peer sends before the entries of a table. Must never exceed the limits of a table.

use super::Malformed;
use super::integer::{encode, take, take_bytes, take_u32};
use super::kind::{Form, KINDS, form, is_array};

/// Maximum length of a table's name in bytes.
const LONGEST_NAME: usize = 255;
/// Maximum number of elements of an array.
const MOST_ELEMENTS: u32 = 100;
/// Maximum length of a key in bytes.
const LONGEST_KEY: u32 = 1 << 20;

/// Key types, by their protocol numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum KeyKind {
    Integer = 2,
    Ipv4 = 4,
    Ipv6 = 5,
    Text = 6,
    Binary = 7,
}

impl KeyKind {
    fn of_number(number: u64) -> Option<Self> {
        [Self::Integer, Self::Ipv4, Self::Ipv6, Self::Text, Self::Binary]
            .into_iter()
            .find(|kind| *kind as u64 == number)
    }
}

/// A data type that a table stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Store {
    /// Protocol number of the type.
    pub kind: u8,
    /// Number of elements of an array; 1 for other types.
    pub elements: u32,
    /// Period of a rate in milliseconds; 0 for other types.
    pub period: u32,
}

/// The definition of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The sender's ID of the table.
    pub id: u64,
    pub name: Vec<u8>,
    pub key: KeyKind,
    /// Length of a key in bytes; for strings the maximum, including the final NUL.
    pub key_length: u32,
    /// Data types of an entry, in ascending order.
    pub stores: Vec<Store>,
    /// Lifetime of an entry in milliseconds.
    pub expire: u64,
}

impl Definition {
    /// Appends the payload of the message, without its length.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode(out, self.id);
        encode(out, self.name.len() as u64);
        out.extend_from_slice(&self.name);
        encode(out, self.key as u64);
        encode(out, self.key_length.into());
        encode(out, self.stores.iter().fold(0, |bits, store| bits | 1 << store.kind));
        encode(out, self.expire);
        for store in &self.stores {
            let rate = form(store.kind) == Form::Rate;
            if is_array(store.kind) || rate {
                encode(out, store.kind.into());
            }
            if is_array(store.kind) {
                encode(out, store.elements.into());
            }
            if rate {
                encode(out, store.period.into());
            }
        }
    }

    /// Parses the payload of the message, without its length. Values that a peer omits, as one of version 2.0 may, are
    /// 0.
    ///
    /// # Errors
    /// The payload is not a valid definition.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, Malformed> {
        let id = take(&mut bytes)?;
        let length = take(&mut bytes)?;
        let name = take_bytes(&mut bytes, length)?;
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(Malformed::Value);
        }
        let key = KeyKind::of_number(take(&mut bytes)?).ok_or(Malformed::Value)?;
        let key_length = take_u32(&mut bytes)?;
        if key_length > LONGEST_KEY {
            return Err(Malformed::Value);
        }
        let bits = take(&mut bytes)?;
        // An unknown type cannot be skipped, since its length is unknown.
        if bits >> KINDS != 0 {
            return Err(Malformed::Value);
        }
        let expire = if bytes.is_empty() { 0 } else { take(&mut bytes)? };
        let kinds = (0..KINDS).filter(|kind| bits >> kind & 1 == 1);
        let mut stores: Vec<Store> = kinds.map(|kind| Store { kind, elements: 1, period: 0 }).collect();
        while !bytes.is_empty() {
            let number = take(&mut bytes)?;
            let store = stores.iter_mut().find(|store| u64::from(store.kind) == number).ok_or(Malformed::Value)?;
            if is_array(store.kind) {
                store.elements = take_u32(&mut bytes)?;
                if store.elements == 0 || store.elements > MOST_ELEMENTS {
                    return Err(Malformed::Value);
                }
            }
            if form(store.kind) == Form::Rate {
                store.period = take_u32(&mut bytes)?;
            }
        }
        Ok(Self { id, name: name.to_vec(), key, key_length, stores, expire })
    }
}
