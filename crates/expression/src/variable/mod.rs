//! Variables (configuration manual, section 2.8): their scopes and names. Must never depend on what sets one.
//!
//! Names are hashed to numbers when the configuration is compiled. A store is a short list: a stream has few variables,
//! and a short list is faster than any table.

mod condition;
mod dump;
mod limits;
mod reach;
mod store;

pub use condition::VariableCondition;
pub use dump::{SCOPES, dump};
pub use limits::{Ledger, VariableLimits, VariableSizes};
pub use reach::{Phase, Variables};
pub use store::{SessionStore, Store, StoredValue};

use std::collections::HashMap;

/// The scope of a variable, which determines its lifetime.
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
    /// `psess`, `ptxn`, `preq`, `pres`: those of the parent stream. Streams have no parents in Weir, so they are never
    /// in scope.
    Parent,
}

impl Scope {
    /// Returns the scope of a keyword.
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

    /// The keyword.
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

/// A variable's name as a number: the hash of its text, so that names given at run time need no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name(u64);

impl Name {
    /// Hashes a name without the scope.
    pub const fn of(text: &str) -> Self {
        // FNV-1a: names come from the configuration, clients cannot choose colliding ones.
        let bytes = text.as_bytes();
        let (mut hash, mut index) = (0xcbf2_9ce4_8422_2325_u64, 0);
        while index < bytes.len() {
            hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
            index += 1;
        }
        Self(hash)
    }
}

/// A variable as named in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub scope: Scope,
    pub name: Name,
    /// The text as written, including the scope.
    pub text: Box<str>,
}

impl Variable {
    /// Parses `scope.name`.
    ///
    /// # Errors
    /// HAProxy's message about the name.
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

/// The names used by a configuration, for printing variables.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct VariableNames(HashMap<Name, Box<str>>);

impl VariableNames {
    /// Adds a name.
    pub fn add(&mut self, variable: &Variable) {
        if let Some((_, name)) = variable.text.split_once('.')
            && !self.0.contains_key(&variable.name)
        {
            self.0.insert(variable.name, name.into());
        }
    }

    /// Adds the names of another set.
    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|(name, text)| {
            self.0.entry(name).or_insert(text);
        });
    }

    /// Returns the text of a name, without the scope.
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
