//! Log formats (configuration manual, sections 8.2 to 8.6): the table of aliases, the predefined formats, custom ones
//! compiled from their text, and their rendering into bytes.
//!
//! A format is compiled once and rendered without allocating into a buffer that the caller reuses. Must never send a
//! line, read a clock or access a socket: all values of a line come from a [`Record`](crate::record::Record).

mod alias;
mod cbor;
mod compile;
mod connection;
mod date;
mod escape;
mod format;
mod http;
mod json;
mod number;
mod printer;
mod process;
mod purpose;
mod row;
mod timer;

pub use alias::aliases;
pub use compile::{FormatError, FormatErrorKind};
pub use connection::connection_error;
pub use date::with_millis as date_with_millis;
pub use escape::{FLAGS, FlagRow, Flags};
pub use format::LogFormat;
pub use purpose::Purpose;
pub use row::{Alias, Kind, Restriction};

#[cfg(test)]
mod cases;
