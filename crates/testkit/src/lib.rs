//! What tests above the runtime share: scripted peers and virtual time. Everything here runs on a simulated worker, in
//! the script of a simulation; nothing here may take real time, and nothing knows the program under test.
//!
//! A script that waits in vain ends with a panic that names the line of the test which waited.

mod journal;
mod peer;
mod scope;
mod service;
mod time;

pub use journal::{Journal, line_matches};
pub use peer::{Peer, PeerOptions};
pub use scope::Scope;
pub use service::Service;
pub use time::{LATE_AT_MOST, PATIENCE, Stopwatch, both, sleep, within};
