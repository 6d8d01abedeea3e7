//! Parts of a specification that sections have in common until one of them says something else: ten thousand proxies that start
//! from one `defaults` section have its parts once. Must never let a change of one show in another.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A part that clones share. It is copied when one of them changes it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Shared<T>(Arc<T>);

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl<T: Clone> Shared<T> {
    /// The part alone.
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }

    /// Shares an equal part that is known, or makes this one known; the one that has been known longest makes room.
    pub fn share(&mut self, known: &mut Vec<Self>)
    where
        T: PartialEq,
    {
        /// Different parts that are remembered.
        const MOST: usize = 8;
        if let Some(same) = known.iter().find(|same| *same == self) {
            *self = same.clone();
            return;
        }
        if known.len() == MOST {
            known.remove(0);
        }
        known.push(self.clone());
    }

    /// Changes the part, which stays shared where that makes no difference.
    pub fn settle(&mut self, change: impl FnOnce(&mut T))
    where
        T: PartialEq,
    {
        let mut changed = T::clone(self);
        change(&mut changed);
        if changed != **self {
            *self = changed.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::spec::{ProxySpec, ServerSpec};
    use crate::{InputFile, LoadOptions, load};

    /// Ten thousand backends with two servers each are to fit: what they inherit takes memory once.
    #[test]
    fn sections_share_what_they_inherit() {
        let text = "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n option httpchk\n \
                    http-check expect status 200\n http-request set-header a b\n default-server inter 7s\nbackend a\n server s 127.0.0.1:1\n \
                    server t 127.0.0.1:2\nbackend b\n server s 127.0.0.1:3 check\n timeout server 2s\n";
        let file = InputFile { name: "x".to_owned(), bytes: text.as_bytes().into() };
        let loaded = load(&[file], Environment::new(), &LoadOptions::default());
        let [a, b] = &loaded.spec.proxies[..] else { panic!("{:?}", loaded.diagnostics) };
        assert!(std::ptr::eq(&*a.rules, &*b.rules) && std::ptr::eq(&*a.check, &*b.check));
        assert!(std::ptr::eq(&*a.filters, &*b.filters) && std::ptr::eq(&*a.http, &*b.http));
        assert!(!std::ptr::eq(&*a.timeouts, &*b.timeouts));
        let ([s, t], [other]) = (&a.servers[..], &b.servers[..]) else { panic!("{:?}", loaded.diagnostics) };
        assert!(std::ptr::eq(&*s.check, &*t.check) && !std::ptr::eq(&*s.check, &*other.check));
        assert!(std::ptr::eq(&*s.connecting, &*t.connecting) && std::ptr::eq(&*s.connecting, &*other.connecting));
        assert!(a.rules.rules.iter().all(|rule| rule.line.inherited));
        assert_eq!((a.servers.capacity(), loaded.spec.proxies.capacity()), (2, 2));
        assert!(size_of::<ProxySpec>() <= 1_024, "{}", size_of::<ProxySpec>());
        assert!(size_of::<ServerSpec>() <= 256, "{}", size_of::<ServerSpec>());
    }

    #[test]
    fn clones_share_until_one_changes() {
        let one = Shared::from(vec![1, 2]);
        let mut other = one.clone();
        assert!(std::ptr::eq(&*one, &*other));
        other.push(3);
        assert_eq!((one.len(), other.len()), (2, 3));
        let mut third = one.clone();
        third.settle(|part| part.retain(|number| *number < 3));
        assert!(std::ptr::eq(&*one, &*third));
        third.settle(|part| part.clear());
        assert_eq!((one.len(), third.len()), (2, 0));
        let (mut known, mut same) = (vec![one.clone()], Shared::from(vec![1, 2]));
        same.share(&mut known);
        assert!(std::ptr::eq(&*one, &*same) && known.len() == 1);
        (0..20).for_each(|number| Shared::from(vec![number]).share(&mut known));
        assert_eq!((known.len(), &**known[7]), (8, &[19][..]));
        assert_eq!(other.into_inner(), [1, 2, 3]);
    }
}
