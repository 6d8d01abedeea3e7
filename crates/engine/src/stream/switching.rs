//! Rules that choose a backend (`use_backend`, `default_backend`). Must never access a server.

use policy::program::Frontend;

use crate::stream::context::RequestContext;
use crate::stream::evaluate::EvalContext;
use crate::stream::rules::cost;

/// Returns the index of the proxy that the switching rules choose for a request; `None`: no rule applies, and there is no
/// default.
#[inline]
pub fn switch(context: &RequestContext<'_>) -> Option<usize> {
    let frontend = context.session.proxy().frontend.as_ref()?;
    if !context.session.worker.rule_costs.is_on()
        && let Some(target) = frontend.switch_at_once(|proxy| context.session.worker.proxy_state(proxy).is_open())
    {
        return Some(target);
    }
    evaluate(context, frontend)
}

/// Evaluates the conditions of the switching rules.
#[cold]
fn evaluate(context: &RequestContext<'_>, frontend: &Frontend) -> Option<usize> {
    let state = context.state.borrow();
    state.rules.exhausted.set(false);
    cost::switch(&EvalContext::request(context.session, &state).behind(context.client.conn.behind()), frontend)
}
