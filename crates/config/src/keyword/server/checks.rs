//! Health checks (section 5.2). Must never access the proxy: the backend defines the method.

use super::delay::delay;
use super::{ServerContext, ServerOption, agent, supported};
use crate::address::AddressRules;
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::keyword::source;
use crate::keyword::tls;
use crate::span::{Span, Spanned};
use crate::spec::{InitialState, Observe, OnError};

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    supported(Arity::None, "check", "", "Checks the server's health.", check),
    supported(Arity::None, "no-check", "", "Undoes an inherited \"check\".", no_check),
    supported(Arity::One, "check-alpn", "<protocols>", "Protocols that checks offer by ALPN.", check_alpn),
    supported(
        Arity::One,
        "check-pool-conn-name",
        "<name>",
        "Connection name of checks over idle connections.",
        pool_conn_name,
    ),
    supported(Arity::One, "check-proto", "<name>", "Protocol of checks.", protocol),
    supported(Arity::None, "check-reuse-pool", "", "Checks use idle connections.", reuse_pool),
    supported(Arity::None, "no-check-reuse-pool", "", "Undoes an inherited \"check-reuse-pool\".", no_reuse_pool),
    supported(Arity::None, "check-send-proxy", "", "Checks send a PROXY header.", send_proxy),
    supported(Arity::None, "no-check-send-proxy", "", "Undoes an inherited \"check-send-proxy\".", no_send_proxy),
    supported(Arity::One, "check-sni", "<name>", "SNI of checks.", check_sni),
    supported(
        Arity::None,
        "check-sni-auto",
        "",
        "Takes the SNI of checks from the Host of their request.",
        check_sni_auto,
    ),
    supported(
        Arity::None,
        "no-check-sni-auto",
        "",
        "Does not take the SNI of checks from their request.",
        check_sni_auto,
    ),
    supported(Arity::None, "check-ssl", "", "Checks use TLS.", check_ssl),
    supported(Arity::None, "no-check-ssl", "", "Undoes an inherited \"check-ssl\".", check_ssl),
    supported(Arity::None, "check-via-socks4", "", "Checks go through the SOCKS4 proxy.", via_socks4),
    supported(Arity::One, "healthcheck", "<name>", "Healthcheck section for checks.", healthcheck),
    supported(Arity::One, "addr", "<address>", "Address of checks.", address),
    supported(Arity::One, "port", "<port>", "Port of checks.", port),
    supported(Arity::One, "inter", "<time>", "Time between two checks.", interval),
    supported(Arity::One, "fastinter", "<time>", "Time between two checks while the state is changing.", fast_interval),
    supported(Arity::One, "downinter", "<time>", "Time between two checks while the server is down.", down_interval),
    supported(Arity::One, "rise", "<number>", "Successful checks in a row until the server is up.", rise),
    supported(Arity::One, "fall", "<number>", "Failed checks in a row until the server is down.", fall),
    supported(Arity::One, "observe", "{ none | layer4 | layer7 }", "Also derives health from traffic.", observe),
    supported(
        Arity::One,
        "error-limit",
        "<number>",
        "Observed errors in a row that trigger \"on-error\".",
        error_limit,
    ),
    supported(
        Arity::Agent,
        "agent-check",
        "[http <uri>]",
        "Queries an agent about the server; 'http', Weir's own: by an HTTP request.",
        agent::check,
    ),
    supported(Arity::None, "no-agent-check", "", "Undoes an inherited \"agent-check\".", agent::no_check),
    supported(Arity::One, "agent-addr", "<address>", "Address of the agent.", agent::address),
    supported(Arity::One, "agent-inter", "<time>", "Interval between two queries.", agent::interval),
    supported(Arity::One, "agent-port", "<port>", "Port of the agent.", agent::port),
    supported(Arity::One, "agent-send", "<text>", "Text to send to the agent.", agent::send),
];

fn check(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.enabled = true;
}

fn no_check(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.enabled = false;
}

fn send_proxy(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.send_proxy = true;
}

fn no_send_proxy(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.send_proxy = false;
}

fn reuse_pool(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.reuse_pool = true;
}

fn no_reuse_pool(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.reuse_pool = false;
}

/// `check-pool-conn-name`.
fn pool_conn_name(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(name) => context.draft.check.pool_conn_name = Some(name.text.clone()),
        None => context.error(keyword.span, "'check-pool-conn-name' : missing value."),
    }
}

fn via_socks4(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.check.via_socks4 = true;
}

fn address(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        return context.error(keyword.span, "'addr' expects <ipv4|ipv6> as argument..");
    };
    match source::literal(word, &AddressRules::SOURCE, context.environment) {
        Ok(address) => context.draft.check.address = Some(Spanned::new(address, word.span)),
        Err(error) => context.error(word.span, format!("'addr' : {error}.")),
    }
}

/// Parses the port; HAProxy uses the number's lower sixteen bits, and 0 means none.
fn port(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if value.is_none() {
        return context.error(keyword.span, "'port' expects a port number as argument..");
    }
    let port = context.number(keyword, value);
    match u16::try_from(port) {
        Ok(port) => context.draft.check.port = Some(port),
        Err(_) => context.error(value.map_or(keyword.span, |word| word.span), "'port' expects a port number."),
    }
}

fn interval(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if let Some(time) = delay(context, keyword, value) {
        context.draft.check.interval = time;
    }
}

fn fast_interval(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.check.fast_interval = delay(context, keyword, value).or(context.draft.check.fast_interval);
}

fn down_interval(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.check.down_interval = delay(context, keyword, value).or(context.draft.check.down_interval);
}

fn rise(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if let Some(count) = count(context, keyword, value) {
        context.draft.check.rise = count;
    }
}

fn fall(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if let Some(count) = count(context, keyword, value) {
        context.draft.check.fall = count;
    }
}

fn error_limit(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    if let Some(count) = count(context, keyword, value) {
        context.draft.check.error_limit = count;
    }
}

/// Parses a number of checks or errors, at least one.
fn count(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) -> Option<u32> {
    let name = &keyword.text;
    if value.is_none() {
        context.error(keyword.span, format!("'{name}' expects an integer argument.."));
        return None;
    }
    // HAProxy truncates the number to 32 bits.
    let count = i64::from(context.number(keyword, value) as i32).min(MOST_COUNTED);
    if count < 1 {
        let name = if name == "error-limit" { name.clone() } else { format!("'{name}'") };
        context.error(value.map_or(keyword.span, |word| word.span), format!("{name} has to be > 0.."));
    }
    u32::try_from(count).ok().filter(|count| *count > 0)
}

/// Maximum number of consecutive checks; the sum of two of them cannot overflow.
const MOST_COUNTED: i64 = 1 << 24;

fn observe(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        return context.error(keyword.span, "'observe' expects <mode> as argument..");
    };
    context.draft.check.observe = match word.text.as_str() {
        "none" => Observe::None,
        "layer4" => Observe::Layer4,
        "layer7" => Observe::Layer7,
        other => {
            let message = format!("'observe' expects one of 'none', 'layer4', 'layer7' but got '{other}'.");
            return context.error(word.span, message);
        }
    };
}

fn healthcheck(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.check.healthcheck = Some(Spanned::new(word.text.clone(), word.span)),
        None => context.error(keyword.span, "'healthcheck' expects a healthcheck name as argument.."),
    }
}

fn protocol(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else { return context.error(keyword.span, "'check-proto' : missing value.") };
    match word.text.as_str() {
        "h1" | "h2" | "fcgi" | "none" | "quic" | "qmux" => {
            context.draft.check.protocol = Some(Spanned::new(word.text.clone(), word.span))
        }
        "spop" => context.not_yet(format!("check-proto {}", word.text), word.span),
        other => context.error(word.span, format!("'check-proto' :  unknown MUX protocol '{other}'.")),
    }
}

/// `track`.
pub(super) fn track(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.check.track = Some(Spanned::new(word.text.clone(), word.span)),
        None => context.error(keyword.span, "'track' expects [<proxy>/]<server> as argument.."),
    }
}

/// Reports options that cannot be combined on one line.
pub(super) fn finish(context: &mut ServerContext<'_>, line: Span) {
    let check = &context.draft.check;
    if check.track.is_some() && check.enabled {
        context.error(line, "unable to enable checks and tracking at the same time!");
    }
    if context.draft.check.track.is_some() && context.draft.check.initial != InitialState::None {
        context.error(line, "unable to set init-state and tracking at the same time!");
    }
    agent::finish(context, line);
}

/// `on-error`.
pub(super) fn on_error(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.check.on_error = match value.map_or("", |word| &word.text) {
        "fastinter" => OnError::FastInterval,
        "fail-check" => OnError::FailCheck,
        "sudden-death" => OnError::SuddenDeath,
        "mark-down" => OnError::MarkDown,
        other => {
            let message = format!(
                "'on-error' expects one of 'fastinter', 'fail-check', 'sudden-death' or 'mark-down' but got '{other}'."
            );
            return context.error(value.map_or(keyword.span, |word| word.span), message);
        }
    };
}

/// `on-marked-down`.
pub(super) fn on_marked_down(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value.map_or("", |word| &word.text) {
        "shutdown-sessions" => context.draft.check.down_shuts_sessions = true,
        other => {
            let message = format!("'on-marked-down' expects 'shutdown-sessions' but got '{other}'.");
            context.error(value.map_or(keyword.span, |word| word.span), message);
        }
    }
}

/// `on-marked-up`.
pub(super) fn on_marked_up(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value.map_or("", |word| &word.text) {
        "shutdown-backup-sessions" => context.draft.check.up_shuts_backups = true,
        other => {
            let message = format!("'on-marked-up' expects 'shutdown-backup-sessions' but got '{other}'.");
            context.error(value.map_or(keyword.span, |word| word.span), message);
        }
    }
}

/// `init-state`.
pub(super) fn initial_state(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    context.draft.check.initial = match value.map_or("", |word| &word.text) {
        "none" => InitialState::None,
        "fully-up" => InitialState::FullyUp,
        "up" => InitialState::Up,
        "down" => InitialState::Down,
        "fully-down" => InitialState::FullyDown,
        other => {
            let message = format!(
                "'init-state' expects one of 'none', 'fully-up', 'up', 'down', or 'fully-down' but got '{other}'."
            );
            return context.error(value.map_or(keyword.span, |word| word.span), message);
        }
    };
}

fn check_ssl(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.tls.check = Some(keyword.text == "check-ssl");
}

fn check_sni(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match tls::text(keyword, value, "SNI") {
        Ok(name) => context.draft.tls.check_sni = Some(name.value),
        Err((span, message)) => context.error(span, format!("{message}.")),
    }
}

fn check_sni_auto(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    context.draft.tls.check_sni_auto = Some(keyword.text == "check-sni-auto");
}

fn check_alpn(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    match tls::protocols(keyword, value, "ALPN") {
        Ok(list) => context.draft.tls.check_alpn = Some(list.value),
        Err((span, message)) => context.error(span, format!("{message}.")),
    }
}
