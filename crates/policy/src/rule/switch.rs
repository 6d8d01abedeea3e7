//! `use_backend` and `force-be-switch` (configuration manual, section 4.2): which backend a request goes to. Must never
//! look at what changes while requests flow.

use crate::condition::Condition;
use crate::log_format::LogFormat;
use crate::sample::Context;
use std::collections::HashMap;
use std::sync::Arc;

/// Backends by name, and whether each is disabled or unpublished.
pub type Names = HashMap<Box<[u8]>, (usize, bool)>;

/// Where a switching rule leads.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// To that proxy.
    Proxy(usize),
    /// To the one of these whose name this gives.
    Named(LogFormat, Arc<Names>),
}

/// One `use_backend`.
#[derive(Debug, Clone, PartialEq)]
pub struct Switch {
    /// When it is taken; always without one.
    pub condition: Option<Condition>,
    /// Where it leads.
    pub target: Target,
    /// The backend is disabled or unpublished: only who is forced gets there.
    pub closed: bool,
}

impl Switch {
    /// Whether it is taken, and the proxy that it leads to then; `None` inside: there is none of the name that it gives.
    pub fn take(&self, context: &Context<'_>, forced: bool) -> Option<Option<usize>> {
        if (self.closed && !forced) || self.condition.as_ref().is_some_and(|condition| !condition.holds(context)) {
            return None;
        }
        Some(match &self.target {
            Target::Proxy(index) => Some(*index),
            Target::Named(format, proxies) => {
                let mut name = Vec::new();
                format.render_in(context, &mut name);
                proxies.get(name.as_slice()).filter(|(_, closed)| forced || !closed).map(|(index, _)| *index)
            }
        })
    }
}
