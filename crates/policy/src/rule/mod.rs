//! Compiled rules (configuration manual, sections 4.3 and 4.4): an action and its condition. An action is data; the
//! engine performs it. Must never perform one.

mod action;
mod assigned;
mod binary;
mod described;
mod edit;
mod normalize;
mod parse;
mod reply;
mod response;
mod server_choice;
mod stick;
mod switch;

pub use action::{
    Action, Attach, AuthRequest, BandwidthChange, BodyWait, DecisionCaching, Decompression, End, Expected, Final,
    ListChange, ListVerb, Mirror, NameLookup, Number, Packets, Peer, Period, ReadAction, Redirect, RedirectKind,
    RegisteredAction, Row, ScriptCall, StickChange, Text, TimeoutKind, Track, Wait, integer, rows,
};
pub(crate) use action::{error_answer, find as find_action, redirect_rule};
pub use assigned::Assigned;
pub use described::{Answer, Body};
pub use edit::{Change, Edit, Replacement, Unfit};
pub use normalize::{Malformed, Normalizer};
pub(crate) use parse::expression_text;
pub use parse::{Parsing, RuleError, RuleNames, SideRequests, Words};
pub use response::Reply;
pub use server_choice::{PersistOrder, PersistRule, SelectedServer, ServerChoice, ServerRule, ServerTarget};
pub use stick::{MOST_STORES, Remembered, ServerRef, StickRule, StickStore, recall};
pub use switch::{Names as BackendNames, Switch, Target, fits_mode};

use crate::program::SpoeEvents;
use expression::condition::Condition;
use expression::sample::RulePlace;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Rule {
    /// The condition; `None` for none.
    pub condition: Option<Condition>,
    pub action: Action,
    /// Location in the configuration.
    pub place: RulePlace,
}

/// Compares everything except the location.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.action == other.action
    }
}

impl Rule {
    /// Whether no later rule is ever evaluated. Closing the connection is excluded, since HAProxy does not warn in this
    /// case.
    pub(crate) fn ends_all(&self) -> bool {
        match &self.action {
            Action::Final(last) => match &**last {
                Final::Reject | Final::SilentDrop(_) => false,
                Final::Redirect(redirect) => self.condition.is_none() && !redirect.ignore_empty,
                _ => self.condition.is_none(),
            },
            _ => false,
        }
    }
}

/// The rules of a proxy, by rule set, each in the order of evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    /// `quic-initial`.
    pub quic_initial: Box<[Rule]>,
    /// `tcp-request connection`.
    pub connection: Box<[Rule]>,
    /// `tcp-request session`.
    pub session: Box<[Rule]>,
    /// `tcp-request content`.
    pub request_content: Box<[Rule]>,
    /// `tcp-request inspect-delay`.
    pub request_delay: Option<Duration>,
    /// `tcp-response content`.
    pub response_content: Box<[Rule]>,
    /// `tcp-response inspect-delay`.
    pub response_delay: Option<Duration>,
    /// `http-request`.
    pub http_request: Box<[Rule]>,
    /// `redirect`, evaluated after `http-request` and the statistics page, even after `http-request allow`.
    pub redirects: Box<[Rule]>,
    /// `http-response`.
    pub http_response: Box<[Rule]>,
    /// `http-after-response`.
    pub http_after_response: Box<[Rule]>,
    /// Events of `filter spoe` that belong to none of these sets; the others precede the rules of their set.
    pub spoe: Option<Box<SpoeEvents>>,
}

impl Rules {
    /// Returns the rules on the first bytes of a session, and their inspect delay.
    pub fn on_request_bytes(&self) -> (&[Rule], Option<Duration>) {
        (&self.request_content, self.request_delay)
    }

    /// Whether there are no rules of any set.
    pub fn are_absent(&self) -> bool {
        let sets = [&self.quic_initial, &self.connection, &self.session, &self.request_content];
        sets.iter().all(|rules| rules.is_empty()) && !self.see_requests() && !self.see_answers() && self.spoe.is_none()
    }

    /// Whether there are rules on the heads of requests.
    pub fn see_requests(&self) -> bool {
        !self.http_request.is_empty() || !self.redirects.is_empty()
    }

    /// Whether there are rules on responses.
    #[inline]
    pub fn see_answers(&self) -> bool {
        !self.http_response.is_empty() || !self.http_after_response.is_empty() || !self.response_content.is_empty()
    }

    /// Whether a response can be forwarded as soon as its head is received: `http-response` has few rules, and none of
    /// them waits or uses the body.
    #[inline]
    pub fn let_answers_go_on(&self) -> bool {
        const FEW: usize = 16;
        let is_prompt =
            |rule: &Rule| !matches!(rule.action, Action::Wait(_) | Action::ReplaceBody(_) | Action::Mirror(_));
        self.response_content.is_empty() && self.http_response.len() <= FEW && self.http_response.iter().all(is_prompt)
    }
}
