//! Listening sockets (section 5.1).

use super::{BindContext, BindOption, removed, supported, threads, tuning};
use crate::document::Word;
use crate::keyword::QMUX_IS_EXPERIMENTAL;
use crate::keyword::argument::{Arity, leading_number, limit};
use crate::spec::{MuxProtocol, ShardsSpec};
use crate::units::{self, Time, TimeError};

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(Arity::One, "name", "<name>", "Name of the address on the statistics page and in logs.", name),
    supported(Arity::One, "id", "<number>", "Numeric ID of the listening socket.", id),
    supported(
        Arity::One,
        "maxconn",
        "<number>",
        "Maximum number of concurrent connections of the listening socket.",
        maxconn,
    ),
    supported(
        Arity::One,
        "backlog",
        "<number>",
        "Maximum number of connections waiting to be accepted in the kernel.",
        backlog,
    ),
    supported(Arity::None, "defer-accept", "", "Accepts connections only once data has been received.", defer_accept),
    supported(
        Arity::One,
        "shards",
        "{ <number> | by-thread | by-group }",
        "Number of sockets to open for the address.",
        shards,
    ),
    supported(Arity::None, "v4v6", "", "An IPv6 wildcard address accepts IPv4 as well.", v4v6),
    supported(Arity::None, "v6only", "", "An IPv6 wildcard address accepts IPv6 only.", v6only),
    supported(
        Arity::One,
        "guid-prefix",
        "<text>",
        "Prefix of the identifiers of the sockets of this line.",
        guid_prefix,
    ),
    supported(
        Arity::One,
        "idle-ping",
        "<delay>",
        "Interval of PING frames on idle client connections (HTTP/2).",
        idle_ping,
    ),
    supported(Arity::One, "label", "<label>", "Name of a group of addresses.", label),
    supported(Arity::One, "nbconn", "<number>", "Connections that a reverse HTTP listener opens.", nbconn),
    supported(Arity::One, "proto", "<name>", "Protocol to speak, instead of negotiating it.", protocol),
    supported(
        Arity::One,
        "thread",
        "[<group>/]<set>[,...]",
        "Threads that serve the connections of the address.",
        threads::read,
    ),
    tuning(Arity::One, "nice", "<number>", "Scheduling priority of the connections of the address."),
    removed(
        Arity::One,
        "process",
        "<set>",
        "Processes that accept from the address; there is one.",
        "'process %1' on 'bind' lines is not supported anymore, please use 'thread' instead.",
    ),
];

fn protocol(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let protocol = match value.map(|word| (word, word.text.as_str())) {
        None => return context.error(keyword.span, "'proto' : missing value"),
        Some((_, "none")) => MuxProtocol::None,
        Some((_, "h1")) => MuxProtocol::Http1,
        Some((_, "h2")) => MuxProtocol::Http2,
        Some((_, "quic")) => MuxProtocol::Quic,
        Some((word, "qmux")) if !context.around.experimental.permits() => {
            return context.error(word.span, format!("'proto' : {QMUX_IS_EXPERIMENTAL}"));
        }
        Some((_, "qmux")) => MuxProtocol::Qmux,
        Some((_, "fcgi")) => MuxProtocol::Fcgi,
        Some((_, "spop")) => MuxProtocol::Spop,
        Some((word, name)) => {
            return context.error(word.span, format!("'proto' :  unknown MUX protocol '{name}'"));
        }
    };
    context.draft.listening.protocol = Some(protocol);
}

fn name(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.name = Some(word.text.clone()),
        None => context.error(keyword.span, "'name' : missing name"),
    }
}

fn id(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    if context.sockets > 1 {
        context.error(keyword.span, "'id' can only be used with a single socket");
        return;
    }
    let Some(word) = value else {
        context.error(keyword.span, "'id' : expects an integer argument");
        return;
    };
    let id = match leading_number(&word.text) {
        (value, true) => u32::try_from(value).ok().filter(|&id| id > 0),
        _ => {
            context.error(word.span, format!("'id' : expects an integer argument, found '{}'", word.text));
            return;
        }
    };
    let Some(id) = id else {
        context.error(word.span, "'id' : custom id has to be > 0");
        return;
    };
    if let Some(other) = context.earlier.iter().find(|other| other.id == Some(id)) {
        let message = format!(
            "'id' : custom id {id} already used at {} ('bind {}')",
            context.around.place(other.span),
            other.text
        );
        context.error(word.span, message);
        return;
    }
    context.draft.id = Some(id);
}

fn maxconn(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'maxconn' : missing value");
        return;
    };
    match leading_number(&word.text).0 {
        value @ ..0 => context.error(word.span, format!("'maxconn' : invalid value {value}, must be >= 0")),
        value => context.draft.maxconn = limit(value),
    }
}

fn backlog(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'backlog' : missing value");
        return;
    };
    match leading_number(&word.text).0 {
        value @ ..0 => context.error(word.span, format!("'backlog' : invalid value {value}, must be > 0")),
        value => context.draft.backlog = limit(value),
    }
}

fn defer_accept(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.defer_accept = true;
}

fn v4v6(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.v4v6 = true;
}

fn v6only(context: &mut BindContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.v6only = true;
}

fn shards(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'shards' : missing value");
        return;
    };
    context.draft.shards = match (word.text.as_str(), leading_number(&word.text).0) {
        ("by-thread", _) => Some(ShardsSpec::ByThread),
        ("by-group", _) => Some(ShardsSpec::ByGroup),
        (_, value @ 1..=1024) => limit(value).map(ShardsSpec::Number),
        (_, value) => {
            context
                .error(word.span, format!("'shards' : invalid value {value}, allowed range is 1..1024 or 'by-thread'"));
            return;
        }
    };
}

fn label(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.listening.label = Some(word.text.clone()),
        None => context.error(keyword.span, "'label' : missing label"),
    }
}

/// Identifiers built from the prefix are checked when all identifiers are known.
fn guid_prefix(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    match value {
        Some(word) => context.draft.listening.guid_prefix = Some(word.text.clone()),
        None => context.error(keyword.span, "'guid-prefix' : expects an argument"),
    }
}

fn idle_ping(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'idle-ping' expects an argument.");
        return;
    };
    match units::milliseconds(&word.text) {
        Ok(time) if time.leftover.is_none() => context.draft.listening.idle_ping = Some(time.value),
        Ok(Time { leftover: Some(found), .. }) | Err(TimeError::Unexpected(found)) => {
            context.error(word.span, format!("unexpected character '{found}' in 'idle-ping' argument on bind line."));
        }
        Ok(Time { leftover: None, .. }) | Err(TimeError::Empty) => {
            context.error(word.span, "'idle-ping' expects an argument.");
        }
        Err(error) => context.error(word.span, error.message(&word.text, "idle-ping")),
    }
}

/// `nbconn`: number of connections that a reverse HTTP listener maintains.
fn nbconn(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    if !context.around.experimental.permits() {
        context.error(
            keyword.span,
            "'nbconn' is experimental, must be allowed via a global 'expose-experimental-directives'",
        );
        return;
    }
    if !context.is_reverse {
        context.error(keyword.span, "'nbconn' : only valid for reverse HTTP listeners.");
        return;
    }
    let Some(value) = value else {
        context.error(keyword.span, "'nbconn' : missing argument.");
        return;
    };
    let number: i64 = leading_number(&value.text).0;
    match u32::try_from(number).ok().filter(|number| (1..=MOST_CONNECTIONS).contains(number)) {
        Some(number) => context.draft.listening.connections = Some(number),
        None if number > 0 => {
            context.error(value.span, format!("'nbconn' : invalid value {number}, must be <= {MOST_CONNECTIONS}."));
        }
        None => context.error(value.span, format!("'nbconn' : invalid value {number}, must be > 0.")),
    }
}

/// Maximum number of connections that one line maintains.
const MOST_CONNECTIONS: u32 = 10_000;
