//! Samples: values fetched from a message, a connection or the process, converted, matched and stored (configuration
//! manual, section 7). Owns their types, their casts and the context of an evaluation. Must never depend on a
//! particular fetch or converter.

mod cast;
mod configuration;
mod connection_error;
mod context;
mod embedded;
mod exhausted;
mod meter;
pub(crate) mod parse;
mod place;
mod probes;
mod text;
mod transaction;
mod unparsed_request;
mod value;

pub use cast::{Cast, cast};
pub use configuration::{Configuration, CounterSource, LiveState, TrackedEntry};
pub use connection_error::ConnectionError;
pub use context::{Bytes, Context, Direction, Extract, MissingInput};
pub use embedded::embedded_ipv4;
pub use exhausted::Exhausted;
pub use meter::Meter;
pub use place::{EvalPlace, Places};
pub use probes::{
    Cost, LinkFacts, OwnLimits, Probes, ProcessFacts, ProtocolFacts, RulePlace, SessionFacts, Sink, StreamFacts,
    Transport, UsageOf,
};
pub use text::Text;
pub use transaction::Transaction;
pub use unparsed_request::{UnparsedRequest, Unread};
pub use value::{Type, Value};
