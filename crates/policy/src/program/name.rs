//! The name of a server or a proxy, which commands may change while other threads read it. Must never free a name that
//! is still in use.

use base::AppendOnlyVec;
use base::append_only_vec::Full;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of recent names that are reused; other names allocate memory again.
const REMEMBERED: usize = 16;

/// A name that can be changed. It dereferences to text.
pub struct MutableName {
    /// The configured name.
    first: Box<str>,
    /// Later names; not allocated for most objects.
    later: OnceLock<Box<NameHistory>>,
}

#[derive(Default)]
struct NameHistory {
    /// All names except the configured one.
    names: AppendOnlyVec<Box<str>>,
    /// Index of the current name plus 1; 0 for the configured one.
    current: AtomicUsize,
}

impl MutableName {
    /// Changes the name. Concurrent readers may continue to use the old one.
    ///
    /// # Errors
    /// [`Full`] after too many different names.
    pub fn change(&self, name: &str) -> Result<(), Full> {
        let later = self.later.get_or_init(Box::default);
        let latest = later.names.places().saturating_sub(REMEMBERED)..later.names.places();
        let is_same = |place: &usize| later.names.get(*place).is_some_and(|known| **known == *name);
        let known = latest.rev().find(is_same).map(|place| place + 1);
        let place = match known {
            _ if *self.first == *name => 0,
            Some(place) => place,
            None => later.names.push(|_| name.into())? + 1,
        };
        later.current.store(place, Ordering::Release);
        Ok(())
    }

    #[cold]
    fn changed(&self, later: &NameHistory) -> Option<&str> {
        let place = later.current.load(Ordering::Acquire).checked_sub(1)?;
        // The box with the names is never replaced.
        self.later.get()?.names.get(place).map(|name| &**name)
    }
}

impl Deref for MutableName {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self.later.get() {
            None => &self.first,
            Some(later) => self.changed(later).unwrap_or(&self.first),
        }
    }
}

impl From<&str> for MutableName {
    fn from(name: &str) -> Self {
        Self { first: name.into(), later: OnceLock::new() }
    }
}

impl Clone for MutableName {
    fn clone(&self) -> Self {
        (**self).into()
    }
}

impl PartialEq for MutableName {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for MutableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for MutableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_stay_readable_and_come_back() {
        let name = MutableName::from("a");
        let old: &str = &name;
        name.change("b").unwrap();
        assert_eq!((old, &*name, name.to_string()), ("a", "b", "b".to_owned()));
        let second: &str = &name;
        name.change("a").unwrap();
        assert_eq!((second, &*name), ("b", "a"));
        assert_eq!(name, "a".into());
        assert_ne!(name, "b".into());
    }

    #[test]
    fn going_back_and_forth_takes_no_room() {
        let name = MutableName::from("a");
        for _ in 0..20_000 {
            name.change("b").unwrap();
            name.change("c").unwrap();
        }
        assert_eq!(name.later.get().unwrap().names.iter().count(), 2);
    }
}
