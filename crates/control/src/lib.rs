//! How a process is looked at and told what to do beside its traffic: the runtime API, statistics, tables that peers share,
//! what a former process left. Must never be needed for a request to be served: the engine runs without it.

mod dashboard;
mod field;
mod haterm;
mod page;
pub mod peers;
mod prometheus;
pub mod runtime;
pub mod saved_state;
pub mod services;
mod statistics;
mod unsent;
