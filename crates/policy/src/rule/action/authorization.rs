//! A request that a server of another backend allows or refuses (`auth-request`). Must never know how the server is asked.

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

    /// Whether a field of the client would be taken for one that is copied.
    pub fn is_copied(&self, name: &[u8]) -> bool {
        self.copies().any(|copied| is_same_meta_variable(copied, name))
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
