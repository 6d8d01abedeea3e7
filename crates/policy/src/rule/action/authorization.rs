//! A request that a server of another backend allows or refuses (`auth-request`). Must never know how the server is asked.

use std::time::Duration;

use expression::log_format::LogFormat;
use expression::sample::{Context, Value};
use expression::variable::Variable;
use wire::http::is_same_meta_variable;

/// The parameters of `auth-request`.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthRequest {
    /// Index of the backend that is asked.
    pub backend: usize,
    /// The target of the subrequest; `None`: that of the request.
    pub(super) path: Option<LogFormat>,
    pub method: Box<str>,
    /// Names of the fields that an allowed request gets from the answer, in lower case.
    pub(super) copies: Box<[Box<[u8]>]>,
    /// Variables and the fields of the answer that they are set to.
    pub(super) variables: Box<[AnswerVariable]>,
    /// `on-error allow`: without a usable answer, the request is allowed.
    pub allows_on_error: bool,
    /// Variables that name the server and the reason if there is no decision.
    pub(super) failure: FailureVariables,
    /// `cache`: how permissions are reused.
    pub caching: Option<DecisionCaching>,
}

/// The variables of requests without a decision.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FailureVariables {
    pub(super) server: Variable,
    pub(super) error: Variable,
}

/// The parameters of `cache`.
#[derive(Debug, Clone)]
pub struct DecisionCaching {
    /// Index of the rule's cache in its generation.
    pub place: usize,
    /// How long a permission is reused.
    pub time: Duration,
    /// Maximum size in bytes.
    pub size: usize,
    /// The samples of the key.
    pub(super) key: LogFormat,
}

/// Compares everything except the index.
impl PartialEq for DecisionCaching {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.size, &self.key) == (other.time, other.size, &other.key)
    }
}

impl DecisionCaching {
    /// Appends the samples of the key, each after its length: no other list of samples has the same bytes. Returns false if all of
    /// them are missing or empty: such requests have no key.
    pub fn render_key(&self, context: &Context<'_>, out: &mut Vec<u8>) -> bool {
        let mut is_known = false;
        for expression in self.key.expressions() {
            let value = expression.evaluate(context).and_then(|value| context.as_text(value)).unwrap_or_default();
            is_known |= !value.is_empty();
            out.extend_from_slice(&(value.len() as u64).to_le_bytes());
            out.extend_from_slice(value);
        }
        is_known
    }
}

/// A variable that is set to a field of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnswerVariable {
    pub(super) variable: Variable,
    pub(super) name: Box<[u8]>,
}

impl AuthRequest {
    /// Appends the target of the subrequest; without `path`, nothing.
    pub fn render_target(&self, context: &Context<'_>, out: &mut Vec<u8>) {
        if let Some(path) = &self.path {
            path.render_in(context, out);
        }
    }

    /// Whether the target is that of the request.
    pub fn keeps_target(&self) -> bool {
        self.path.is_none()
    }

    /// Returns the names of the fields that are copied.
    pub fn copies(&self) -> impl Iterator<Item = &[u8]> {
        self.copies.iter().map(|name| &**name)
    }

    /// Returns the names of the fields of an answer that are used, some of them more than once.
    pub fn uses(&self) -> impl Iterator<Item = &[u8]> {
        self.copies().chain(self.variables.iter().map(|variable| &*variable.name))
    }

    /// Whether a field of the client would be taken for one that is copied.
    pub fn is_copied(&self, name: &[u8]) -> bool {
        self.copies().any(|copied| is_same_meta_variable(copied, name))
    }

    /// Sets the variables of a request without a decision: the server, written as `backend/server`, and the reason.
    pub fn set_failure(&self, context: &Context<'_>, server: &str, error: &str) {
        context.variables.set(&self.failure.server, Value::Str(server.as_bytes()));
        context.variables.set(&self.failure.error, Value::Str(error.as_bytes()));
    }

    /// Sets the variables to the fields that `first` returns by their names. A variable without a field is unset.
    pub fn set_variables<'f>(&self, context: &Context<'_>, first: impl Fn(&[u8]) -> Option<&'f [u8]>) {
        for AnswerVariable { variable, name } in &self.variables {
            match first(name) {
                Some(value) => {
                    context.variables.set(variable, Value::Str(value));
                }
                None => context.variables.unset(variable),
            }
        }
    }
}
