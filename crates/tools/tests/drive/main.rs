//! Runs of `weir load` against scripted servers on the virtual clock. Nothing here takes real time.
#![allow(clippy::unwrap_used, reason = "tests")]

mod ends;
mod paces;
mod shares;
mod support;
