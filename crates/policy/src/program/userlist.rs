//! Compiled `userlist` sections (configuration manual, section 12.2). Must never print a password, and never take the
//! time to compare one with a crypt(3) hash.

use expression::crypt::PasswordHash;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Userlist {
    pub name: Box<str>,
    pub users: Vec<User>,
}

#[derive(Clone, PartialEq, Eq)]
pub struct User {
    pub name: Box<[u8]>,
    /// The password; without one the user is never authenticated.
    pub password: Option<Password>,
    pub groups: Vec<Box<[u8]>>,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// In plain text.
    Clear(Box<[u8]>),
    /// A crypt(3) hash.
    Hidden(Arc<PasswordHash>),
}

impl Password {
    /// Compares a password; `proved` compares it with a hash.
    pub fn is(&self, password: &[u8], proved: impl FnOnce(&PasswordHash) -> bool) -> bool {
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
    /// Returns the user with that name.
    pub fn find(&self, name: &[u8]) -> Option<&User> {
        self.users.iter().find(|user| *user.name == *name)
    }

    /// Whether there are password hashes, whose comparison is expensive.
    pub fn is_slow(&self) -> bool {
        self.users.iter().any(|user| matches!(user.password, Some(Password::Hidden(_))))
    }
}
