//! The rules that reuse permissions of servers (`auth-request … cache`). Must never hold a permission: they are in a generation.

use super::{Program, Proxy};
use crate::rule::{Action, AuthRequest, DecisionCaching, Rule, Wait};

/// A rule that reuses permissions.
#[derive(Debug, Clone, Copy)]
pub struct DecisionRule<'p> {
    pub proxy: &'p Proxy,
    /// Position in the `http-request` rules of the proxy.
    pub position: usize,
    pub rule: &'p Rule,
    pub request: &'p AuthRequest,
    pub caching: &'p DecisionCaching,
}

impl DecisionRule<'_> {
    /// Whether the permissions of a rule of another program are valid for this one: it is the same rule, and the rules above it,
    /// which the subrequest depends on, are the same as well.
    pub fn follows(&self, former: &DecisionRule<'_>) -> bool {
        let (own, before) = (&self.proxy.rules.http_request, &former.proxy.rules.http_request);
        self.proxy.index == former.proxy.index
            && self.position == former.position
            && own.get(..=self.position) == before.get(..=self.position)
    }
}

/// Numbers these rules of all proxies: the number of a rule is the index of its cache.
pub(crate) fn number_decision_rules(proxies: &mut [Proxy]) {
    let rules = proxies.iter_mut().flat_map(|proxy| proxy.rules.http_request.iter_mut());
    let requests = rules.filter_map(|rule| match &mut rule.action {
        Action::Wait(Wait::Authorization(request)) => request.caching.as_mut(),
        _ => None,
    });
    requests.enumerate().for_each(|(number, caching)| caching.place = number);
}

impl Program {
    /// Returns these rules. Those of backends that the runtime API adds have no cache.
    pub fn decision_rules(&self) -> impl Iterator<Item = DecisionRule<'_>> {
        self.proxies.iter().flat_map(|proxy| {
            proxy.rules.http_request.iter().enumerate().filter_map(|(position, rule)| match &rule.action {
                Action::Wait(Wait::Authorization(request)) => {
                    let caching = request.caching.as_ref().filter(|caching| caching.place != usize::MAX)?;
                    Some(DecisionRule { proxy, position, rule, request, caching })
                }
                _ => None,
            })
        })
    }
}
