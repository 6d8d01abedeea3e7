//! The runner of the system tests: reads `tests/cases/<topic>/*.case`, starts a subject (Weir or HAProxy) with the
//! case's configuration and plays its clients and servers over real loopback sockets.
//!
//! It must never know anything of Weir's internals, never sleep instead of waiting for an event, and never leave a
//! process running. The format is described in `tests/cases/README.md`.

#![cfg(feature = "tests")]

mod case;
mod data;
mod failure;
mod journal;
mod kernel;
mod lines;
mod link;
mod names;
mod pages;
mod parse;
mod pattern;
mod peer;
mod run;
mod script;
mod subject;
mod suite;
mod world;

pub use suite::{Options, Outcome, Report, run_all};
