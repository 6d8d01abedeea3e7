//! Log lines: to which targets a proxy sends them, in which shape, and their sending (configuration manual, section 4.2
//! "log" and chapter 8).
//!
//! [`crate::routes::LogRoutes`] are compiled of each configuration that is served, [`Targets`] is what the process has; workers share both. Each has a [`Logger`], which gathers the lines of a turn and
//! sends them together. A line that cannot be sent at once is dropped and counted: logging must never make anybody wait.

mod balance;
mod lines;
mod logger;
mod relay;
mod sender;
mod tap;
mod targets;
mod telemetry;

pub use crate::routes::sinks::SinkError;
pub use logger::{Logger, Shown, Verdict};
pub use relay::{Reception, RelaySocket, start as start_relays};
pub use tap::TapReader;
pub use targets::{Targets, hostname};

#[cfg(test)]
mod backend_tests;
#[cfg(test)]
mod tests;
