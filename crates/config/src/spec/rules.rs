//! Rules and ACLs as words with their places (configuration manual, sections 4.2 to 4.4 and 7): what they mean is
//! worked out where there are expressions. Must never look into a word.

use crate::document::Word;
use crate::span::Span;

/// A line of rules or ACLs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleLineSpec {
    /// The words behind the keyword.
    pub words: Vec<Word>,
    /// The whole line.
    pub span: Span,
    /// Where the relative names of files in it start from (`default-path`); `None`: where the process was started.
    pub folder: Option<String>,
    /// It stands in the `defaults` section that the proxy names: its ACLs are that section's.
    pub inherited: bool,
}

/// A rule of one of the rule sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSpec {
    /// The rule set, one bit of [`crate::keyword::rule::RULE_SETS`].
    pub set: u8,
    /// From the action on.
    pub line: RuleLineSpec,
}

/// `force-persist` or `ignore-persist`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersistRuleSpec {
    /// Whether it is `force-persist`.
    pub forces: bool,
    /// The condition.
    pub line: RuleLineSpec,
}

/// The rules of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RulesSpec {
    /// `acl`: the name and what it tests.
    pub acls: Vec<RuleLineSpec>,
    /// Rules of all sets, in order.
    pub rules: Vec<RuleSpec>,
    /// `redirect`: from the kind on.
    pub redirects: Vec<RuleLineSpec>,
    /// `monitor fail`: the conditions.
    pub monitor_fail: Vec<RuleLineSpec>,
    /// `use_backend`: the backend and the condition, in order.
    pub switching: Vec<RuleLineSpec>,
    /// `force-be-switch`: the conditions.
    pub force_switching: Vec<RuleLineSpec>,
    /// `use-server`: the server and the condition, in order.
    pub use_server: Vec<RuleLineSpec>,
    /// `force-persist` and `ignore-persist`, in order.
    pub persistence: Vec<PersistRuleSpec>,
    /// `stick`: from what it does on, in order.
    pub stick: Vec<RuleLineSpec>,
    /// `tcp-request inspect-delay`, milliseconds.
    pub request_inspect_delay: Option<u64>,
    /// `tcp-response inspect-delay`, milliseconds.
    pub response_inspect_delay: Option<u64>,
}

impl RulesSpec {
    /// Marks everything as the `defaults` section's.
    pub(crate) fn inherit(&mut self) {
        let lines = self.acls.iter_mut().chain(&mut self.switching);
        lines.chain(self.rules.iter_mut().map(|rule| &mut rule.line)).for_each(|line| line.inherited = true);
    }
}

/// What a frontend keeps of requests and answers for the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturesSpec {
    /// Slots of requests, in order.
    pub request: Vec<CaptureSlotSpec>,
    /// Slots of answers, in order.
    pub response: Vec<CaptureSlotSpec>,
    /// `capture cookie`: what its name begins with, and bytes at most.
    pub cookie: Option<(String, usize)>,
}

/// A slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSlotSpec {
    /// The header field that fills it; `None`: rules do.
    pub name: Option<String>,
    /// Bytes at most.
    pub length: usize,
    /// Keyword or action that made it.
    pub span: Span,
}
