//! Uses of the algorithm of signed tokens in a configuration. Must never judge them.

use crate::variable::Variable;

/// Part of an expression by which a token may select the algorithm of its verification.
#[derive(Debug, Clone, Copy)]
pub enum TokenAlgorithmUse<'a> {
    /// The header field `alg` of a token is read.
    Read,
    /// A variable is assigned.
    Assigned(&'a Variable),
    /// The converter of that name verifies a token, with the algorithm in a variable.
    Verified(&'static str, &'a Variable),
}
