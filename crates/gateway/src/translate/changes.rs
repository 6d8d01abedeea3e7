//! Differences between two sets of objects, by address.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::snapshot::ObjectKey;

/// Returns the keys of objects that are new, removed or at another address.
pub fn between<K>(old: &BTreeMap<ObjectKey, Arc<K>>, new: &BTreeMap<ObjectKey, Arc<K>>) -> Vec<ObjectKey> {
    let mut result = Vec::new();
    let mut left = old.iter().peekable();
    let mut right = new.iter().peekable();
    loop {
        match (left.peek(), right.peek()) {
            (Some((_, a)), Some((_, b))) if Arc::ptr_eq(a, b) => {
                left.next();
                right.next();
            }
            (Some((ka, _)), Some((kb, _))) => match ka.cmp(kb) {
                std::cmp::Ordering::Less => result.extend(left.next().map(|(k, _)| k.clone())),
                std::cmp::Ordering::Greater => result.extend(right.next().map(|(k, _)| k.clone())),
                std::cmp::Ordering::Equal => {
                    left.next();
                    result.extend(right.next().map(|(k, _)| k.clone()));
                }
            },
            (Some(_), None) => result.extend(left.next().map(|(k, _)| k.clone())),
            (None, Some(_)) => result.extend(right.next().map(|(k, _)| k.clone())),
            (None, None) => return result,
        }
    }
}

/// Whether two sets have the same objects at the same addresses.
pub fn is_same<K>(old: &BTreeMap<ObjectKey, Arc<K>>, new: &BTreeMap<ObjectKey, Arc<K>>) -> bool {
    old.len() == new.len() && old.values().zip(new.values()).all(|(a, b)| Arc::ptr_eq(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_address() {
        let same = Arc::new(1);
        let of = |entries: &[(&str, Arc<i32>)]| -> BTreeMap<ObjectKey, Arc<i32>> {
            entries.iter().map(|(name, value)| (ObjectKey::new("d", *name), value.clone())).collect()
        };
        let other = || Arc::new(1);
        for (old, new, expected) in [
            (of(&[]), of(&[]), &[][..]),
            (of(&[("a", same.clone())]), of(&[("a", same.clone())]), &[][..]),
            (of(&[("a", same.clone())]), of(&[("a", other())]), &["a"][..]),
            (
                of(&[("a", same.clone()), ("c", same.clone())]),
                of(&[("b", other()), ("c", same.clone())]),
                &["a", "b"][..],
            ),
            (of(&[("a", other())]), of(&[("b", other())]), &["a", "b"][..]),
            (of(&[("b", other())]), of(&[("a", other()), ("c", other())]), &["a", "b", "c"][..]),
        ] {
            let found: Vec<String> = between(&old, &new).into_iter().map(|key| key.name).collect();
            assert_eq!(found, expected);
            assert_eq!(is_same(&old, &new), expected.is_empty());
        }
    }
}
