//! A FastCGI application (configuration manual, section 10.1). Must never compile an expression.

use super::{LogSpec, RuleLineSpec};
use crate::span::{Span, Spanned};

/// An `fcgi-app` section.
#[derive(Debug, Clone, PartialEq)]
pub struct FcgiAppSpec {
    /// The line that opens it.
    pub span: Span,
    pub name: Spanned<String>,
    /// `docroot`: a path on the host of the application.
    pub docroot: Option<String>,
    /// `index`: the script of a path that ends with a slash.
    pub index: Option<String>,
    /// `path-info`: a regular expression.
    pub path_info: Option<Spanned<String>>,
    /// `acl`: name and expression.
    pub acls: Vec<RuleLineSpec>,
    /// `set-param` and `pass-header`, in order.
    pub rules: Vec<FcgiRuleSpec>,
    /// `log-stderr global`.
    pub logs_globally: bool,
    /// `log-stderr` with a target.
    pub logs: Vec<LogSpec>,
    /// `option keep-conn`.
    pub keep_conn: bool,
    /// `option get-values`.
    pub get_values: bool,
    /// `option mpxs-conns`.
    pub shares_connections: bool,
    /// `option max-reqs`: maximum number of concurrent requests on a connection.
    pub max_requests: u32,
}

/// `set-param` or `pass-header`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FcgiRuleSpec {
    /// `set-param`: a value follows the name. Otherwise `pass-header`.
    pub sets: bool,
    /// Words from the name on.
    pub line: RuleLineSpec,
}
