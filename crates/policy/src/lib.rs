//! Weir's decision logic: the compiled configuration ([`program`], built by [`mod@compile`], with the expressions of
//! crate `expression`), and the objects that crate `live` is built from. Must never do I/O, wait, read a clock or a
//! source of randomness: the time and the random numbers are arguments.

pub mod catalogue;
pub mod check;
pub mod compile;
pub mod processors;
pub mod program;
pub mod registry;
pub mod resolve;
pub mod rule;
pub mod running;
pub mod services;

pub use compile::{FindHost, ReadFile, ReadFolder, Resolver, SystemLimits, compile, diagnose};
pub use program::{Backend, Bind, Frontend, Global, Program, Proxy, Server, ServerAddress, ServerPort};
