//! Weir's decisions: what a configuration means ([`program`], built by [`mod@compile`]) and the shared counts that decide
//! which server a request gets ([`live`], which asks crate `balance` to choose). Must never do I/O, wait, read a clock or a source of
//! randomness: the moment and the random numbers are arguments.

mod base64;
pub mod capture;
pub mod catalogue;
pub mod check;
pub mod compile;
pub mod condition;
pub mod convert;
pub mod crypt;
pub mod expression;
pub mod fetch;
mod fields;
pub mod health;
pub mod key;
pub mod live;
pub mod log_format;
pub mod pattern;
pub mod persistence;
pub mod processors;
pub mod program;
pub mod record;
pub mod registry;
pub mod resolve;
pub mod rows;
pub mod rule;
pub mod running;
pub mod sample;
pub mod saved_state;
pub mod services;
pub mod variable;
pub mod vocabulary;

pub use compile::{FindHost, Limits, ReadFile, ReadFolder, Resolver, compile, diagnose};
pub use program::{Backend, Bind, Frontend, Global, Program, Proxy, Server, ServerAddress, ServerPort};
