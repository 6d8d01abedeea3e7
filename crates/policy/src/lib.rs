//! Weir's decisions: what a configuration means ([`program`], built by [`mod@compile`], with the expressions of crate
//! `expression`) and the shared counts that decide which server a request gets ([`live`], which asks crate `balance` to
//! choose). Must never do I/O, wait, read a clock or a source of randomness: the moment and the random numbers are arguments.

pub mod catalogue;
pub mod check;
pub mod compile;
pub mod health;
pub mod live;
pub mod persistence;
pub mod processors;
pub mod program;
pub mod registry;
pub mod resolve;
pub mod rule;
pub mod running;
pub mod saved_state;
pub mod services;

pub use compile::{FindHost, Limits, ReadFile, ReadFolder, Resolver, compile, diagnose};
pub use program::{Backend, Bind, Frontend, Global, Program, Proxy, Server, ServerAddress, ServerPort};
