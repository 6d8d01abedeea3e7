//! Statuses of objects that are few, kept as long as what they are made of stays the same: their times then stay the same too.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::snapshot::{ObjectKey, Objects};

use super::statuses::StatusesOf;

/// Statuses of a kind of objects. `T` is what a status is made of, apart from the object.
#[derive(Debug)]
pub struct StatusMemo<K, S, T> {
    entries: BTreeMap<ObjectKey, Entry<K, S, T>>,
}

#[derive(Debug)]
struct Entry<K, S, T> {
    object: Arc<K>,
    input: T,
    status: Option<Arc<S>>,
}

impl<K, S, T> Default for StatusMemo<K, S, T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<K, S, T: PartialEq> StatusMemo<K, S, T> {
    /// Returns the statuses that differ from those of the objects. `inputs` has the objects that get one.
    pub fn update(
        &mut self,
        objects: &Objects<K>,
        inputs: BTreeMap<ObjectKey, T>,
        make: impl Fn(&ObjectKey, &K, &T) -> Option<S>,
    ) -> StatusesOf<S> {
        let mut former = std::mem::take(&mut self.entries);
        let mut result = StatusesOf::new();
        for (key, input) in inputs {
            let Some(object) = objects.get(&key) else { continue };
            let entry = match former.remove(&key) {
                Some(entry) if Arc::ptr_eq(&entry.object, object) && entry.input == input => entry,
                _ => {
                    let status = make(&key, object, &input).map(Arc::new);
                    Entry { object: object.clone(), input, status }
                }
            };
            result.extend(entry.status.clone().map(|status| (key.clone(), status)));
            self.entries.insert(key, entry);
        }
        result
    }
}
