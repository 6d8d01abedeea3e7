//! Names or addresses of servers in entries: each is stored once, entries store its number. Must never hold more than a
//! configuration and its peers may reasonably name.

use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Maximum number of names. A peer that sends more is faulty.
const MOST: usize = 65_535;
/// Maximum length of a name in bytes.
const LONGEST: usize = 1_024;

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
    /// Returns the number of a name, from 1; 0: the limit is reached.
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

    /// Returns the name of a number; `None` for 0 and for unknown numbers.
    pub fn name(&self, number: u32) -> Option<Arc<[u8]>> {
        let at = (number as usize).checked_sub(1)?;
        self.inner.read().unwrap_or_else(PoisonError::into_inner).names.get(at).cloned()
    }
}
