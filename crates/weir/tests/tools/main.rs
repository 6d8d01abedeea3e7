//! The included tools from outside: the finished program, real sockets, other programs if installed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod bench;
mod ctl;
mod load;
mod origin;
#[path = "../shared/ports.rs"]
mod ports;
mod scenarios;
mod scripts;
#[allow(dead_code, reason = "the tests of the program itself use the rest")]
#[path = "../process/support.rs"]
mod support;
mod terminal;
mod top;
