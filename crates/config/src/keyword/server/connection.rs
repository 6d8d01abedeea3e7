//! Options about connections to a server: source address, proxies, socket options and
//! reuse (configuration manual, section 5.2).

use super::{ServerContext, ServerOption, removed, supported};
use crate::address::AddressRules;
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::keyword::source;
use crate::span::Spanned;
use crate::spec::{InitialAddress, MuxProtocol};
use crate::units::TimeError;
use std::net::IpAddr;

/// Maximum length of a TCP MD5 password in the kernel, in characters.
const PASSWORD_AT_MOST: usize = 80;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    supported(
        Arity::Source,
        "source",
        "<address>[:<port>[-<port>]] [usesrc <address>] [interface <name>]",
        "Source address of connections.",
        source_address,
    ),
    removed(
        Arity::One,
        "usesrc",
        "<address>",
        "Part of \"source\".",
        "'usesrc' only allowed after a 'source' statement..",
    ),
    supported(Arity::One, "socks4", "<address>:<port>", "Connects through a SOCKS4 proxy.", socks4),
    supported(Arity::One, "namespace", "<name>", "Network namespace of connections to the server.", namespace),
    supported(
        Arity::One,
        "tcp-ut",
        "<delay>",
        "TCP user timeout: how long sent data may remain unacknowledged.",
        user_timeout,
    ),
    supported(Arity::One, "tcp-md5sig", "<password>", "Signs TCP segments with MD5.", md5_password),
    supported(Arity::One, "cc", "<algorithm>", "Congestion control.", congestion_control),
    supported(Arity::None, "tfo", "", "TCP fast open.", fast_open),
    supported(Arity::None, "no-tfo", "", "Undoes an inherited \"tfo\".", no_fast_open),
    supported(Arity::One, "idle-ping", "<delay>", "Interval of PING frames on idle HTTP/2 connections.", idle_ping),
    supported(
        Arity::One,
        "max-reuse",
        "<number>",
        "Maximum number of requests on one connection; -1: no limit.",
        max_reuse,
    ),
    supported(
        Arity::One,
        "pool-low-conn",
        "<number>",
        "Number of idle connections above which other threads may take some.",
        pool_low_conn,
    ),
    supported(
        Arity::One,
        "pool-conn-name",
        "<expression>",
        "Name of connections: a request reuses idle connections of the same name.",
        pool_conn_name,
    ),
    supported(Arity::One, "redir", "<prefix>", "Redirects GET and HEAD requests to a prefix.", redirect),
    supported(Arity::One, "proto", "<name>", "Protocol to speak, instead of negotiating it.", protocol),
    supported(Arity::One, "ws", "{ auto | h1 | h2 }", "Protocol of websockets.", websockets),
    supported(
        Arity::One,
        "init-addr",
        "{ last | libc | none | <address> }[,...]",
        "Sources of the initial address.",
        initial_address,
    ),
];

fn source_address(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    match source::read(context.arguments, keyword.span, &source::OPTION, context.environment) {
        Ok(source) => context.draft.connecting.source = Some(source),
        Err((span, message)) => context.error(span, message),
    }
}

fn socks4(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'socks4' expects <addr>:<port> as argument..");
        return;
    };
    let rules = AddressRules { port_required: true, ..AddressRules::SOURCE };
    match source::literal(word, &rules, context.environment) {
        Ok(address) => context.draft.connecting.socks4 = Some(Spanned::new(address, word.span)),
        Err(error) => context.error(word.span, format!("'socks4 {}' : {error}.", word.text)),
    }
}

fn namespace(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.connecting.namespace = Some(Spanned::new(word.text.clone(), word.span)),
        None => context.error(keyword.span, "'namespace' : expects <name> as argument."),
    }
}

fn user_timeout(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'tcp-ut' : missing TCP User Timeout value.");
        return;
    };
    match context.milliseconds(word) {
        Ok(time) => context.draft.connecting.user_timeout = Some(u32::try_from(time.value).unwrap_or(u32::MAX)),
        Err(error @ TimeError::Overflow) => {
            context.error(word.span, format!("{}.", error.message(&word.text, "tcp-ut")));
        }
        Err(_) => context.error(word.span, "'tcp-ut' : expects a positive delay in milliseconds."),
    }
}

fn md5_password(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        None => context.error(keyword.span, "'tcp-md5sig' : missing TCP MD5 signature password."),
        Some(word) if word.text.len() > PASSWORD_AT_MOST => {
            let message = format!("'tcp-md5sig' : password too long (at most {PASSWORD_AT_MOST} characters expected).");
            context.error(word.span, message);
        }
        Some(word) => context.draft.connecting.md5_password = Some(word.text.clone()),
    }
}

fn congestion_control(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.connecting.congestion_control = Some(word.text.clone()),
        None => context.error(keyword.span, "'cc' : missing TCP congestion control algorithm."),
    }
}

fn pool_conn_name(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.connecting.pool_conn_name = Some(Spanned::new(word.text.clone(), word.span)),
        None => context.error(keyword.span, "'pool-conn-name' expects <value> as argument."),
    }
}

fn fast_open(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.connecting.fast_open = true;
}

fn no_fast_open(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.connecting.fast_open = false;
}

fn idle_ping(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'idle-ping' expects an argument..");
        return;
    };
    match context.milliseconds(word) {
        Ok(time) => context.draft.connecting.idle_ping = Some(time.value).filter(|millis| *millis > 0),
        Err(error) => {
            let server = context.shown_name();
            let message = match error {
                TimeError::Unexpected(found) => {
                    format!("unexpected character '{found}' in 'idle-ping' argument of server {server}..")
                }
                _ => format!(
                    "timer overflow in argument <{}> to <idle-ping> of server {server}, maximum value is 2147483647 ms \
                     (~24.8 days)..",
                    word.text
                ),
            };
            context.error(word.span, message);
        }
    }
}

fn max_reuse(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if value.is_none() {
        context.error(keyword.span, "'max-reuse' expects <value> as argument..");
        return;
    }
    // A negative value means no limit.
    context.draft.connecting.max_reuse = u32::try_from(context.number(keyword, value)).ok();
}

fn pool_low_conn(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if value.is_none() {
        context.error(keyword.span, "'pool-low-conn' expects <value> as argument..");
        return;
    }
    context.draft.connecting.pool_low_conn = match context.number(keyword, value) {
        ..0 => 0,
        number => u32::try_from(number).unwrap_or(u32::MAX),
    };
}

fn redirect(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.connecting.redirect = Some(word.text.clone()),
        None => context.error(keyword.span, "'redir' expects <prefix> as argument.."),
    }
}

fn protocol(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value.map(|word| (word, word.text.as_str())) {
        None => context.error(keyword.span, "'proto' : missing value."),
        Some((_, "none")) => context.draft.connecting.protocol = Some(MuxProtocol::None),
        Some((_, "h1")) => context.draft.connecting.protocol = Some(MuxProtocol::Http1),
        Some((_, "h2")) => context.draft.connecting.protocol = Some(MuxProtocol::Http2),
        Some((_, "fcgi")) => context.draft.connecting.protocol = Some(MuxProtocol::Fcgi),
        Some((_, "quic")) => context.draft.connecting.protocol = Some(MuxProtocol::Quic),
        Some((_, "qmux")) => context.draft.connecting.protocol = Some(MuxProtocol::Qmux),
        Some((_, "spop")) => context.draft.connecting.protocol = Some(MuxProtocol::Spop),
        Some((word, name)) => context.error(word.span, format!("'proto' :  unknown MUX protocol '{name}'.")),
    }
}

fn websockets(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value.map(|word| word.text.as_str()) {
        Some("auto") => context.draft.connecting.websockets = None,
        Some("h1") => context.draft.connecting.websockets = Some(MuxProtocol::Http1),
        Some("h2") => context.draft.connecting.websockets = Some(MuxProtocol::Http2),
        _ => {
            let span = value.map_or(keyword.span, |word| word.span);
            context.error(span, "'ws' has to be 'auto', 'h1' or 'h2'.");
        }
    }
}

fn initial_address(context: &mut ServerContext<'_>, _: &Word, value: Option<&Word>) {
    let Some(word) = value else { return };
    let mut methods = Vec::new();
    for method in word.text.split(',').filter(|method| !method.is_empty()) {
        if methods.iter().any(|known| matches!(known, InitialAddress::Address(_))) && method.parse::<IpAddr>().is_ok() {
            let message = format!("'init-addr' : initial address already specified, cannot add '{method}'..");
            return context.error(word.span, message);
        }
        methods.push(match method {
            "last" => InitialAddress::Last,
            "libc" => InitialAddress::Libc,
            "none" => InitialAddress::None,
            address => match address.parse() {
                Ok(ip) => InitialAddress::Address(ip),
                Err(_) => {
                    let message = format!(
                        "'init-addr' : unknown init-addr method '{method}', supported methods are 'libc', 'last', \
                         'none'.."
                    );
                    context.error(word.span, message);
                    return;
                }
            },
        });
    }
    context.draft.connecting.initial_address = methods;
}
