//! What the engine does beside traffic: logs, the runtime API. Must never be needed for a request to be served.

pub mod log;
pub mod runtime;
mod transitions;
pub mod warm_up;
