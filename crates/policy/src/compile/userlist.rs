//! Compiles `userlist` sections: groups refer to users and users to groups, and all of them have to exist. Must never
//! compare a password.

use super::Compiler;
use super::names::Shared;
use crate::program::{Password, Proxy, User, Userlist};
use config::diagnostic::{Diagnostic, Form};
use config::span::Span;
use config::spec::{PasswordSpec, Spec, UserSpec, UserlistSpec};
use config::text::to_bytes;
use expression::crypt::{PasswordHash, Unusable};
use std::sync::Arc;
use std::time::Duration;

/// The time of verification from which on a password is warned of.
const SLOW: Duration = Duration::from_millis(10);

impl Compiler<'_> {
    /// Compiles all lists, in the order of the specification.
    pub(super) fn userlists(&mut self, spec: &Spec) -> Vec<Userlist> {
        spec.sections.userlists.iter().map(|list| self.userlist(list)).collect()
    }

    fn userlist(&mut self, list: &UserlistSpec) -> Userlist {
        let owner = &list.name;
        for (group, users, span) in &list.groups {
            for user in users.iter().filter(|name| list.users.iter().all(|user| user.name != **name)) {
                let message = format!("userlist '{owner}': no such user '{user}' specified in group '{group}'");
                self.alert(*span, Form::Bare, message);
            }
        }
        for UserSpec { name, groups, span, .. } in &list.users {
            for group in groups.iter().filter(|name| list.groups.iter().all(|group| group.0 != **name)) {
                let message = format!("userlist '{owner}': no such group '{group}' specified in user '{name}'");
                self.alert(*span, Form::Bare, message);
            }
        }
        let mut users = Vec::with_capacity(list.users.len());
        for user in &list.users {
            let name = to_bytes(&user.name).into_owned().into();
            let password = user.password.as_ref().and_then(|password| self.password(owner, user, password));
            users.push(User { name, password, groups: groups(list, user) });
        }
        Userlist { name: owner.as_str().into(), users }
    }

    /// Parses a password; `None` if it never matches.
    fn password(&mut self, owner: &str, user: &UserSpec, written: &PasswordSpec) -> Option<Password> {
        let (text, span) = match written {
            PasswordSpec::Clear(text) => return Some(Password::Clear(to_bytes(text).into_owned().into())),
            PasswordSpec::Hidden(text, span) => (text, *span),
        };
        match PasswordHash::parse(text) {
            Ok(hidden) => {
                self.warn_of_slow(&hidden, span);
                Some(Password::Hidden(Arc::new(hidden)))
            }
            Err(Unusable::Unsupported(form)) => {
                let name = &user.name;
                let message = format!(
                    "userlist '{owner}': the password of user '{name}' is hidden by {form}, which is not supported yet by Weir"
                );
                let hint = "yescrypt, bcrypt, SHA-512, SHA-256, MD5 and DES are; mkpasswd makes them".to_owned();
                self.alert_with_hint(span, Form::Bare, message, Some(hint));
                None
            }
            // As in HAProxy, such a user is never authenticated.
            Err(Unusable::Never) => None,
        }
    }

    /// HAProxy's warning, with a time that is estimated where HAProxy measures.
    fn warn_of_slow(&mut self, hidden: &PasswordHash, span: Span) {
        let time = hidden.estimated_time();
        if time >= SLOW {
            let message = format!(
                "the hash algorithm used for this password takes {} milliseconds to verify, which can have devastating \
                 performance and stability impacts. Please hash this password using a lighter algorithm (one that is \
                 compatible with web usage).",
                time.as_millis()
            );
            self.warn(Diagnostic::warning(span, message).with_form(Form::ParsingTight));
        }
    }
}

/// Returns the groups of a user, defined by `group` or `user` lines.
fn groups(list: &UserlistSpec, user: &UserSpec) -> Vec<Box<[u8]>> {
    let is_in =
        |group: &str, users: &[String]| users.contains(&user.name) || user.groups.iter().any(|name| name == group);
    let found = list.groups.iter().filter(|(group, users, _)| is_in(group, users));
    found.map(|(group, ..)| to_bytes(group).into_owned().into()).collect()
}

/// Records the `userlist`s of proxies whose password hashes are expensive.
pub(super) fn note_slow(shared: &Shared, userlists: &[Userlist], proxies: &mut [Proxy]) {
    for (proxy, list) in shared.asked.take() {
        if userlists[list].is_slow() && !proxies[proxy].slow_userlists.contains(&list) {
            proxies[proxy].slow_userlists.push(list);
        }
    }
}
