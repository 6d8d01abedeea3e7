//! The peers protocol, by which instances share stick tables: version 2.0 as HAProxy's `doc/peers-v2.0.txt` tells it, and
//! what 2.1 adds, as HAProxy 3.5 was seen to send it: the life of a table's entries, the periods of its rates and the
//! lengths of its arrays in definitions, updates that tell how long an entry stays, the names of servers by number, and
//! heartbeats. Owns the coding of its messages; must never know a table or keep an entry.

mod definition;
mod hello;
mod integer;
mod message;
mod update;

pub use definition::{Definition, KeyKind, Store};
pub use hello::{Hello, Status, read_line};
pub use integer::{decode as decode_integer, encode as encode_integer};
pub use message::{Control, Frame, Message, ack, decode, definition, switch, update};
pub use update::{Datum, Form, NAMES, Update, form, is_array};

/// Why bytes are no message: the peer is told so, and left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// A number is longer than 64 bits.
    Integer,
    /// A message is longer than a buffer.
    TooLong,
    /// An unknown class or type.
    Unknown,
    /// What a message says is longer or shorter than the message.
    Length,
    /// A value that no instance can mean.
    Value,
}
