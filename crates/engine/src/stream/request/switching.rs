//! Rules that choose a backend (`use_backend`, `default_backend`). Must never access a server.

use policy::program::Frontend;

use crate::stream::context::RequestContext;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::cost;

/// Returns the index of the proxy that the switching rules choose for a request; `None`: no rule applies, and there is no
/// default.
pub fn switch(context: &RequestContext<'_>) -> Option<usize> {
    at_once(context).or_else(|| evaluate(context, context.session.proxy().frontend.as_ref()?))
}

/// The same, if no condition has to be evaluated.
#[inline]
pub fn at_once(context: &RequestContext<'_>) -> Option<usize> {
    let frontend = context.session.proxy().frontend.as_ref()?;
    let worker = &context.session.worker;
    if worker.rule_costs.is_on() {
        return None;
    }
    frontend.switch_at_once(|proxy| worker.proxy_state(proxy).is_open())
}

/// Evaluates the conditions of the switching rules.
#[cold]
fn evaluate(context: &RequestContext<'_>, frontend: &Frontend) -> Option<usize> {
    let state = context.state.borrow();
    state.rules.exhausted.set(false);
    cost::switch(&EvalContext::request(context.session, &state).behind(context.client.conn.behind()), frontend)
}
