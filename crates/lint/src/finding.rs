//! Findings: a place and a reason. Must never print.

use config::span::Span;

/// A line that cannot work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The stable name of the rule.
    pub rule: &'static str,
    /// The words that it is about.
    pub span: Span,
    /// Why they cannot work, without a full stop.
    pub message: String,
    /// How to mend it.
    pub hint: Option<&'static str>,
}

/// The findings so far.
#[derive(Default)]
pub(crate) struct Findings {
    rule: &'static str,
    list: Vec<Finding>,
}

impl Findings {
    /// Attributes the findings that follow to a rule.
    pub fn begin(&mut self, rule: &'static str) {
        self.rule = rule;
    }

    pub fn add(&mut self, span: Span, message: impl Into<String>) {
        self.list.push(Finding { rule: self.rule, span, message: message.into(), hint: None });
    }

    /// The same with advice.
    pub fn add_with_hint(&mut self, span: Span, message: impl Into<String>, hint: &'static str) {
        self.list.push(Finding { rule: self.rule, span, message: message.into(), hint: Some(hint) });
    }

    /// Returns the findings in the order of their places. A line of a `defaults` section is reported once, whatever the
    /// number of sections that inherit it.
    pub fn into_sorted(self) -> Vec<Finding> {
        let mut list = self.list;
        list.sort_by(|a, b| (a.span, a.rule, &a.message).cmp(&(b.span, b.rule, &b.message)));
        list.dedup_by(|next, kept| next.span == kept.span && next.rule == kept.rule);
        list
    }
}
