//! A line with TLS parameters while it is compiled, and how messages about it begin and end. Must never report one.

use crate::program::TlsTraffic;
use config::diagnostic::Form;
use config::span::Span;
use config::spec::{BindTlsSpec, GlobalTlsSpec};

/// Prefixes and suffixes of messages about a line.
#[derive(Clone)]
pub(super) struct Line {
    /// Prefix of messages about files: `'bind :443' in section 'frontend' : `.
    pub(super) head: String,
    pub(super) form: Form,
    /// Prefix and suffix of messages about lists of algorithms.
    pub(super) algorithms: (String, String),
    pub(super) span: Span,
}

/// A `bind` line whose certificates are compiled.
#[derive(Clone, Copy)]
pub(super) struct BindTlsContext<'a> {
    pub(super) written: &'a BindTlsSpec,
    pub(super) traffic: TlsTraffic,
    pub(super) global: &'a GlobalTlsSpec,
    pub(super) line: &'a Line,
}

impl Line {
    /// Returns the prefix without the part that a crt-list adds.
    pub(super) fn head_of_line(&self) -> &str {
        self.head.strip_suffix("'crt-list' : ").unwrap_or(&self.head)
    }
}
