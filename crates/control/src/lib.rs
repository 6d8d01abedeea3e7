//! Observes and controls a process, apart from its traffic: the runtime API, statistics, tables shared by peers, saved
//! server states. Must never be needed to serve a request: the engine runs without it.

pub mod bgp;
mod dashboard;
mod field;
mod haterm;
mod output_queue;
mod page;
pub mod peers;
mod prometheus;
pub mod runtime;
pub mod saved_state;
pub mod services;
mod statistics;
