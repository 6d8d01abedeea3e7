//! `use_backend` and `force-be-switch` (configuration manual, section 4.2): selection of the backend of a request. Must
//! never decide which backends are open.

use crate::program::ProgramContext;
use config::spec::Mode;
use expression::condition::Condition;
use expression::log_format::LogFormat;
use expression::sample::{Context, RulePlace};
use std::collections::HashMap;
use std::sync::Arc;

/// Indices of backends by name.
pub type Names = HashMap<Box<[u8]>, usize>;

/// The target of a switching rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// The proxy at an index.
    Proxy(usize),
    /// The backend whose name the format evaluates to: one of these, or one added at run time whose mode fits that of
    /// the frontend.
    Named(LogFormat, Arc<Names>, Mode),
}

/// A `use_backend` rule.
#[derive(Debug, Clone)]
pub struct Switch {
    /// The condition; `None` for none.
    pub condition: Option<Condition>,
    pub target: Target,
    /// Location in the configuration.
    pub place: RulePlace,
}

/// Compares everything except the location.
impl PartialEq for Switch {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.target == other.target
    }
}

/// Whether a frontend may use a backend: one of its own mode, or one in HTTP mode from TCP mode, in which case the
/// connection is upgraded.
pub fn fits_mode(frontend: Mode, backend: Mode) -> bool {
    frontend == backend || (frontend == Mode::Tcp && backend == Mode::Http)
}

impl Switch {
    /// Returns the target if the rule matches; the inner `None` means that no proxy has the evaluated name. A rule
    /// whose target is not open is skipped.
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
                // An unknown name ends the evaluation; a backend that is not open is skipped like any other.
                if found.is_some_and(|index| !is_open(index)) {
                    return None;
                }
                found
            }
        })
    }
}
