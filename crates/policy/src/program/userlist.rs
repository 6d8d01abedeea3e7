//! `userlist` (configuration manual, section 12.2): who may prove to be whom. Must never tell a password, and never take the
//! time to find out whether one is right that crypt(3) hides.

use expression::crypt::Hidden;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Users.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Userlist {
    /// Its name.
    pub name: Box<str>,
    /// Its users.
    pub users: Vec<User>,
}

/// A user.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: Box<[u8]>,
    /// The password; without one the user is never authenticated.
    pub password: Option<Password>,
    /// The groups that the user is in.
    pub groups: Vec<Box<[u8]>>,
}

/// A user's password.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// As it is.
    Clear(Box<[u8]>),
    /// As crypt(3) hides it.
    Hidden(Arc<Hidden>),
}

impl Password {
    /// Whether it is that one; what is hidden is asked of `proved`.
    pub fn is(&self, password: &[u8], proved: impl FnOnce(&Hidden) -> bool) -> bool {
        match self {
            Self::Clear(known) => known.ct_eq(password).into(),
            Self::Hidden(hidden) => proved(hidden),
        }
    }
}

impl fmt::Debug for User {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Userlist {
    /// The user of that name.
    pub fn find(&self, name: &[u8]) -> Option<&User> {
        self.users.iter().find(|user| *user.name == *name)
    }

    /// Whether it has passwords that it takes time to compare with.
    pub fn is_slow(&self) -> bool {
        self.users.iter().any(|user| matches!(user.password, Some(Password::Hidden(_))))
    }
}
