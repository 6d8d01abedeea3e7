//! What a table is, as a peer tells it before it tells of its entries. Must never take more than a table may have.

use super::Malformed;
use super::integer::{encode, take, take_bytes, take_u32};
use super::update::{Form, KINDS, form, is_array};

/// Bytes of a table's name at most.
const LONGEST_NAME: usize = 255;
/// Elements of an array at most.
const MOST_ELEMENTS: u32 = 100;
/// Bytes of a key at most.
const LONGEST_KEY: u32 = 1 << 20;

/// Types of keys, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
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

/// A kind of data that a table stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Store {
    /// Its number.
    pub kind: u8,
    /// Elements of an array; 1 otherwise.
    pub elements: u32,
    /// The period of a rate in milliseconds; 0 otherwise.
    pub period: u32,
}

/// What a table is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The sender's number for it.
    pub id: u64,
    /// Its name.
    pub name: Vec<u8>,
    /// Type of its keys.
    pub key: KeyKind,
    /// Bytes of a key; of a text: with the NUL behind it, at most.
    pub key_length: u32,
    /// What an entry holds, in the order of the kinds.
    pub stores: Vec<Store>,
    /// Milliseconds that an entry stays.
    pub expire: u64,
}

impl Definition {
    /// Appends what stands behind the message's length.
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

    /// Reads what stands behind the message's length. What a peer does not tell, as one of version 2.0 may, is 0.
    ///
    /// # Errors
    /// It is no definition.
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
        // What follows cannot be told apart from an unknown kind.
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
