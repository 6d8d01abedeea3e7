//! Password hashes to be compared before expressions evaluate `http_auth`. Must never compare them itself, since that
//! takes time.

use crate::program::{Password, Program, User};
use expression::crypt::PasswordHash;
use live::{Live, Proof};
use std::sync::Arc;

/// Returns the credentials after the scheme `Basic` (RFC 7617).
fn basic(field: &[u8]) -> Option<&[u8]> {
    let (scheme, text) = field.trim_ascii().split_at_checked(6)?;
    scheme.eq_ignore_ascii_case(b"basic ").then(|| text.trim_ascii())
}

/// Whether the value of an Authorization field matches one of the accounts, each `user:password` (RFC 7617, section 2).
/// Runs in time independent of which bytes differ.
pub fn is_account(accounts: &[Box<[u8]>], field: &[u8]) -> bool {
    let Some(credentials) = basic(field).and_then(base::base64::decoded) else { return false };
    let is = |account: &[u8]| {
        account.len() == credentials.len()
            && account.iter().zip(&credentials).fold(0, |differing, (own, found)| differing | (own ^ found)) == 0
    };
    accounts.iter().fold(false, |found, account| found | is(account))
}

/// Splits credentials into name and password.
fn halves(credentials: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = credentials.iter().position(|byte| *byte == b':')?;
    Some((&credentials[..colon], &credentials[colon + 1..]))
}

/// A password to be compared before expressions of a proxy are evaluated.
#[derive(Debug)]
pub struct PasswordTrial {
    /// The hash of the user's password.
    pub hidden: Arc<PasswordHash>,
    /// The password in the request.
    pub password: Box<[u8]>,
    /// Identifies the pair of both.
    pub proof: Proof,
}

/// Returns the comparisons required for a request with that `Authorization` and these lists, without known results.
pub fn trials(program: &Program, live: &Live, lists: &[usize], field: &[u8]) -> Vec<PasswordTrial> {
    let Some(credentials) = basic(field).and_then(base::base64::decoded) else { return Vec::new() };
    let Some((name, password)) = halves(&credentials) else { return Vec::new() };
    let users = lists.iter().filter_map(|list| program.userlists.get(*list)?.find(name));
    let trial = |user: &User| match user.password.as_ref()? {
        Password::Hidden(hidden) => {
            let proof = live.passwords.proof(hidden, password);
            let trial = PasswordTrial { hidden: Arc::clone(hidden), password: password.into(), proof };
            (!live.passwords.has(&proof)).then_some(trial)
        }
        Password::Clear(_) => None,
    };
    users.filter_map(trial).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::{compiled, frontend, spec};
    use config::spec::{PasswordSpec, UserSpec, UserlistSpec};

    #[test]
    fn a_hidden_password_is_tried_once() {
        let mut spec = spec(vec![frontend("fe")]);
        let span = spec.proxies[0].span;
        let user = |name: &str, password| UserSpec {
            name: name.to_owned(),
            password: Some(password),
            groups: Vec::new(),
            span,
        };
        let users = vec![
            user("ann", PasswordSpec::Hidden("abJnggxhB/yWI".to_owned(), span)),
            user("bob", PasswordSpec::Clear("x".to_owned())),
            user("eve", PasswordSpec::Hidden("*".to_owned(), span)),
        ];
        spec.sections.userlists.push(UserlistSpec { name: "u".to_owned(), users, groups: Vec::new() });
        let program = compiled(&spec);
        let live = program.live(7);
        let tried = |field: &str| trials(&program, &live, &[0], field.as_bytes());
        // "bob:x", "eve:x", "nobody:x" need no comparison.
        for field in ["Basic Ym9iOng=", "Basic ZXZlOng=", "Basic bm9ib2R5Ong=", "Bearer x", "Basic !", "Basic eA=="] {
            assert!(tried(field).is_empty(), "{field}");
        }
        // "ann:password"
        let found = tried("basic YW5uOnBhc3N3b3Jk");
        assert_eq!((found.len(), &*found[0].password), (1, &b"password"[..]));
        assert!(found[0].hidden.is(&found[0].password));
        live.passwords.learn(found[0].proof);
        assert!(tried("Basic YW5uOnBhc3N3b3Jk").is_empty());
        assert_eq!(tried("Basic YW5uOng=").len(), 1);
    }
}
