//! The peers protocol, which synchronizes stick tables between instances: version 2.0 as in HAProxy's
//! `doc/peers-v2.0.txt`, and the additions of 2.1 as observed from HAProxy 3.5: the lifetime of a table's entries, the
//! periods of its rates and the lengths of its arrays in definitions, updates with an expiration, server names replaced
//! by IDs, and heartbeats. Owns the encoding of its messages; must never know a table or keep an entry.

mod definition;
mod hello;
mod integer;
mod kind;
mod message;
mod update;

pub use definition::{Definition, KeyKind, Store};
pub use hello::{Hello, Status, read_line};
pub use integer::{decode as decode_integer, encode as encode_integer};
pub use kind::{Form, form, is_array};
pub use message::{Control, Frame, Message, ack, decode, definition, switch, update};
pub use update::{Datum, NAMES, Update, UpdateFields};

/// Why bytes are not a valid message: an error message is sent to the peer and the connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// An integer exceeds 64 bits.
    Integer,
    /// A message is longer than a buffer.
    TooLong,
    /// An unknown class or type.
    Unknown,
    /// The contents are longer or shorter than the message.
    Length,
    /// A value outside of its valid range.
    Value,
}
