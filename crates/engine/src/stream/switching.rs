//! Rules that choose a backend (`use_backend`, `default_backend`). Must never access a server.

use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::evaluate::EvalContext;
use crate::stream::rules::cost;
use crate::worker::SharedStreamState;

/// Returns the index of the proxy that the switching rules choose for a request; `None`: no rule applies, and there is no
/// default.
pub fn switch(session: &Session, client: &Client, state: &SharedStreamState) -> Option<usize> {
    let frontend = session.proxy().frontend.as_ref()?;
    if !session.worker.rule_costs.is_on()
        && let Some(target) = frontend.switch_at_once(|proxy| session.worker.proxy_state(proxy).is_open())
    {
        return Some(target);
    }
    let state = state.borrow();
    state.rules.exhausted.set(false);
    cost::switch(&EvalContext::request(session, &state).behind(client.conn.behind()), frontend)
}
