//! Log lines: to which targets a proxy sends them, in which shape, and their sending (configuration manual, section 4.2
//! "log" and chapter 8).
//!
//! [`Targets`] is compiled once and shared by all workers; each has a [`Logger`], which gathers the lines of a turn and
//! sends them together. A line that cannot be sent at once is dropped and counted: logging must never make anybody wait.

mod balance;
mod later;
mod lines;
mod logger;
mod relay;
mod ring;
mod sampling;
mod sender;
mod tap;
mod targets;
mod telemetry;

pub use logger::{Logger, Shown, Verdict};
pub use relay::{Reception, RelaySocket, start as start_relays};
pub use tap::TapReader;
pub use targets::{Problem, Targets};

#[cfg(test)]
mod backend_tests;
#[cfg(test)]
mod tests;
