//! Agent checks of a server (section 5.2, "agent-check" and related options). Must never read settings of health
//! checks: the two are independent.

use super::ServerContext;
use super::delay::delay;
use crate::address::AddressRules;
use crate::document::Word;
use crate::keyword::source;
use crate::span::Spanned;
use crate::spec::AddressSpec;

pub(super) fn check(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.agent.enabled = true;
}

pub(super) fn no_check(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.agent.enabled = false;
}

pub(super) fn address(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        return context.error(keyword.span, "'agent-addr' expects an address as argument..");
    };
    match source::literal(word, &AddressRules::SOURCE, context.environment) {
        Ok(address @ AddressSpec::Inet { .. }) => {
            context.draft.check.agent.address = Some(Spanned::new(address, word.span))
        }
        Ok(_) | Err(_) => {
            let message = format!("parsing agent-addr failed. Check if '{}' is correct address..", word.text);
            context.error(word.span, message);
        }
    }
}

pub(super) fn interval(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if let Some(time) = delay(context, keyword, value) {
        context.draft.check.agent.interval = time;
    }
}

/// Parses the port; HAProxy uses the number's lower sixteen bits.
pub(super) fn port(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if value.is_none() {
        return context.error(keyword.span, "'agent-port' expects a port number as argument..");
    }
    match u16::try_from(context.number(keyword, value)) {
        Ok(port) => context.draft.check.agent.port = port,
        Err(_) => context
            .error(value.map_or(keyword.span, |word| word.span), "'agent-port' expects a port number as argument."),
    }
}

pub(super) fn send(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.check.agent.send.clone_from(&word.text),
        None => context.error(keyword.span, "'agent-send' expects a string as argument.."),
    }
}
