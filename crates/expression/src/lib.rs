//! Sample expressions, conditions, patterns, variables and log formats: what is evaluated over messages and facts. Must
//! never do I/O, wait, read a clock or a source of randomness, nor know what a configuration means: what an evaluation may
//! see is lent ([`sample::Context`]).

pub mod base64;
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
    Argument, Arguments, Check, Checking, Conversion, Expression, ExpressionError, Kind, Names, Part, Signature,
};
