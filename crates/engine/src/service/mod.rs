//! What the engine does beside traffic: logs, the runtime API. Must never be needed for a request to be served.

pub(crate) mod activity;
mod bare;
pub(crate) mod ejections;
pub mod log;
pub(crate) mod mail;
pub mod peers;
pub mod registry;
pub mod runtime;
pub mod saved_state;
pub(crate) mod shutting;
pub(crate) mod transitions;
pub mod warm_up;
pub(crate) mod weight;
