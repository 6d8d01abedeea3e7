//! Variables (configuration manual, section 2.8): their scopes and names. Must never know who sets one.
//!
//! A name becomes a number when the configuration is compiled. A store is a short list: a stream has few variables, and a
//! list of few is faster than any table.

mod condition;
mod dump;
mod limits;
mod reach;
mod store;

pub use condition::VariableCondition;
pub use dump::{SCOPES, dump};
pub use limits::{Ledger, VariableLimits, VariableSizes};
pub use reach::{Phase, Variables};
pub use store::{SessionStore, Store, Stored};

use std::collections::HashMap;

/// Where a variable lives, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// `proc`: the process.
    Process,
    /// `sess`: the client's connection.
    Session,
    /// `txn`: request and response.
    Transaction,
    /// `req`: the processing of the request.
    Request,
    /// `res`: the processing of the response.
    Response,
    /// `check`: a health check.
    Check,
    /// `psess`, `ptxn`, `preq`, `pres`: those of the stream that this one works for. No stream works for another one
    /// here, so they are never in reach.
    Parent,
}

impl Scope {
    /// By the manual's word.
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "proc" => Self::Process,
            "sess" => Self::Session,
            "txn" => Self::Transaction,
            "req" => Self::Request,
            "res" => Self::Response,
            "check" => Self::Check,
            "psess" | "ptxn" | "preq" | "pres" => Self::Parent,
            _ => return None,
        })
    }

    /// The manual's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "proc",
            Self::Session => "sess",
            Self::Transaction => "txn",
            Self::Request => "req",
            Self::Response => "res",
            Self::Check => "check",
            Self::Parent => "parent",
        }
    }
}

/// A variable's name as a number: the hash of its text, so that names met at run time need no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(u64);

impl Name {
    /// Of that text, without the scope.
    pub const fn of(text: &str) -> Self {
        // FNV-1a: names come from the configuration, clients cannot choose them to collide.
        let bytes = text.as_bytes();
        let (mut hash, mut index) = (0xcbf2_9ce4_8422_2325_u64, 0);
        while index < bytes.len() {
            hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
            index += 1;
        }
        Self(hash)
    }
}

/// A variable as an expression names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Where it lives.
    pub scope: Scope,
    /// Its name.
    pub name: Name,
    /// As written, scope included.
    pub text: Box<str>,
}

impl Variable {
    /// Reads `scope.name`.
    ///
    /// # Errors
    /// HAProxy's sentence about what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Empty variable name cannot be accepted".to_owned());
        }
        let scope_and_name = text.split_once('.').and_then(|(scope, name)| Some((Scope::named(scope)?, name)));
        let Some((scope, name)) = scope_and_name.filter(|(_, name)| !name.is_empty()) else {
            return Err(format!(
                "invalid variable name '{text}'. A variable name must start with its scope. The scope can be 'proc', \
                 '(p)sess', '(p)txn', '(p)req', '(p)res' or 'check'"
            ));
        };
        if let Some(wrong) = name.chars().find(|found| !found.is_ascii_alphanumeric() && *found != '_' && *found != '.')
        {
            return Err(format!("invalid syntax at char '{wrong}'"));
        }
        Ok(Self { scope, name: Name::of(name), text: text.into() })
    }
}

/// The names that a configuration uses, to tell variables by them.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Known(HashMap<Name, Box<str>>);

impl Known {
    /// Remembers a name.
    pub fn add(&mut self, variable: &Variable) {
        if let Some((_, name)) = variable.text.split_once('.')
            && !self.0.contains_key(&variable.name)
        {
            self.0.insert(variable.name, name.into());
        }
    }

    /// Remembers these as well.
    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|(name, text)| {
            self.0.entry(name).or_insert(text);
        });
    }

    /// The text of a name, without the scope.
    pub fn text(&self, name: Name) -> Option<&str> {
        self.0.get(&name).map(|text| &**text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_their_scope() {
        let variable = Variable::parse("txn.my_var.x").expect("a variable");
        assert_eq!((variable.scope, variable.name), (Scope::Transaction, Name::of("my_var.x")));
        for wrong in ["", "a", "foo.b", "txn.", "txn.a-b"] {
            assert!(Variable::parse(wrong).is_err(), "{wrong}");
        }
        for parent in ["psess.a", "ptxn.a", "preq.a", "pres.a"] {
            assert_eq!(Variable::parse(parent).map(|variable| variable.scope), Ok(Scope::Parent), "{parent}");
        }
    }
}
