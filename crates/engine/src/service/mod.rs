//! What the engine does beside traffic: logs. Must never be needed for a request to be served.

pub mod log;
