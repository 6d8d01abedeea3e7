//! Conditions of statuses. A condition whose status has not changed keeps the time of its last transition.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The longest message: the API allows 32,768 characters, of which most would be a hostile name.
const LONGEST_MESSAGE: usize = 1024;

/// The value of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub holds: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Verdict {
    pub fn yes(reason: &'static str) -> Self {
        Self { holds: true, reason, message: String::new() }
    }

    /// A true condition that needs an explanation.
    pub fn yes_with(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: true, reason, message: message.into() }
    }

    pub fn no(reason: &'static str, message: impl Into<String>) -> Self {
        Self { holds: false, reason, message: message.into() }
    }
}

/// A verdict with the type of its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub kind: &'static str,
    pub verdict: Verdict,
}

impl Named {
    pub fn new(kind: &'static str, verdict: Verdict) -> Self {
        Self { kind, verdict }
    }
}

/// The object whose status is made: its generation, and the time.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    pub generation: Option<i64>,
    pub now: &'a Time,
}

/// Returns the conditions of the verdicts. `current` are those that the object has: they decide what is a transition, and conditions of
/// other types stay.
pub fn conditions(verdicts: &[Named], current: &[Condition], moment: Moment<'_>) -> Vec<Condition> {
    let mut result: Vec<Condition> = verdicts.iter().map(|named| condition(named, current, moment)).collect();
    result.extend(
        current.iter().filter(|c| !verdicts.iter().any(|v| v.kind == c.type_) && is_foreign(&c.type_)).cloned(),
    );
    result
}

/// Whether a condition is one that the translation never sets: another program's.
fn is_foreign(kind: &str) -> bool {
    !matches!(
        kind,
        "Accepted"
            | "Programmed"
            | "ResolvedRefs"
            | "Conflicted"
            | "PartiallyInvalid"
            | "Ready"
            | "InsecureFrontendValidationMode"
    )
}

fn condition(named: &Named, current: &[Condition], moment: Moment<'_>) -> Condition {
    let status = if named.verdict.holds { "True" } else { "False" };
    let unchanged = current.iter().find(|c| c.type_ == named.kind && c.status == status);
    Condition {
        type_: named.kind.to_owned(),
        status: status.to_owned(),
        reason: named.verdict.reason.to_owned(),
        message: shorten(&named.verdict.message),
        observed_generation: moment.generation,
        last_transition_time: unchanged.map_or_else(|| moment.now.clone(), |c| c.last_transition_time.clone()),
    }
}

/// Returns a text without control characters and of bounded length.
pub fn shorten(text: &str) -> String {
    let mut result: String = text.chars().take(LONGEST_MESSAGE).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if result.len() < text.len() && text.chars().nth(LONGEST_MESSAGE).is_some() {
        result.push('…');
    }
    result
}
