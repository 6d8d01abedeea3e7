//! The names or addresses of servers that entries hold: each is kept once, entries hold its number. Must never hold more
//! than a configuration and its peers may reasonably name.

use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Names at most. A peer that tells more tells nonsense.
const MOST: usize = 65_535;
/// Bytes of a name at most.
const LONGEST: usize = 1_024;

/// The names.
#[derive(Debug, Default)]
pub struct ServerNames {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    names: Vec<Arc<[u8]>>,
    numbers: FxHashMap<Arc<[u8]>, u32>,
}

impl ServerNames {
    /// The number of a name, from 1; 0: there is no room for it.
    pub fn number(&self, name: &[u8]) -> u32 {
        if let Some(number) = self.inner.read().unwrap_or_else(PoisonError::into_inner).numbers.get(name) {
            return *number;
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = inner.numbers.get(name) {
            return *number;
        }
        if inner.names.len() >= MOST || name.len() > LONGEST {
            return 0;
        }
        let name: Arc<[u8]> = name.into();
        inner.names.push(Arc::clone(&name));
        let number = inner.names.len() as u32;
        inner.numbers.insert(name, number);
        number
    }

    /// The name of a number; `None` for 0, and for what was never given.
    pub fn name(&self, number: u32) -> Option<Arc<[u8]>> {
        let at = (number as usize).checked_sub(1)?;
        self.inner.read().unwrap_or_else(PoisonError::into_inner).names.get(at).cloned()
    }
}
