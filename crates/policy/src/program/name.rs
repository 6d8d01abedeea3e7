//! The name of a server or a proxy, which an order may change while others read it. Must never take back a name that is
//! still read.

use base::AppendOnlyVec;
use base::append_only_vec::Full;
use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of its latest names that are found again; others take memory once more.
const REMEMBERED: usize = 16;

/// A name that can be another one later. It reads as text.
pub struct MutableName {
    /// As configured.
    first: Box<str>,
    /// What it was called since; most are never called anything else.
    later: OnceLock<Box<Later>>,
}

#[derive(Default)]
struct Later {
    /// All names but the first one.
    names: AppendOnlyVec<Box<str>>,
    /// The place of the one that holds now, counted from 1; 0: the first one.
    current: AtomicUsize,
}

impl MutableName {
    /// Changes it. Who reads the old one at this moment may go on with it.
    ///
    /// # Errors
    /// [`Full`] after very many different names.
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
    fn changed(&self, later: &Later) -> Option<&str> {
        let place = later.current.load(Ordering::Acquire).checked_sub(1)?;
        // The roster is behind a box that is never replaced.
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
