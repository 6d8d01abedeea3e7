//! `use_backend` and `force-be-switch` (configuration manual, section 4.2): which backend a request goes to. Must never
//! decide which backends are open.

use crate::program::Lent;
use config::spec::Mode;
use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::sample::{Context, RulePlace};
use std::collections::HashMap;
use std::sync::Arc;

/// Backends by name.
pub type Names = HashMap<Box<[u8]>, usize>;

/// Where a switching rule leads.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// To that proxy.
    Proxy(usize),
    /// To the one of these whose name this gives, or to one of that name which was added since and whose mode fits that of
    /// the frontend.
    Named(LogFormat, Arc<Names>, Mode),
}

/// One `use_backend`.
#[derive(Debug, Clone)]
pub struct Switch {
    /// When it is taken; always without one.
    pub condition: Option<Condition>,
    /// Where it leads.
    pub target: Target,
    /// Where it is written.
    pub place: RulePlace,
}

/// Where it is written makes no difference.
impl PartialEq for Switch {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.target == other.target
    }
}

/// Whether a frontend's requests may go to a backend: to those of its mode, and from TCP mode to HTTP, for which the
/// connection is upgraded.
pub fn fits_mode(frontend: Mode, backend: Mode) -> bool {
    frontend == backend || (frontend == Mode::Tcp && backend == Mode::Http)
}

impl Switch {
    /// Whether it is taken, and the proxy that it leads to then; `None` inside: no proxy has the name that it
    /// gives. A rule that leads to a proxy that is not open is passed over.
    pub fn take(&self, context: &Context<'_>, is_open: impl Fn(usize) -> bool) -> Option<Option<usize>> {
        if matches!(self.target, Target::Proxy(index) if !is_open(index))
            || self.condition.as_ref().is_some_and(|condition| !condition.holds(context))
        {
            return None;
        }
        Some(match &self.target {
            Target::Proxy(index) => Some(*index),
            Target::Named(format, proxies, mode) => {
                let mut name = Vec::new();
                format.render_in(context, &mut name);
                let known = proxies.get(name.as_slice()).copied();
                let known = known.filter(|index| context.live().is_none_or(|live| live.proxies.is_present(*index)));
                let found = known.or_else(|| context.live()?.added.find(&name, |own| fits_mode(*mode, own)));
                // A name of no backend ends the choice; one that is not open is passed over as any other.
                if found.is_some_and(|index| !is_open(index)) {
                    return None;
                }
                found
            }
        })
    }
}
