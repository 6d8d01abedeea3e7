//! Sample expressions, conditions, patterns, variables and log formats: everything that is evaluated on messages and
//! connections. Must never do I/O, wait, read a clock or a source of randomness, nor depend on the meaning of a
//! configuration: an evaluation sees only its context ([`sample::Context`]).

pub mod capture;
pub mod condition;
pub mod convert;
pub mod crypt;
mod expression;
pub mod fetch;
pub mod fields;
pub mod key;
pub mod log_format;
pub mod pattern;
pub mod record;
pub mod rows;
pub mod sample;
pub mod variable;
pub mod vocabulary;

pub(crate) use expression::to_variable;
pub use expression::{
    Argument, Arguments, Call, Check, Checking, Conversion, Expression, ExpressionError, Kind, Names, Part, Signature,
    TokenAlgorithmUse, calls,
};
