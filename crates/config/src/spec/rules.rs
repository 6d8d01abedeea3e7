//! Rules and ACLs as words with their places (configuration manual, sections 4.2 to 4.4 and 7), which are
//! compiled later, together with expressions. Must never interpret a word.

use crate::document::Word;
use crate::span::Span;

/// A line of rules or ACLs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleLineSpec {
    /// The words after the keyword.
    pub words: Vec<Word>,
    /// The whole line.
    pub span: Span,
    /// Base directory of relative file names in it (`default-path`); `None`: the working directory at startup.
    pub folder: Option<String>,
    /// The line is in the `defaults` section that the proxy inherits from: its ACLs are those of that section.
    pub inherited: bool,
}

/// A rule of one of the rule sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSpec {
    /// The rule set, one bit of [`crate::keyword::rule::RULE_SETS`].
    pub set: u8,
    /// Words from the action on.
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
    /// `acl`: name and expression.
    pub acls: Vec<RuleLineSpec>,
    /// Rules of all sets, in file order.
    pub rules: Vec<RuleSpec>,
    /// `redirect`: words from the kind on.
    pub redirects: Vec<RuleLineSpec>,
    /// `monitor fail`: the conditions.
    pub monitor_fail: Vec<RuleLineSpec>,
    /// `use_backend`: the backend and the condition, in file order.
    pub switching: Vec<RuleLineSpec>,
    /// `force-be-switch`: the conditions.
    pub force_switching: Vec<RuleLineSpec>,
    /// `use-server`: the server and the condition, in file order.
    pub use_server: Vec<RuleLineSpec>,
    /// `force-persist` and `ignore-persist`, in file order.
    pub persistence: Vec<PersistRuleSpec>,
    /// `stick`: words from the action on, in file order.
    pub stick: Vec<RuleLineSpec>,
    /// `tcp-request inspect-delay`, milliseconds.
    pub request_inspect_delay: Option<u64>,
    /// `tcp-response inspect-delay`, milliseconds.
    pub response_inspect_delay: Option<u64>,
}

impl RulesSpec {
    /// Marks all lines as inherited from the `defaults` section.
    pub(crate) fn inherit(&mut self) {
        let lines = self.acls.iter_mut().chain(&mut self.switching);
        lines.chain(self.rules.iter_mut().map(|rule| &mut rule.line)).for_each(|line| line.inherited = true);
    }
}

/// Captures of a frontend: parts of requests and responses that are logged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapturesSpec {
    /// Request slots, in file order.
    pub request: Vec<CaptureSlotSpec>,
    /// Response slots, in file order.
    pub response: Vec<CaptureSlotSpec>,
    /// `capture cookie`: prefix of the name, and maximum length in bytes.
    pub cookie: Option<(String, usize)>,
}

/// A capture slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSlotSpec {
    /// The header field stored in it; `None`: filled by rules.
    pub name: Option<String>,
    /// Maximum length, in bytes.
    pub length: usize,
    /// The keyword or action that created it.
    pub span: Span,
}
