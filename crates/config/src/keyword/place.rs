//! Sections that accept a proxy keyword, and HAProxy's sentence in others. Must never name a particular keyword.

use super::report::Report;
use crate::span::Span;
use crate::spec::ProxyKind;

/// The kinds of proxy sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Defaults,
    Frontend,
    Listen,
    Backend,
    /// `udp-lb`: a proxy for datagrams, with keywords of its own.
    UdpLb,
}

impl Section {
    pub(crate) const fn keyword(self) -> &'static str {
        match self {
            Self::Defaults => "defaults",
            Self::Frontend => "frontend",
            Self::Listen => "listen",
            Self::Backend => "backend",
            Self::UdpLb => "udp-lb",
        }
    }

    /// Returns HAProxy's noun for a proxy of this kind.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Defaults => "defaults",
            Self::Frontend => "frontend",
            Self::Listen | Self::UdpLb => "proxy",
            Self::Backend => "backend",
        }
    }

    pub(crate) const fn kind(self) -> Option<ProxyKind> {
        match self {
            Self::Defaults => None,
            Self::Frontend => Some(ProxyKind::Frontend),
            Self::Listen | Self::UdpLb => Some(ProxyKind::Listen),
            Self::Backend => Some(ProxyKind::Backend),
        }
    }

    const fn has(self, side: Side) -> bool {
        match side {
            Side::Both => true,
            Side::Front => !matches!(self, Self::Backend),
            Side::Back => !matches!(self, Self::Frontend),
        }
    }
}

/// Returns the noun for a finished proxy.
pub(crate) const fn noun(kind: ProxyKind) -> &'static str {
    match kind {
        ProxyKind::Frontend => "frontend",
        ProxyKind::Listen => "proxy",
        ProxyKind::Backend => "backend",
    }
}

/// The side of a proxy that a keyword applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Both,
    /// Towards clients: `frontend` and `listen`.
    Front,
    /// Towards servers: `backend` and `listen`.
    Back,
}

impl Side {
    const fn capability(self) -> &'static str {
        match self {
            Self::Both => "",
            Self::Front => "frontend",
            Self::Back => "backend",
        }
    }
}

/// Treatment of a keyword in a `defaults` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InDefaults {
    /// Inherited.
    Allowed,
    /// Inherited from a named section, rejected in an anonymous one.
    Named,
    /// Rejected.
    Refused,
}

/// HAProxy's sentence about a keyword in the wrong section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// `'x' ignored because frontend 'f' has no backend capability.`, a warning.
    Ignored,
    /// Like `Ignored`, followed by a suggestion.
    IgnoredBut(&'static str),
    /// `x will be ignored because …`, a warning.
    WillBeIgnored,
    /// Like `WillBeIgnored`, with quotes around the name.
    WillBeIgnoredQuoted,
    /// `backend 'b' : 'x' directive is ignored in backends.`, a warning.
    Directive,
    /// `'x' not allowed because …`, an error.
    NotAllowed,
    /// `'x' only available in backend or listen section`, an error.
    OnlyAvailable,
    /// Like `OnlyAvailable`, with a full stop.
    OnlyAvailableStop,
    /// `x is not allowed because backend b is not a frontend`, an error.
    TcpRule,
    /// `x is only allowed in 'backend' sections or 'defaults' section with a name`, an error.
    TcpResponse,
    /// `'x' : proxy 'b' has no frontend capability`, an error.
    QuicRule,
    /// The sentence of `filter` about `defaults`.
    Filter,
    /// The sentence of `stick-table` about `defaults`.
    Table,
    /// The sentence of `declare` about `defaults`.
    Declare,
}

/// Sections that accept a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeywordScope {
    pub side: Side,
    pub defaults: InDefaults,
    /// Sentence in other sections.
    pub wording: Wording,
}

const fn place(side: Side, defaults: InDefaults, wording: Wording) -> KeywordScope {
    KeywordScope { side, defaults, wording }
}

/// The scopes that tables use. `_SECTION`: not in `defaults`.
pub(crate) mod places {
    use super::InDefaults::{Allowed, Named, Refused};
    use super::Side::{Back, Both, Front};
    use super::{KeywordScope, Wording, place};

    pub(crate) const ANY: KeywordScope = place(Both, Allowed, Wording::Ignored);
    pub(crate) const NO_DEFAULTS: KeywordScope = place(Both, Refused, Wording::Ignored);
    pub(crate) const NAMED: KeywordScope = place(Both, Named, Wording::Ignored);
    pub(crate) const NAMED_TCP: KeywordScope = place(Both, Named, Wording::TcpRule);
    pub(crate) const STICK_TABLE: KeywordScope = place(Both, Refused, Wording::Table);
    pub(crate) const FILTER: KeywordScope = place(Both, Refused, Wording::Filter);
    pub(crate) const FRONT: KeywordScope = place(Front, Allowed, Wording::Ignored);
    pub(crate) const FRONT_SECTION: KeywordScope = place(Front, Refused, Wording::Ignored);
    pub(crate) const FRONT_MAXCONN: KeywordScope = place(Front, Allowed, Wording::IgnoredBut("fullconn"));
    pub(crate) const FRONT_WILL: KeywordScope = place(Front, Allowed, Wording::WillBeIgnored);
    pub(crate) const FRONT_WILL_QUOTED: KeywordScope = place(Front, Allowed, Wording::WillBeIgnoredQuoted);
    pub(crate) const FRONT_DIRECTIVE: KeywordScope = place(Front, Allowed, Wording::Directive);
    pub(crate) const FRONT_DECLARE: KeywordScope = place(Front, Refused, Wording::Declare);
    pub(crate) const FRONT_ONLY_SECTION: KeywordScope = place(Front, Refused, Wording::OnlyAvailableStop);
    pub(crate) const FRONT_TCP: KeywordScope = place(Front, Named, Wording::TcpRule);
    pub(crate) const FRONT_QUIC: KeywordScope = place(Front, Named, Wording::QuicRule);
    pub(crate) const BACK: KeywordScope = place(Back, Allowed, Wording::Ignored);
    pub(crate) const BACK_SECTION: KeywordScope = place(Back, Refused, Wording::Ignored);
    pub(crate) const BACK_FULLCONN: KeywordScope = place(Back, Allowed, Wording::IgnoredBut("maxconn"));
    pub(crate) const BACK_WILL: KeywordScope = place(Back, Allowed, Wording::WillBeIgnored);
    pub(crate) const BACK_WILL_QUOTED: KeywordScope = place(Back, Allowed, Wording::WillBeIgnoredQuoted);
    pub(crate) const BACK_ONLY: KeywordScope = place(Back, Allowed, Wording::OnlyAvailable);
    pub(crate) const BACK_ONLY_SECTION: KeywordScope = place(Back, Refused, Wording::OnlyAvailableStop);
    pub(crate) const BACK_ONLY_EVERYWHERE: KeywordScope = place(Back, Refused, Wording::OnlyAvailable);
    pub(crate) const BACK_TCP: KeywordScope = place(Back, Named, Wording::TcpResponse);
    pub(crate) const SERVER: KeywordScope = place(Back, Refused, Wording::NotAllowed);
    pub(crate) const DEFAULT_SERVER: KeywordScope = place(Back, Allowed, Wording::NotAllowed);
}

/// The section that contains a keyword, and its name (none for an anonymous `defaults`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder<'a> {
    pub(crate) section: Section,
    pub(crate) name: Option<&'a str>,
}

impl Holder<'_> {
    /// Returns `frontend 'www'`, or `'defaults' section`.
    pub(crate) fn describe(&self) -> String {
        match self.name {
            Some(name) => format!("{} '{name}'", self.section.keyword()),
            None => format!("'{}' section", self.section.keyword()),
        }
    }
}

impl KeywordScope {
    /// Whether the section lacks the side that a keyword applies to, and HAProxy warns and still reads the line.
    pub(crate) fn is_idle_in(&self, section: Section) -> bool {
        let warns = matches!(
            self.wording,
            Wording::Ignored
                | Wording::IgnoredBut(_)
                | Wording::WillBeIgnored
                | Wording::WillBeIgnoredQuoted
                | Wording::Directive
        );
        section != Section::Defaults && !section.has(self.side) && warns
    }

    /// Reports HAProxy's sentence if the section does not accept the keyword. Returns whether the line may be read.
    /// `first` is the name in the shorter sentences, `name` the whole name.
    pub(crate) fn admits(
        &self,
        holder: Holder<'_>,
        span: Span,
        first: &str,
        name: &str,
        report: &mut Report<'_>,
    ) -> bool {
        if holder.section == Section::Defaults {
            return self.admits_defaults(holder, span, first, name, report);
        }
        if holder.section.has(self.side) {
            return true;
        }
        let (noun, proxy) = (holder.section.noun(), holder.name.unwrap_or_default());
        let because = format!("because {noun} '{proxy}' has no {} capability", self.side.capability());
        let sections = if self.side == Side::Back { "backend or listen" } else { "frontend or listen" };
        match self.wording {
            Wording::IgnoredBut(other) => {
                report.warning(span, format!("'{first}' ignored {because}. Maybe you want '{other}' instead ?"));
            }
            Wording::WillBeIgnored => report.warning(span, format!("{name} will be ignored {because}")),
            Wording::WillBeIgnoredQuoted => report.warning(span, format!("'{name}' will be ignored {because}")),
            Wording::Directive => {
                report.warning(span, format!("{noun} '{proxy}' : '{name}' directive is ignored in backends."));
            }
            Wording::NotAllowed => report.alert(span, format!("'{first}' not allowed {because}.")),
            Wording::OnlyAvailable | Wording::Declare => {
                report.alert(span, format!("'{first}' only available in {sections} section"));
            }
            Wording::OnlyAvailableStop => {
                report.alert(span, format!("'{first}' only available in {sections} section."));
            }
            Wording::TcpRule => {
                report.alert(span, format!("{name} is not allowed because {noun} {proxy} is not a frontend"));
            }
            Wording::QuicRule => {
                report.alert(span, format!("'{name}' : proxy '{proxy}' has no frontend capability"));
            }
            Wording::TcpResponse => report
                .alert(span, format!("{name} is only allowed in 'backend' sections or 'defaults' section with a name")),
            Wording::Ignored | Wording::Filter | Wording::Table => {
                report.warning(span, format!("'{first}' ignored {because}."));
            }
        }
        false
    }

    fn admits_defaults(
        &self,
        holder: Holder<'_>,
        span: Span,
        first: &str,
        name: &str,
        report: &mut Report<'_>,
    ) -> bool {
        let message = match (self.defaults, self.wording) {
            (InDefaults::Allowed, _) => return true,
            (InDefaults::Named, _) if holder.name.is_some() => return true,
            (InDefaults::Named, Wording::TcpRule | Wording::QuicRule) => {
                format!("{name} is not allowed in anonymous 'defaults' sections")
            }
            (InDefaults::Named, Wording::TcpResponse) => {
                format!("{name} is only allowed in 'backend' sections or 'defaults' section with a name")
            }
            (InDefaults::Named, _) => format!("'{first}' not allowed in anonymous 'defaults' section."),
            (InDefaults::Refused, Wording::Filter) => format!("{first} is not allowed in a 'default' section."),
            (InDefaults::Refused, Wording::Table) => format!("'{first}' is not supported in 'defaults' section."),
            (InDefaults::Refused, Wording::Declare) => format!("'{first}' not available in default section"),
            (InDefaults::Refused, Wording::OnlyAvailable) => {
                format!("'{first}' only available in backend or listen section")
            }
            (InDefaults::Refused, _) => {
                let first = if matches!(name.split(' ').next(), Some("capture")) || name == "stats admin" {
                    two_words(name)
                } else {
                    first
                };
                format!("'{first}' not allowed in 'defaults' section.")
            }
        };
        report.alert(span, message);
        false
    }

    /// Returns the sections as listed in the reference manual.
    pub(crate) fn sections(&self) -> String {
        let mut names = Vec::new();
        match self.defaults {
            InDefaults::Allowed => names.push("defaults"),
            InDefaults::Named => names.push("defaults (named)"),
            InDefaults::Refused => {}
        }
        for section in [Section::Frontend, Section::Listen, Section::Backend] {
            if section.has(self.side) {
                names.push(section.keyword());
            }
        }
        names.join(", ")
    }
}

fn two_words(name: &str) -> &str {
    name.match_indices(' ').nth(1).map_or(name, |(end, _)| &name[..end])
}
