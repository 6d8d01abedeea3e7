//! Listening sockets (section 5.1).

use super::{BindContext, BindOption, not_yet, removed, supported, tuning};
use crate::document::Word;
use crate::keyword::argument::{Arity, leading_number, limit};

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    supported(Arity::One, "name", "<name>", "Name of the address on the statistics page and in logs.", name),
    supported(Arity::One, "id", "<number>", "Number of the address.", id),
    supported(Arity::One, "maxconn", "<number>", "Connections that the address takes at once.", maxconn),
    supported(Arity::One, "backlog", "<number>", "Connections the kernel holds until they are accepted.", backlog),
    supported(Arity::None, "defer-accept", "", "Accept connections when their first bytes are there.", defer_accept),
    supported(
        Arity::One,
        "shards",
        "{ <number> | by-thread | by-group }",
        "Number of sockets to open for the address.",
        shards,
    ),
    supported(Arity::None, "v4v6", "", "An IPv6 wildcard takes IPv4 too.", v4v6),
    supported(Arity::None, "v6only", "", "An IPv6 wildcard takes IPv6 alone.", v6only),
    supported(Arity::One, "mode", "<mode>", "Rights of a UNIX socket, in octal.", mode),
    not_yet(Arity::One, "uid", "<number>", "Owner of a UNIX socket, by number."),
    not_yet(Arity::One, "user", "<name>", "Owner of a UNIX socket."),
    not_yet(Arity::One, "gid", "<number>", "Group of a UNIX socket, by number."),
    not_yet(Arity::One, "group", "<name>", "Group of a UNIX socket."),
    not_yet(Arity::One, "accept-netscaler-cip", "<magic>", "Expects NetScaler's client address header."),
    not_yet(Arity::None, "accept-proxy", "", "Expects a PROXY protocol header."),
    not_yet(Arity::One, "cc", "<algorithm>", "Congestion control of accepted connections."),
    not_yet(Arity::One, "guid-prefix", "<text>", "Identifiers of the addresses of this line."),
    not_yet(Arity::One, "idle-ping", "<delay>", "Tests idle connections of clients."),
    not_yet(Arity::One, "interface", "<interface>", "Accepts packets of one network interface alone."),
    not_yet(Arity::One, "label", "<label>", "Names a group of addresses."),
    not_yet(Arity::One, "mss", "<size>", "Largest TCP segment to announce."),
    not_yet(Arity::One, "namespace", "<name>", "Network namespace of the address."),
    not_yet(Arity::One, "nbconn", "<number>", "Connections that a reverse HTTP listener opens."),
    not_yet(Arity::One, "proto", "<name>", "Protocol to speak, instead of negotiating it."),
    not_yet(Arity::One, "tcp-md5sig", "<password>", "Signs TCP segments with MD5."),
    not_yet(Arity::One, "tcp-ss", "<mode>", "Keeps the SYN packet for inspection."),
    not_yet(Arity::One, "tcp-ut", "<delay>", "How long sent bytes may stay unacknowledged."),
    not_yet(Arity::None, "tfo", "", "TCP fast open."),
    not_yet(Arity::None, "transparent", "", "Binds an address that the host does not have."),
    tuning(Arity::One, "nice", "<number>", "Priority of the address's connections inside the process."),
    tuning(Arity::One, "thread", "[<group>/]<set>[,...]", "Threads that accept from the address; in Weir all do."),
    removed(
        Arity::One,
        "process",
        "<set>",
        "Processes that accept from the address; there is one.",
        "'process %1' on 'bind' lines is not supported anymore, please use 'thread' instead.",
    ),
];

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

/// `by-thread` and `by-group` ask for what Weir does with one socket: spread connections over the threads.
fn shards(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(word) = value else {
        context.error(keyword.span, "'shards' : missing value");
        return;
    };
    if matches!(word.text.as_str(), "by-thread" | "by-group") {
        context.draft.shards = None;
        return;
    }
    match leading_number(&word.text).0 {
        value @ 1..=1024 => context.draft.shards = limit(value),
        value => context
            .error(word.span, format!("'shards' : invalid value {value}, allowed range is 1..1024 or 'by-thread'")),
    }
}

fn mode(context: &mut BindContext<'_>, keyword: &Word, value: Option<&Word>) {
    let text = value.map_or("", |word| &word.text);
    match u32::from_str_radix(text, 8) {
        Ok(mode) => context.draft.unix_mode = Some(mode),
        Err(_) => context.error(
            value.map_or(keyword.span, |word| word.span),
            format!("'mode' : missing or invalid mode '{text}' (octal integer expected)"),
        ),
    }
}
