//! `userlist` (configuration manual, section 12.2) as it is written. Must never compare a password.

use crate::span::Span;

/// Users and groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserlistSpec {
    /// Its name.
    pub name: String,
    /// Its users, in order.
    pub users: Vec<UserSpec>,
    /// `group`: name, users, and where it stands.
    pub groups: Vec<(String, Vec<String>, Span)>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSpec {
    /// The name.
    pub name: String,
    /// `password` or `insecure-password`; without one the user is never authenticated.
    pub password: Option<PasswordSpec>,
    /// `groups`.
    pub groups: Vec<String>,
    /// Where it stands.
    pub span: Span,
}

/// A user's password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordSpec {
    /// `insecure-password`: as it is.
    Clear(String),
    /// `password`: as crypt(3) hides it.
    Hidden(String, Span),
}
