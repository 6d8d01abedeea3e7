//! What makes a message wait that is neither time nor bytes: actions of scripts, and agents that are asked. Must never judge
//! what comes of them.

use policy::rule::Wait;

use crate::script::Action;
use crate::session::Session;
use crate::stream::spoe;

/// Begins the action that a rule waits for; `None`: it waits for something else, or there is no such action.
pub fn begin(session: &Session, wait: &Wait) -> Option<Box<dyn Action>> {
    match wait {
        Wait::Script(call) => session.worker.process.services.begin_action(call.number, &call.arguments),
        Wait::Agent(call) => Some(Box::new(spoe::Run::new(call))),
        _ => None,
    }
}
