//! Verifications of tokens whose algorithm the token itself selects: a variable that is assigned on a line which reads
//! the token's header field `alg`. Must never decide what a verification accepts.

use config::diagnostic::{Diagnostic, Severity};
use config::span::Span;
use expression::TokenAlgorithmUse;
use expression::condition::LinePosition;
use std::collections::HashSet;

/// Uses of the algorithm of signed tokens by the lines of a configuration.
#[derive(Default)]
pub(super) struct TokenAlgorithms {
    readers: HashSet<LinePosition>,
    assigned: Vec<(LinePosition, Box<str>)>,
    verified: Vec<Verification>,
}

/// A verification with the algorithm in a variable.
#[derive(PartialEq)]
struct Verification {
    converter: &'static str,
    variable: Box<str>,
    line: Span,
}

impl TokenAlgorithms {
    /// Records a use on a line.
    pub(super) fn add(&mut self, found: TokenAlgorithmUse<'_>, line: Span) {
        match found {
            TokenAlgorithmUse::Read => {
                self.readers.insert(position(line));
            }
            TokenAlgorithmUse::Assigned(variable) => {
                self.assigned.push((position(line), variable.text.clone()));
            }
            TokenAlgorithmUse::Verified(converter, variable) => {
                let verification = Verification { converter, variable: variable.text.clone(), line };
                if self.verified.last() != Some(&verification) {
                    self.verified.push(verification);
                }
            }
        }
    }

    /// Returns a notice about each verification whose algorithm the token selects, in the order of the lines.
    pub(super) fn notices(self) -> Vec<Diagnostic> {
        let is_read = |(line, _): &&(LinePosition, Box<str>)| self.readers.contains(line);
        let selected: HashSet<&str> = self.assigned.iter().filter(is_read).map(|(_, name)| &**name).collect();
        let mut verified: Vec<&Verification> =
            self.verified.iter().filter(|verification| selected.contains(&*verification.variable)).collect();
        verified.sort_by_key(|verification| position(verification.line));
        verified.dedup();
        let notice = |&Verification { converter, ref variable, line }: &Verification| {
            let message = format!(
                "'{converter}' has its algorithm from the token ('{variable}'), which may select 'none': such a token needs no \
                 signature. 'tune.jwt-none reject' in the global section excludes it."
            );
            Diagnostic::new(Severity::Notice, line, message)
        };
        verified.into_iter().map(notice).collect()
    }
}

/// Returns the position of a line.
fn position(line: Span) -> LinePosition {
    (line.file, line.line)
}
