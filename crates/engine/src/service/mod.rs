//! Side effects of streams and checks: log lines, mails, state changes of servers. Must never be needed for a request to be
//! served.

pub mod activity;
pub mod bare;
mod blank;
pub mod cookies;
pub(crate) mod ejections;
pub mod events;
mod happenings;
pub mod log;
pub(crate) mod mail;
pub mod registry;
pub mod shutting;
pub mod slow_start;
pub mod transitions;
pub mod weight;

pub use mail::Outbox;
