//! The caches of permissions that the rules of one configuration use (`auth-request … cache`). Must never decide whether a permission
//! may be stored.

use std::collections::HashMap;
use std::sync::Arc;

use live::decisions::DecisionCache;
use policy::program::{DecisionRule, Program};

/// The caches of a configuration, by the number of the rule.
#[derive(Debug, Default)]
pub struct DecisionCaches(Box<[Option<Arc<DecisionCache>>]>);

impl DecisionCaches {
    /// Creates empty caches. `random` keys their hashes.
    pub(crate) fn new(program: &Program, random: u64) -> Self {
        Self::with(program, |rule| Arc::new(DecisionCache::new(rule.caching.size, random)))
    }

    /// Creates the caches of a configuration that follows another one: a rule keeps its permissions if neither the rule nor those
    /// above it have changed.
    pub(crate) fn following(program: &Program, former: &Program, before: &Self, random: u64) -> Self {
        let former = former.decision_rules();
        let former: HashMap<_, _> = former.map(|rule| ((rule.proxy.index, rule.position), rule)).collect();
        Self::with(program, |rule| {
            let former = former.get(&(rule.proxy.index, rule.position)).filter(|former| rule.follows(former));
            let kept = former.and_then(|former| before.get(former.caching.place)).cloned();
            kept.unwrap_or_else(|| Arc::new(DecisionCache::new(rule.caching.size, random)))
        })
    }

    fn with(program: &Program, mut cache: impl FnMut(&DecisionRule<'_>) -> Arc<DecisionCache>) -> Self {
        let mut caches = Vec::new();
        for rule in program.decision_rules() {
            let place = rule.caching.place;
            if caches.len() <= place {
                caches.resize(place + 1, None);
            }
            caches[place] = Some(cache(&rule));
        }
        Self(caches.into())
    }

    /// Returns the cache of a rule; `None`: the runtime API has added its backend.
    pub fn get(&self, place: usize) -> Option<&Arc<DecisionCache>> {
        self.0.get(place)?.as_ref()
    }

    /// Removes the permissions of all rules, or of those of one proxy. Returns their number.
    pub(crate) fn clear(&self, program: &Program, proxy: Option<usize>) -> usize {
        let rules = program.decision_rules().filter(|rule| proxy.is_none_or(|index| rule.proxy.index == index));
        rules.filter_map(|rule| self.get(rule.caching.place)).map(|cache| cache.clear()).sum()
    }
}
