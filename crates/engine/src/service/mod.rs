//! Side effects of streams and checks: log lines, mails, state changes of servers. Must never be needed for a request to be
//! served.

pub mod activity;
pub mod cookies;
pub(crate) mod ejections;
mod event_queue;
pub mod events;
pub mod log;
pub(crate) mod mail;
mod program_probes;
pub mod registry;
pub mod session_shutdown;
pub mod slow_start;
pub mod streamless_context;
pub mod transitions;
pub mod weight;

pub use mail::Outbox;
