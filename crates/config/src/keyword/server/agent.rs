//! Agent checks of a server (section 5.2, "agent-check" and related options). Must never read settings of health
//! checks: the two are independent.

use super::ServerContext;
use super::delay::delay;
use crate::address::AddressRules;
use crate::document::Word;
use crate::keyword::source;
use crate::span::{Span, Spanned};
use crate::spec::AddressSpec;

/// Reads `agent-check [http <uri>]`.
pub(super) fn check(context: &mut ServerContext<'_>, _: &Word, form: Option<&Word>) {
    context.draft.check.agent.enabled = true;
    context.draft.check.agent.uri = match (form, context.arguments.get(1)) {
        (None, _) => None,
        (Some(_), Some(uri)) if is_path(&uri.text) => Some(uri.text.clone()),
        (Some(form), uri) => {
            let message = match uri {
                Some(uri) => format!(
                    "'agent-check http' : '{}' is no path: expected '/' and visible ASCII without '#'.",
                    uri.text
                ),
                None => "'agent-check http' expects <uri> as argument, a path such as '/load'.".to_owned(),
            };
            return context.error(uri.unwrap_or(form).span, message);
        }
    };
}

/// Whether a text is a path, with a query or without, that a request line can contain.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// Checks the settings of a server's agent after all options of a line.
pub(super) fn finish(context: &mut ServerContext<'_>, line: Span) {
    let agent = &context.draft.check.agent;
    if !agent.enabled {
        return;
    }
    let (has_port, sends) = (agent.port != 0, agent.uri.is_some() && !agent.send.is_empty());
    if !has_port {
        let name = context.shown_name();
        context.error(line, format!("server {name} does not have agent port. Agent check has been disabled."));
    }
    if sends {
        context.error(line, "'agent-send' is not possible with 'agent-check http', whose agent gets a request.");
    }
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
