//! Asynchronous actions that a rule waits for: actions of scripts, and requests to SPOE agents. Must never evaluate
//! their results.

use policy::rule::Wait;

use crate::script::Action;
use crate::session::Session;
use crate::stream::request::spoe;

/// Starts the action that a rule waits for. `None`: the rule waits for something else, or the action does not exist.
pub fn begin(session: &Session, wait: &Wait) -> Option<Box<dyn Action>> {
    match wait {
        Wait::Script(call) => session.worker.process.services.begin_action(call.number, &call.arguments),
        Wait::Agent(call) => Some(Box::new(spoe::Run::new(call))),
        _ => None,
    }
}
