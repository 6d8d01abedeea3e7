//! `send-spoe-group`: sends a group of messages to an agent. Must never send one.

use super::{Action, Row, Wait, row};
use crate::program::SpoeCall;
use crate::rule::parse::{Parsing, RuleError, Words};

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("send-spoe-group", send_spoe_group)];

fn send_spoe_group(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    const USAGE: &str = "expects 2 arguments: <engine-id> <group-id>";
    let (engine, group) = (words.expect(USAGE)?, words.expect(USAGE)?);
    if let Some(extra) = words.peek() {
        return Err(RuleError::at(Some(extra), USAGE));
    }
    let proxy = &parsing.proxy.name.value;
    match parsing.names.spoe_group(&engine.text, &group.text) {
        Some(Some(call)) => match unfit(&call, parsing) {
            Some((message, wanted)) => {
                let message = format!(
                    "Proxy '{proxy}': Invalid SPOE message '{message}' used by SPOE group '{}': some args extract information \
                     from '{wanted}', none of which is available here ('{}')",
                    group.text,
                    parsing.place.name()
                );
                Err(RuleError { span: Some(group.span), ..RuleError::whole(message) })
            }
            None => Ok(Action::Wait(Wait::Agent(call))),
        },
        Some(None) => {
            let message = format!(
                "Proxy '{proxy}': unable to find SPOE group '{}' into SPOE engine '{}' configuration.",
                group.text, engine.text
            );
            Err(RuleError { span: Some(group.span), ..RuleError::whole(message) })
        }
        None => {
            let message = format!(
                "Proxy '{proxy}': unable to find SPOE engine '{}' used by the send-spoe-group '{}'.",
                engine.text, group.text
            );
            Err(RuleError { span: Some(engine.span), ..RuleError::whole(message) })
        }
    }
}

/// Returns the first message with an argument that is not available at the rule's place, and what the argument
/// requires.
fn unfit(call: &SpoeCall, parsing: &Parsing<'_>) -> Option<(String, &'static str)> {
    call.messages.iter().find_map(|message| {
        let mut fetches = message.arguments.iter().map(|(_, expression)| expression.fetch());
        let unfit = fetches.find(|fetch| fetch.refusal(parsing.place).is_some())?;
        Some((String::from_utf8_lossy(&message.name).into_owned(), unfit.wanted()))
    })
}
