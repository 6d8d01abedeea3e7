//! Names resolved at run time (section 5.3).

use super::{ServerContext, ServerOption, supported};
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::span::Spanned;
use std::net::IpAddr;

/// Maximum number of networks of `resolve-net`.
const MOST_NETWORKS: usize = 5;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    supported(Arity::One, "resolvers", "<section>", "Resolvers section for the server's name.", resolvers),
    supported(Arity::One, "resolve-net", "<network>[,<network>...]", "Networks to prefer.", networks),
    supported(Arity::One, "resolve-opts", "<option>[,<option>...]", "Options of the resolution.", options),
    supported(Arity::One, "resolve-prefer", "{ ipv4 | ipv6 }", "Address family to prefer.", prefer),
    supported(
        Arity::One,
        "srv-port",
        "<port>",
        "Weir's own: port of the servers of a service (SRV), instead of that of its records.",
        srv_port,
    ),
];

fn resolvers(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let (name, span) = value.map_or((String::new(), keyword.span), |word| (word.text.clone(), word.span));
    context.draft.connecting.resolving.section = Some(Spanned::new(name, span));
}

fn prefer(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value.map_or("", |word| &word.text) {
        family @ ("ipv4" | "ipv6") => context.draft.connecting.resolving.prefers_ipv4 = family == "ipv4",
        _ => {
            let span = value.map_or(keyword.span, |word| word.span);
            context.error(span, "'resolve-prefer' expects either ipv4 or ipv6 as argument..");
        }
    }
}

fn srv_port(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value.and_then(|word| Some((word.span, word.text.parse().ok().filter(|port| *port > 0)?))) {
        Some((span, port)) => context.draft.connecting.resolving.srv_port = Some(Spanned::new(port, span)),
        None => {
            let span = value.map_or(keyword.span, |word| word.span);
            context.error(span, "'srv-port' expects a port between 1 and 65535 as argument.");
        }
    }
}

fn options(context: &mut ServerContext<'_>, _: &Word, value: Option<&Word>) {
    let Some(word) = value else { return };
    for option in word.text.split(',').filter(|option| !option.is_empty()) {
        let resolving = &mut context.draft.connecting.resolving;
        match option {
            "allow-dup-ip" => resolving.allows_duplicates = true,
            "prevent-dup-ip" => resolving.allows_duplicates = false,
            "ignore-weight" => resolving.ignores_weight = true,
            other => {
                let message = format!(
                    "'resolve-opts' : unknown resolve-opts option '{other}', supported methods are 'allow-dup-ip', \
                     'ignore-weight', and 'prevent-dup-ip'.."
                );
                return context.error(word.span, message);
            }
        }
    }
}

fn networks(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        return context.error(keyword.span, "'resolve-net' expects a list of networks..");
    };
    let mut found = Vec::new();
    for text in word.text.split(',').filter(|text| !text.is_empty()) {
        let Some(network) = network(text) else {
            return context.error(word.span, format!("'resolve-net' invalid network '{text}'.."));
        };
        if found.len() == MOST_NETWORKS {
            return context.error(word.span, format!("'resolve-net' exceed {MOST_NETWORKS} networks.."));
        }
        found.push(network);
    }
    context.draft.connecting.resolving.networks = found;
}

/// Parses an address with a prefix length, which defaults to the full length.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Some(whole), |length| length.parse().ok().filter(|length| *length <= whole))?;
    Some((address, length))
}
