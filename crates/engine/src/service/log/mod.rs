//! Log lines: to which targets a proxy sends them, in which shape, and their sending (configuration manual, section 4.2
//! "log" and chapter 8).
//!
//! [`crate::routes::LogRoutes`] is compiled from each configuration that is served, [`Targets`] belongs to the process; workers
//! share both. Each worker has a [`Logger`], which buffers the lines of an event-loop iteration and sends them together. A line
//! that cannot be sent at once is dropped and counted. Must never make a caller wait.

mod balance;
mod error_lines;
mod lines;
mod logger;
mod relay;
mod sender;
mod tap;
mod targets;
mod telemetry;

pub use crate::routes::sinks::SinkError;
pub use error_lines::{ErrorLine, MOST_LINES as MOST_ERROR_LINES};
pub use logger::{LineSettings, Logger, Verdict};
pub use relay::{Reception, RelaySocket, start as start_relays};
pub use tap::TapReader;
pub use targets::{Targets, hostname};

#[cfg(test)]
mod backend_tests;
#[cfg(test)]
mod tests;
