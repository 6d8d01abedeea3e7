//! Rules (configuration manual, sections 4.3 and 4.4): an action and the condition under which it is taken, compiled. An
//! action is data; the engine performs it. Must never perform one.

mod action;
mod assigned;
mod binary;
mod edit;
mod normalize;
mod parse;
mod reply;
mod server_choice;
mod stick;
mod switch;

pub use action::{
    Action, Answer, Attach, BandwidthChange, Body, BodyWait, Decompression, End, Expected, Final, ListChange, ListVerb,
    Mirror, NameLookup, Number, Packets, Peer, Period, ReadAction, Redirect, RedirectKind, RegisteredAction, Row,
    ScriptCall, StickChange, Text, TimeoutKind, Track, Wait, integer, rows,
};
pub(crate) use action::{error_answer, find as find_action, redirect_rule};
pub use assigned::Assigned;
pub use edit::{Change, Edit, Replacement, Unfit};
pub use normalize::{Malformed, Normalizer};
pub(crate) use parse::expression_text;
pub use parse::{Parsing, RuleError, RuleNames, Words};
pub use reply::Reply;
pub use server_choice::{Bound, PersistOrder, PersistRule, ServerChoice, ServerRule, ServerTarget};
pub use stick::{Known, MOST_STORES, Remembered, StickRule, StickStore, recall};
pub use switch::{Names as BackendNames, Switch, Target, fits_mode};

use crate::program::SpoeEvents;
use expression::condition::Condition;
use expression::sample::RulePlace;
use std::time::Duration;

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// When it is taken; always without one.
    pub condition: Option<Condition>,
    /// What it does.
    pub action: Action,
    /// Where it is written.
    pub place: RulePlace,
}

/// Where it is written makes no difference.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.condition == other.condition && self.action == other.action
    }
}

impl Rule {
    /// Whether nothing behind it is ever looked at. That a connection is cut does not count: HAProxy does not say so.
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

/// The rules of a proxy, by set, each in the order in which they are evaluated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
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
    /// `redirect`, after `http-request` and the statistics page, whatever an `http-request allow` said.
    pub redirects: Box<[Rule]>,
    /// `http-response`.
    pub http_response: Box<[Rule]>,
    /// `http-after-response`.
    pub http_after_response: Box<[Rule]>,
    /// Events of `filter spoe` that are in none of these sets: the others are in front of their rules.
    pub spoe: Option<Box<SpoeEvents>>,
}

impl Rules {
    /// The rules on the first bytes of a session, and how long they wait for these.
    pub fn on_request_bytes(&self) -> (&[Rule], Option<Duration>) {
        (&self.request_content, self.request_delay)
    }

    /// Whether one of them looks at the answers of servers.
    #[inline]
    pub fn see_answers(&self) -> bool {
        !self.http_response.is_empty() || !self.http_after_response.is_empty() || !self.response_content.is_empty()
    }

    /// Whether none of `http-response` waits or looks at a body, and they are few: an answer whose head is here can go on at once.
    #[inline]
    pub fn let_answers_go_on(&self) -> bool {
        const FEW: usize = 16;
        let is_prompt =
            |rule: &Rule| !matches!(rule.action, Action::Wait(_) | Action::ReplaceBody(_) | Action::Mirror(_));
        self.response_content.is_empty() && self.http_response.len() <= FEW && self.http_response.iter().all(is_prompt)
    }
}
