//! `userlist` (configuration manual, section 12.2) as written. Must never compare a password.

use crate::span::Span;

/// Users and groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserlistSpec {
    pub name: String,
    /// Users, in file order.
    pub users: Vec<UserSpec>,
    /// `group`: name, users, and place.
    pub groups: Vec<(String, Vec<String>, Span)>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSpec {
    pub name: String,
    /// `password` or `insecure-password`; without one the user is never authenticated.
    pub password: Option<PasswordSpec>,
    /// `groups`.
    pub groups: Vec<String>,
    pub span: Span,
}

/// A user's password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PasswordSpec {
    /// `insecure-password`: in clear text.
    Clear(String),
    /// `password`: a hash of crypt(3).
    Hidden(String, Span),
}
