//! The runtime on the simulated driver: every test runs under many seeds, and each seed is reproducible.
#![allow(clippy::unwrap_used, reason = "tests")]

use weir_rt as rt;

mod faults;
mod streams;
mod support;
mod timers;
mod udp;
mod workers;
