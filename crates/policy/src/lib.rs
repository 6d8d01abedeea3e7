//! Weir's decisions: what a configuration means ([`program`], built by [`mod@compile`]), which server a request gets
//! ([`balance`]) and the shared counts that decide it ([`live`]). Must never do I/O, wait, read a clock or a source of
//! randomness: the moment and the random numbers are arguments.

pub mod balance;
pub mod compile;
pub mod live;
pub mod log_format;
pub mod processors;
pub mod program;

pub use compile::{Limits, Resolver, compile};
pub use program::{Backend, Bind, Frontend, Global, Program, Proxy, Server, ServerAddress, ServerPort};
